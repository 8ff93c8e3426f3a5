//! The memory that decoding takes, counted by the allocator, compared with `Decoder::scratch_bytes`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use shardtool_jpeg::{Decoder, Limits, ParsedImage, Rect, Request, Scale, entries};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards every call to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work`. Returns its result, the largest increase of memory during it, and the increase after it, in bytes.
fn measured<R>(work: impl FnOnce() -> R) -> (R, usize, usize) {
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let result = work();
    (result, MOST.load(Ordering::Relaxed) - before, HELD.load(Ordering::Relaxed) - before)
}

/// Large, wide and high images for every decode path.
fn images() -> Vec<(String, Vec<u8>)> {
    let mut made = Vec::new();
    for (width, height) in [(640u16, 480u16), (1, 20_000), (20_000, 1), (33, 6001), (6001, 33), (7, 5)] {
        for (kind, restarts, progressive, sampling) in [
            ("444", 0, false, SamplingFactor::F_1_1),
            ("420", 0, false, SamplingFactor::F_2_2),
            ("411", 0, false, SamplingFactor::F_4_1),
            ("420, many restarts", 1, false, SamplingFactor::F_2_2),
            ("420, restarts", width.div_ceil(16), false, SamplingFactor::F_2_2),
            ("progressive", 0, true, SamplingFactor::F_2_2),
        ] {
            let noise = |i: u32| ((i.wrapping_mul(2_654_435_761) >> 27) + i / 64) as u8;
            let pixels: Vec<u8> = (0..u32::from(width) * u32::from(height) * 3).map(noise).collect();
            let mut jpeg = Vec::new();
            let mut encoder = Encoder::new(&mut jpeg, 90);
            encoder.set_sampling_factor(sampling);
            encoder.set_progressive(progressive);
            if restarts > 0 {
                encoder.set_restart_interval(restarts);
            }
            encoder.encode(&pixels, width, height, ColorType::Rgb).unwrap();
            made.push((format!("{width}x{height} {kind}"), jpeg));
        }
        for progressive in [false, true] {
            // In separate scans, because of the sampling factors.
            let inks: Vec<u8> = (0..u32::from(width) * u32::from(height) * 4).map(|i| (i / 7) as u8).collect();
            let mut jpeg = Vec::new();
            let mut encoder = Encoder::new(&mut jpeg, 90);
            encoder.set_sampling_factor(SamplingFactor::F_4_2);
            encoder.set_progressive(progressive);
            encoder.encode(&inks, width, height, ColorType::Cmyk).unwrap();
            if progressive {
                // The scans of DC alone: the low frequencies are estimated.
                let scans: Vec<_> = memchr::memmem::find_iter(&jpeg, &[0xff, 0xda]).collect();
                jpeg.truncate(scans[4]);
                jpeg.extend([0xff, 0xd9]);
            }
            made.push((format!("{width}x{height} CMYK, progressive {progressive}"), jpeg));
        }
    }
    made
}

/// An image whose header announces no restart markers, with as many of them as fit.
fn full_of_markers(jpeg: &[u8]) -> Vec<u8> {
    let scan = jpeg.windows(2).position(|w| w == [0xff, 0xda]).unwrap() + 14;
    let markers = (0..200_000).flat_map(|i| [0xff, 0xd0 + (i & 7) as u8]);
    jpeg[..scan].iter().copied().chain(markers).chain([0xff, 0xd9]).collect()
}

/// A grey progressive image of 64 x 64 pixels with a scan, and a table, for each coefficient.
fn with_many_scans() -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        let length = (body.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker][..], &length, body].concat()
    };
    let mut jpeg = vec![0xff, 0xd8];
    jpeg.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
    jpeg.extend(segment(0xc2, &[8, 0, 64, 0, 64, 1, 1, 0x11, 0]));
    for k in 0..64 {
        // A table of one code, 0: no difference, or no coefficients.
        let class = u8::from(k > 0) << 4;
        let counts = [1u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        jpeg.extend(segment(0xc4, &[&[class][..], &counts, &[0]].concat()));
        jpeg.extend(segment(0xda, &[1, 1, 0, k, k, 0]));
        jpeg.extend([0; 8]);
    }
    jpeg.extend([0xff, 0xd9]);
    jpeg
}

/// Bytes of the Huffman tables, which `held_bytes` does not count.
const FIXED: usize = 180_000;

/// The only test of its program, because the allocator counts all threads.
#[test]
fn decoding_takes_no_more_memory_than_scratch_bytes() {
    let mut finder = Decoder::new();
    let mut tightest = 0.0f64;
    for (name, jpeg) in images() {
        let image = ParsedImage::parse(&jpeg, &Limits::default()).unwrap();
        let header = *image.header();
        let mut payload = Vec::new();
        entries::find(&jpeg, 1, &mut finder, &mut payload).unwrap();
        for scale in Scale::ALL {
            let (width, height) = header.size(scale);
            let part = Rect { x: width / 3, y: height / 3, width: width.div_ceil(2), height: height.div_ceil(2) };
            let hints = Some(&payload[..]);
            for (rect, hints) in [(None, None), (None, hints), (Some(part), None), (Some(part), hints)] {
                let request = Request { rect, scale, ..Request::default() };
                let promised = Decoder::scratch_bytes(&image, &request).unwrap();
                let stride = width as usize * 3;
                let mut out = vec![0; stride * height as usize];
                let (decoder, most, held) = measured(|| {
                    let mut decoder = Decoder::new();
                    decoder.decode(&jpeg, hints, &request, &mut out, stride).unwrap();
                    decoder
                });
                assert!(most <= promised, "{name} {request:?}: took {most} bytes, promised {promised}");
                let counted = decoder.held_bytes();
                assert!(counted <= held, "{name}: holds {held} bytes, held_bytes is {counted}");
                assert!(held - counted <= FIXED, "{name}: holds {held} bytes, held_bytes is {counted}");
                tightest = tightest.max(most as f64 / promised as f64);
            }
        }
        if name.contains("CMYK") {
            continue;
        }
        let hostile = full_of_markers(&jpeg);
        let mut out = vec![0; header.width as usize * header.height as usize * 3];
        let image = ParsedImage::parse(&hostile, &Limits::default()).unwrap();
        let promised = Decoder::scratch_bytes(&image, &Request::default()).unwrap();
        let (result, most, _) = measured(|| {
            let mut decoder = Decoder::new();
            decoder.decode(&hostile, None, &Request::default(), &mut out, header.width as usize * 3)
        });
        assert!(result.is_err() && most <= promised, "{name}, hostile: took {most} bytes, promised {promised}");
        let scan = jpeg.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap() + 20;
        let cut = &jpeg[..scan + (jpeg.len() - scan) / 3];
        for (what, damaged) in [("hostile", &hostile[..]), ("cut", cut)] {
            let image = ParsedImage::parse(damaged, &Limits::default()).unwrap();
            let request = Request { fill: true, ..Request::default() };
            let promised = Decoder::scratch_bytes(&image, &request).unwrap();
            let (_, most, _) = measured(|| {
                let mut decoder = Decoder::new();
                let decoded = decoder.decode(damaged, None, &request, &mut out, header.width as usize * 3);
                assert!(what == "hostile" || decoded.is_ok_and(|outcome| outcome.filled), "{name}, {what}");
                decoder
            });
            assert!(most <= promised, "{name}, {what}, filled: took {most} bytes, promised {promised}");
        }
    }
    let jpeg = with_many_scans();
    let image = ParsedImage::parse(&jpeg, &Limits::default()).unwrap();
    let promised = Decoder::scratch_bytes(&image, &Request::default()).unwrap();
    let mut out = vec![0; 64 * 64 * 3];
    let (decoder, most, held) = measured(|| {
        let mut decoder = Decoder::new();
        decoder.decode(&jpeg, None, &Request::default(), &mut out, 64 * 3).unwrap();
        decoder
    });
    assert!(out.iter().all(|&v| v == 128));
    assert!(most <= promised && decoder.held_bytes() <= held, "64 scans: took {most} bytes, promised {promised}");
    // A loose bound would keep loaders from decoding images that fit into memory.
    assert!(tightest > 0.7, "{tightest}");
}
