//! A decoder allocates nothing for images that are not larger than those before.

#[path = "all/images.rs"]
mod images;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use images::images;
use shardtool_jpeg::{Decoder, Header, Limits, Rect, Request, Scale, entries};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test of its program, because the allocator counts all threads.
#[test]
fn decoding_allocates_nothing_in_steady_state() {
    let mut decoder = Decoder::new();
    let images: Vec<_> = images()
        .into_iter()
        .map(|(_, jpeg)| {
            let header = Header::parse(&jpeg, &Limits::default()).unwrap();
            let mut payload = Vec::new();
            entries::find(&jpeg, 1, &mut decoder, &mut payload).unwrap();
            (jpeg, header, payload)
        })
        .collect();
    let mut out = vec![0; 1 << 20];
    let mut round = |decoder: &mut Decoder| {
        for (jpeg, header, payload) in &images {
            for scale in Scale::ALL {
                let (width, height) = header.size(scale);
                let part =
                    Rect { x: width / 3, y: height / 3, width: width / 2 + width % 2, height: height / 2 + height % 2 };
                for (rect, hints) in [(None, None), (None, Some(&payload[..])), (Some(part), Some(&payload[..]))] {
                    decoder
                        .decode(
                            jpeg,
                            hints,
                            &Request { rect, scale, ..Request::default() },
                            &mut out,
                            3 * width as usize,
                        )
                        .unwrap();
                }
            }
        }
    };
    round(&mut decoder);
    let before = COUNT.load(Ordering::Relaxed);
    assert!(before > 0);
    round(&mut decoder);
    assert_eq!(COUNT.load(Ordering::Relaxed) - before, 0, "allocations");
}
