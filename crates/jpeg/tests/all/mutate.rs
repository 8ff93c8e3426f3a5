//! Damaged images made from good ones: all decode paths must agree whether an image is damaged and on its pixels, and none may
//! panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shardtool_jpeg::{Decoder, Error, Header, Limits, Rect, Request, Scale, complete_len, entries, transcode};

use crate::decoding::{decode, part, random, rect, whole};

/// Counts of the results.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    /// Images decoded.
    pub(crate) decoded: u64,
    /// Images with an error.
    pub(crate) refused: u64,
    /// Decodes with entry points, good or damaged.
    pub(crate) hinted: u64,
    /// MCUs that came from speculation.
    pub(crate) speculative_mcus: u64,
}

/// Returns `image` with a few random changes.
fn mutate(image: &[u8], state: &mut u64) -> Vec<u8> {
    let mut bytes = image.to_vec();
    for _ in 0..1 + random(state) % 4 {
        let n = bytes.len().max(1) as u64;
        let at = (random(state) % n) as usize;
        if bytes.is_empty() {
            break;
        }
        match random(state) % 8 {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] = [0, 0xff, 0x7f, 0x80, 1][(random(state) % 5) as usize],
            2 => drop(bytes.drain(at..(at + 1 + (random(state) % 16) as usize).min(n as usize))),
            3 => {
                let copy = bytes[at..(at + 1 + (random(state) % 64) as usize).min(n as usize)].to_vec();
                let to = (random(state) % n) as usize;
                bytes.splice(to..to, copy);
            }
            // Bytes after a marker, on which most decisions depend.
            4 => {
                let markers: Vec<usize> = memchr::memchr_iter(0xff, &bytes).collect();
                if let Some(&m) = markers.get((random(state) % markers.len().max(1) as u64) as usize) {
                    let to = (m + 1 + (random(state) % 20) as usize).min(bytes.len() - 1);
                    bytes[to] = random(state) as u8;
                }
            }
            _ => bytes[at] ^= 1 << (random(state) % 8),
        }
    }
    bytes
}

/// Damages one image, and decodes it by several paths.
fn execute(image: &[u8], hints: &[u8], state: &mut u64, decoders: &mut [Decoder; 3], tally: &mut Tally) {
    let jpeg = mutate(image, state);
    let [fast, portable, eager] = decoders;
    let Ok(header) = Header::parse(&jpeg, fast.limits()) else {
        tally.refused += 1;
        return;
    };
    let scale = Scale::ALL[(random(state) % 4) as usize];
    let size = header.size(scale);
    let all = decode(fast, &jpeg, None, &whole(scale));
    if random(state).is_multiple_of(4) {
        let plain = decode(portable, &jpeg, None, &whole(scale));
        assert_eq!(all.is_ok(), plain.is_ok(), "only one finds damage: vector instructions or portable code");
        assert!(all.is_err() || all == plain, "vector instructions change pixels");
    }
    if random(state).is_multiple_of(2) {
        let speculative = decode(eager, &jpeg, None, &whole(scale));
        assert_eq!(all.is_ok(), speculative.is_ok(), "only one finds damage: with or without speculation");
        assert!(all.is_err() || all == speculative, "speculation changes pixels");
    }
    let step = 1 + (random(state) % 8) as u32;
    let (mut payload, mut again) = (Vec::new(), Vec::new());
    let found = entries::find(&jpeg, step, fast, &mut payload);
    // An image of several scans has no entry points, and its data are not read.
    assert_eq!(
        found.is_ok(),
        all.is_ok() || !header.one_scan,
        "only one finds damage: decoding or scan-only decoding: {found:?}"
    );
    let speculative = entries::find(&jpeg, step, eager, &mut again);
    assert!(
        found.is_ok() == speculative.is_ok() && again == payload,
        "speculation changes entry points: {speculative:?}"
    );
    let area: Rect = rect(size, state);
    let request = Request { rect: Some(area), scale, ..Request::default() };
    let cut = decode(fast, &jpeg, None, &request);
    let speculative = decode(eager, &jpeg, None, &request);
    assert_eq!(
        cut.is_ok(),
        speculative.is_ok(),
        "only one finds damage above a rectangle: with or without speculation"
    );
    assert!(cut.is_err() || cut == speculative, "speculation changes pixels of a rectangle");
    let filled = decode(fast, &jpeg, None, &Request { fill: true, ..whole(scale) });
    if let Ok(pixels) = &filled {
        let part_filled = decode(fast, &jpeg, Some(&payload), &Request { fill: true, ..request });
        assert!(
            part_filled.is_ok_and(|cut| cut == part(pixels, size.0, area)),
            "a rectangle of a damaged image differs"
        );
        let plain = decode(portable, &jpeg, None, &Request { fill: true, ..whole(scale) });
        assert!(plain == filled, "vector instructions change pixels of a damaged image");
    }
    // Damage in scans that a reduced image leaves out is not found. Of an image that ends inside a further header, libjpeg
    // decodes a scan without data.
    let good = all.is_ok() && complete_len(&jpeg).is_ok() && (header.one_scan || scale == Scale::Full);
    assert!(!good || filled == all, "filling changes a good image");
    match &all {
        Ok(pixels) => {
            tally.decoded += 1;
            assert!(cut.is_ok_and(|cut| cut == part(pixels, size.0, area)), "a rectangle differs from the whole image");
            let cut = decode(fast, &jpeg, Some(&payload), &request).unwrap();
            assert!(cut == part(pixels, size.0, area), "entry points change pixels");
            if random(state).is_multiple_of(8) {
                match transcode(&jpeg, fast) {
                    Ok(again) => {
                        let again = decode(fast, &again.jpeg, None, &whole(scale));
                        assert!(again.as_ref() == Ok(pixels), "transcoding changes pixels");
                    }
                    Err(e) => assert!(e != Error::TranscodeMismatch, "transcoding changes coefficients"),
                }
            }
        }
        Err(_) => {
            tally.refused += 1;
            let _ = transcode(&jpeg, fast);
        }
    }
    // Entry points of the undamaged image, and damaged ones, must not cause a panic. They may fit above the damage.
    if !hints.is_empty() {
        tally.hinted += 1;
        let hints = if random(state).is_multiple_of(2) { hints.to_vec() } else { mutate(hints, state) };
        let request = Request { rect: Some(rect(size, state)), scale, ..Request::default() };
        let _ = decode(fast, &jpeg, Some(&hints), &request);
    }
}

/// Aborts the program if one execution takes longer than a minute, and prints which one.
fn watch(running: &Arc<AtomicU64>) {
    let running = Arc::downgrade(running);
    std::thread::spawn(move || {
        let mut last = None;
        while let Some(now) = running.upgrade().map(|running| running.load(Ordering::Relaxed)) {
            if last == Some(now) {
                eprintln!("execution {now} does not end: repeat it with --seed {now} --executions 1");
                std::process::abort();
            }
            last = Some(now);
            for _ in 0..60 {
                std::thread::sleep(Duration::from_secs(1));
                if running.strong_count() == 0 {
                    return;
                }
            }
        }
    });
}

/// Damages and decodes random ones of `images`, `executions` times from `seed`. A failure prints the seed with which that
/// execution can be repeated alone.
pub(crate) fn run(images: &[(String, Vec<u8>)], seed: u64, executions: u64) -> Tally {
    let limits = Limits::default().with_pixels(1 << 14);
    let new = || Decoder::new().with_limits(limits);
    let mut decoders = [new(), new().with_simd(false), new().with_eager_speculation()];
    let mut tally = Tally::default();
    let hints: Vec<Vec<u8>> = images
        .iter()
        .map(|(_, jpeg)| {
            let mut payload = Vec::new();
            entries::find(jpeg, 1, &mut decoders[0], &mut payload).expect("a good image");
            payload
        })
        .collect();
    let running = Arc::new(AtomicU64::new(seed));
    watch(&running);
    for i in seed..seed + executions {
        running.store(i, Ordering::Relaxed);
        let mut state = i.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let which = (random(&mut state) % images.len() as u64) as usize;
        let (name, jpeg) = &images[which];
        let result = catch_unwind(AssertUnwindSafe(|| {
            execute(jpeg, &hints[which], &mut state, &mut decoders, &mut tally);
        }));
        assert!(result.is_ok(), "execution {i} failed, on {name}: repeat it with --seed {i} --executions 1");
    }
    tally.speculative_mcus = decoders[2].speculative_mcus();
    tally
}
