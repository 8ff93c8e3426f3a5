//! This project's JPEG decoder beside libjpeg-turbo, on one core, same images, same run. Every image's pixels are compared
//! first; a difference fails the run.
//!
//! `cargo run --release --manifest-path benches/compare/jpeg/Cargo.toml -- FOLDER [ROUNDS]`

use std::path::{Path, PathBuf};

use shardtool_benches::{Candidate, compare, print};
use shardtool_jpeg::{Decoder, Header, Limits, Rect, Request, Scale, entries};
use turbojpeg::{Decompressor, Image, PixelFormat, ScalingFactor};

/// One image, and the crop that RandomResizedCrop asks of it.
struct Sample {
    jpeg: Vec<u8>,
    header: Header,
    entries: Vec<u8>,
    crop: Rect,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// splitmix64, for crops that are the same in every run.
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// torchvision's RandomResizedCrop: area 0.08 to 1, aspect 3/4 to 4/3, ten tries, then the middle.
fn crop(width: u32, height: u32, state: &mut u64) -> Rect {
    let area = f64::from(width) * f64::from(height);
    for _ in 0..10 {
        let target = area * (0.08 + 0.92 * random(state));
        let ratio = ((0.75f64).ln() + random(state) * ((4.0f64 / 3.0).ln() - (0.75f64).ln())).exp();
        let (w, h) = ((target * ratio).sqrt().round() as u32, (target / ratio).sqrt().round() as u32);
        if (1..=width).contains(&w) && (1..=height).contains(&h) {
            let at = |free: u32, state: &mut u64| (random(state) * f64::from(free + 1)) as u32;
            return Rect { x: at(width - w, state), y: at(height - h, state), width: w, height: h };
        }
    }
    let (w, h) = (width.min(height * 4 / 3).max(1), height.min(width * 4 / 3).max(1));
    Rect { x: (width - w) / 2, y: (height - h) / 2, width: w, height: h }
}

fn turbo(decoder: &mut Decompressor, sample: &Sample, scale: Scale, out: &mut Vec<u8>) -> usize {
    decoder.set_scaling_factor(ScalingFactor::new(1, scale.divisor() as usize)).expect("a scale");
    decoder.read_header(&sample.jpeg).expect("a JPEG");
    let (width, height) = sample.header.size(scale);
    let (width, height) = (width as usize, height as usize);
    out.resize(out.len().max(width * height * 3), 0);
    let image = Image { pixels: &mut out[..], width, pitch: width * 3, height, format: PixelFormat::RGB };
    decoder.decompress(&sample.jpeg, image).expect("pixels");
    width * height * 3
}

#[derive(Clone, Copy)]
struct How {
    entries: bool,
    crop: bool,
    scale: Scale,
}

fn ours(decoder: &mut Decoder, sample: &Sample, how: How, out: &mut Vec<u8>) -> usize {
    let rect = how.crop.then_some(sample.crop);
    let (width, height) = rect.map_or(sample.header.size(how.scale), |r| (r.width, r.height));
    let stride = width as usize * 3;
    out.resize(out.len().max(stride * height as usize), 0);
    let request = Request { rect, scale: how.scale };
    let entries = how.entries.then_some(&sample.entries[..]);
    let outcome = decoder.decode(&sample.jpeg, entries, &request, out, stride).expect("pixels");
    assert!(!outcome.entries_rejected || sample.entries.is_empty(), "entry points were not used");
    stride * height as usize
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("FOLDER [ROUNDS]");
    let rounds = args.next().map_or(5, |r| r.parse().expect("a number of rounds"));
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    paths.sort();
    let (mut decoder, mut state) = (Decoder::new(), 1);
    let samples: Vec<Sample> = paths
        .iter()
        .filter_map(|path| {
            let jpeg = std::fs::read(path).expect("a file");
            let header = Header::parse(&jpeg, &Limits::default()).ok()?;
            let mut found = Vec::new();
            entries::find(&jpeg, entries::default_step(&header), &mut decoder, &mut found).ok()?;
            Some(Sample { crop: crop(header.width, header.height, &mut state), jpeg, header, entries: found })
        })
        .collect();
    let n = samples.len() as f64;
    let bytes: usize = samples.iter().map(|s| s.jpeg.len()).sum();
    let hints: usize = samples.iter().map(|s| s.entries.len()).sum();
    let rows: f64 = samples.iter().map(|s| f64::from(s.crop.height) / f64::from(s.header.height)).sum();
    println!(
        "{n} of {} images, {:.0} bytes each, entry points {:.2} %",
        paths.len(),
        bytes as f64 / n,
        100.0 * hints as f64 / bytes as f64
    );
    println!("random crops take {:.2} of the rows\n", rows / n);

    let mut theirs = Decompressor::new().expect("libjpeg-turbo");
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for sample in &samples {
        for scale in Scale::ALL {
            let size = turbo(&mut theirs, sample, scale, &mut a);
            for entries in [false, true] {
                ours(&mut decoder, sample, How { entries, crop: false, scale }, &mut b);
                assert!(a[..size] == b[..size], "pixels differ at 1/{}", scale.divisor());
            }
        }
    }

    let whole = How { entries: false, crop: false, scale: Scale::Full };
    let mut portable = Decoder::new().with_simd(false);
    let runs: [(&str, How, bool); 9] = [
        ("ours, whole", whole, false),
        ("ours, whole, entry points", How { entries: true, ..whole }, false),
        ("ours, whole, portable", whole, true),
        ("ours, crop", How { crop: true, ..whole }, false),
        ("ours, crop, entry points", How { crop: true, entries: true, ..whole }, false),
        ("ours, 1/2", How { scale: Scale::Half, ..whole }, false),
        ("ours, 1/2, entry points", How { scale: Scale::Half, entries: true, ..whole }, false),
        ("ours, 1/8", How { scale: Scale::Eighth, ..whole }, false),
        ("ours, 1/8, entry points", How { scale: Scale::Eighth, entries: true, ..whole }, false),
    ];
    let (decoder, portable) = (std::cell::RefCell::new(decoder), std::cell::RefCell::new(&mut portable));
    let theirs = std::cell::RefCell::new(theirs);
    let mut candidates = Vec::new();
    for (name, scale) in [
        ("libjpeg-turbo, whole", Scale::Full),
        ("libjpeg-turbo, 1/2", Scale::Half),
        ("libjpeg-turbo, 1/8", Scale::Eighth),
    ] {
        let (samples, theirs, mut out) = (&samples, &theirs, Vec::new());
        candidates.push(Candidate::new(name, move || {
            samples.iter().for_each(|s| {
                turbo(&mut theirs.borrow_mut(), s, scale, &mut out);
            });
            n
        }));
    }
    for (name, how, slow) in runs {
        let (samples, decoder, portable, mut out) = (&samples, &decoder, &portable, Vec::new());
        candidates.push(Candidate::new(name, move || {
            let (mut fast, mut slow_one) = (decoder.borrow_mut(), portable.borrow_mut());
            let decoder: &mut Decoder = if slow { &mut slow_one } else { &mut fast };
            samples.iter().for_each(|s| {
                ours(decoder, s, how, &mut out);
            });
            n
        }));
    }
    print("bytes to RGB, one core", "images/s", 1.0, &compare(rounds, &mut candidates));
}
