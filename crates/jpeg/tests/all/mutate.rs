//! Damaged images, made from good ones: every way of decoding one must agree with every other, and none may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shardtool_jpeg::{Decoder, Error, Header, Limits, Rect, Request, Scale, entries, transcode};

use crate::decoding::{decode, part, random, rect, whole};

/// What the executions came to.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    /// Images decoded.
    pub(crate) decoded: u64,
    /// Images refused.
    pub(crate) refused: u64,
    /// Decodes entered by entry points, good or damaged.
    pub(crate) hinted: u64,
    /// MCUs that came from guesses.
    pub(crate) guessed: u64,
}

/// Bytes of `image` with a few changes.
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
            // Markers are where the decisions are.
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

/// One image, damaged by `state`, decoded in several ways.
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
        assert_eq!(all.is_ok(), plain.is_ok(), "vector instructions decide over damage");
        assert!(all.is_err() || all == plain, "vector instructions change pixels");
    }
    if random(state).is_multiple_of(2) {
        let guessed = decode(eager, &jpeg, None, &whole(scale));
        assert_eq!(all.is_ok(), guessed.is_ok(), "guesses decide over damage");
        assert!(all.is_err() || all == guessed, "guesses change pixels");
    }
    let step = 1 + (random(state) % 8) as u32;
    let (mut payload, mut again) = (Vec::new(), Vec::new());
    let found = entries::find(&jpeg, step, fast, &mut payload);
    // Of an image of several scans there is nothing to find, damaged or not.
    assert_eq!(found.is_ok(), all.is_ok() || !header.one_scan, "passing over decides over damage: {found:?}");
    let guessed = entries::find(&jpeg, step, eager, &mut again);
    assert!(found.is_ok() == guessed.is_ok() && again == payload, "guesses change entry points: {guessed:?}");
    let area: Rect = rect(size, state);
    let request = Request { rect: Some(area), scale };
    let cut = decode(fast, &jpeg, None, &request);
    let guessed = decode(eager, &jpeg, None, &request);
    assert_eq!(cut.is_ok(), guessed.is_ok(), "guesses decide over damage above a rectangle");
    assert!(cut.is_err() || cut == guessed, "guesses change pixels of a rectangle");
    match &all {
        Ok(pixels) => {
            tally.decoded += 1;
            assert!(cut.is_ok_and(|cut| cut == part(pixels, size.0, area)), "a rectangle is no part of the image");
            let cut = decode(fast, &jpeg, Some(&payload), &request).unwrap();
            assert!(cut == part(pixels, size.0, area), "entry points change pixels");
            if random(state).is_multiple_of(8) {
                match transcode(&jpeg, fast) {
                    Ok(again) => {
                        let again = decode(fast, &again.jpeg, None, &whole(scale));
                        assert!(again.as_ref() == Ok(pixels), "re-layout changes pixels");
                    }
                    Err(e) => assert!(e != Error::TranscodeMismatch, "re-layout changes coefficients"),
                }
            }
        }
        Err(_) => {
            tally.refused += 1;
            let _ = transcode(&jpeg, fast);
        }
    }
    // The entry points of the image as it was, and damaged ones: they may be of use above the damage, but not crash.
    if !hints.is_empty() {
        tally.hinted += 1;
        let hints = if random(state).is_multiple_of(2) { hints.to_vec() } else { mutate(hints, state) };
        let request = Request { rect: Some(rect(size, state)), scale };
        let _ = decode(fast, &jpeg, Some(&hints), &request);
    }
}

/// Ends the program where one execution takes longer than a minute: nothing else would tell which one never ends.
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

/// Damages `images` in turn, `executions` times from `seed`. A failure names the execution's seed, with which it can be
/// repeated alone.
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
    tally.guessed = decoders[2].speculative_mcus();
    tally
}
