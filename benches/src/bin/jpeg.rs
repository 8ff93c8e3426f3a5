//! Measures the bytes that entry points take and the time that they save, by density, and the time of finding them and of
//! the lossless transcode.
//!
//! `cargo run --release -p shardtool-benches --bin jpeg -- FOLDER [ROUNDS]`, by CPU time. Other decoders are in
//! `benches/compare/jpeg`; `crop` measures everything from bytes to batch.

use std::cell::RefCell;
use std::path::Path;

use shardtool_benches::photographs::{Photograph, files, photographs, random_resized_crop};
use shardtool_benches::{Candidate, compare_cpu, print};
use shardtool_jpeg::{Decoder, Rect, Request, Scale, entries, transcode};

/// Compared intervals of entry points in MCU rows; 0 is [`entries::default_step`].
const STEPS: [u32; 5] = [0, 1, 2, 4, 8];

/// A photograph and its entry points at each density.
struct Sample {
    photograph: Photograph,
    entries: Vec<Vec<u8>>,
}

/// Decodes a rectangle and returns whether the entry points were used.
fn decode(decoder: &mut Decoder, p: &Photograph, rect: Rect, entries: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    let stride = rect.width as usize * 3;
    out.resize(out.len().max(stride * rect.height as usize), 0);
    let request = Request { rect: Some(rect), ..Request::default() };
    let outcome = decoder.decode(&p.jpeg, entries, &request, out, stride).expect("pixels");
    outcome.path == shardtool_jpeg::DecodePath::Entries
}

fn name(step: u32) -> String {
    if step == 0 { "16 pixel rows (default)".to_owned() } else { format!("{step} MCU rows") }
}

/// Checks that entry points and crops change no pixel, and that crops use entry points.
fn check(decoder: &mut Decoder, samples: &[Sample]) {
    let (mut whole, mut part, mut entered) = (Vec::new(), Vec::new(), [0; STEPS.len()]);
    for Sample { photograph: p, entries } in samples {
        let (width, height) = p.header.size(Scale::Full);
        decode(decoder, p, Rect { x: 0, y: 0, width, height }, None, &mut whole);
        let hints = std::iter::once(None).chain(entries.iter().map(|e| Some(&e[..])));
        for (i, hints) in hints.enumerate() {
            let by_entries = decode(decoder, p, p.crop, hints, &mut part);
            if let Some(step) = i.checked_sub(1) {
                entered[step] += usize::from(by_entries);
            }
            for (y, line) in part.chunks(p.crop.width as usize * 3).take(p.crop.height as usize).enumerate() {
                let at = ((p.crop.y as usize + y) * width as usize + p.crop.x as usize) * 3;
                assert!(line == &whole[at..at + line.len()], "a crop differs from the whole image");
            }
        }
    }
    println!("crops decoded from entry points, by density: {entered:?} of {}", samples.len());
    assert!(entered.iter().all(|&n| n * 100 >= samples.len() * 99), "at least 99 % of the crops use entry points");
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("FOLDER [ROUNDS]");
    let rounds = args.next().map_or(5, |r| r.parse().expect("a number of rounds"));
    let paths = files(Path::new(&folder));
    let mut decoder = Decoder::new();
    let photographs = photographs(&paths, &random_resized_crop(224));
    let samples: Vec<Sample> = photographs
        .into_iter()
        .map(|photograph| {
            let each = STEPS.map(|step| {
                let step = if step == 0 { entries::default_step(&photograph.header) } else { step };
                let mut payload = Vec::new();
                entries::find(&photograph.jpeg, step, &mut decoder, &mut payload).expect("a good image");
                payload
            });
            Sample { photograph, entries: each.into() }
        })
        .collect();
    let n = samples.len() as f64;
    let bytes: usize = samples.iter().map(|s| s.photograph.jpeg.len()).sum();
    println!("{n} of {} images, {:.0} bytes each", paths.len(), bytes as f64 / n);
    for (i, step) in STEPS.iter().enumerate() {
        let hints: usize = samples.iter().map(|s| s.entries[i].len()).sum();
        let share = 100.0 * hints as f64 / bytes as f64;
        println!("  entry points every {:<24} {:>5.0} bytes per image, {share:.2} %", name(*step), hints as f64 / n);
    }
    check(&mut decoder, &samples);

    let decoder = RefCell::new(decoder);
    let (samples, decoder) = (&samples, &decoder);
    let crop = |step: Option<usize>| {
        let mut out = Vec::new();
        move || {
            for s in samples {
                let hints = step.map(|i| &s.entries[i][..]);
                decode(&mut decoder.borrow_mut(), &s.photograph, s.photograph.crop, hints, &mut out);
            }
            n
        }
    };
    let names = STEPS.map(|step| format!("crop, entries every {}", name(step)));
    let (mut payload, mut transcoded) = (Vec::new(), 0);
    let mut candidates = vec![Candidate::new("crop, no entry points", crop(None))];
    candidates.extend(names.iter().enumerate().map(|(i, name)| Candidate::new(name, crop(Some(i)))));
    candidates.push(Candidate::new("finding entry points", || {
        for Sample { photograph: p, .. } in samples {
            payload.clear();
            let step = entries::default_step(&p.header);
            entries::find(&p.jpeg, step, &mut decoder.borrow_mut(), &mut payload).expect("a good image");
        }
        n
    }));
    candidates.push(Candidate::new("lossless transcode, with comparison", || {
        transcoded = 0;
        for Sample { photograph: p, .. } in samples {
            let new = transcode(&p.jpeg, &mut decoder.borrow_mut()).expect("a good image");
            transcoded += new.jpeg.len().min(p.jpeg.len());
        }
        n
    }));
    print("by CPU time", "images/s", 1.0, &compare_cpu(rounds, &mut candidates));
    drop(candidates);
    println!("the transcode saves {:.2} %", 100.0 - 100.0 * transcoded as f64 / bytes as f64);
}
