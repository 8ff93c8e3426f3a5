//! JPEG decoding on one core: whole images, and the crops of RandomResizedCrop, beside what the `image` crate uses
//! (zune-jpeg); and what entry points cost in bytes and save in time, by their density.
//!
//! `cargo run --release -p shardtool-benches --bin jpeg -- FOLDER [ROUNDS]`. libjpeg-turbo is in `benches/compare/jpeg`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use shardtool_benches::{Candidate, compare, print};
use shardtool_jpeg::{Decoder, Header, Limits, Outcome, Rect, Request, Scale, entries, relayout};

/// One image, its crop, and its entry points at each density.
struct Sample {
    jpeg: Vec<u8>,
    header: Header,
    crop: Rect,
    entries: Vec<Vec<u8>>,
}

/// MCU rows from entry to entry that are compared; the last one stands for [`entries::default_step`].
const STEPS: [u32; 5] = [1, 2, 4, 8, 0];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// splitmix64, as a fraction: the same crops in every run.
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// torchvision's RandomResizedCrop: area 0.08 to 1, aspect 3/4 to 4/3, ten tries, then the whole image.
fn crop(width: u32, height: u32, state: &mut u64) -> Rect {
    let area = f64::from(width) * f64::from(height);
    for _ in 0..10 {
        let target = area * (0.08 + 0.92 * random(state));
        let ratio = (0.75f64.ln() + random(state) * (16.0f64 / 9.0).ln()).exp();
        let (w, h) = ((target * ratio).sqrt().round() as u32, (target / ratio).sqrt().round() as u32);
        if (1..=width).contains(&w) && (1..=height).contains(&h) {
            let mut at = |free: u32| (random(state) * f64::from(free + 1)) as u32;
            return Rect { x: at(width - w), y: at(height - h), width: w, height: h };
        }
    }
    Rect { x: 0, y: 0, width, height }
}

fn ours(decoder: &mut Decoder, s: &Sample, rect: Option<Rect>, entries: Option<usize>, out: &mut Vec<u8>) -> Outcome {
    let (width, height) = rect.map_or(s.header.size(Scale::Full), |r| (r.width, r.height));
    let stride = width as usize * 3;
    out.resize(out.len().max(stride * height as usize), 0);
    let hints = entries.map(|step| &s.entries[step][..]);
    decoder.decode(&s.jpeg, hints, &Request { rect, scale: Scale::Full }, out, stride).expect("pixels")
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
            let entries = STEPS.map(|step| {
                let step = if step == 0 { entries::default_step(&header) } else { step };
                let mut payload = Vec::new();
                entries::find(&jpeg, step, &mut decoder, &mut payload).expect("a good image");
                payload
            });
            let crop = crop(header.width, header.height, &mut state);
            Some(Sample { jpeg, header, crop, entries: entries.into() })
        })
        .collect();
    let n = samples.len() as f64;
    let bytes: usize = samples.iter().map(|s| s.jpeg.len()).sum();
    println!("{n} of {} images, {:.0} bytes each", paths.len(), bytes as f64 / n);
    for (i, step) in STEPS.iter().enumerate() {
        let hints: usize = samples.iter().map(|s| s.entries[i].len()).sum();
        let name = if *step == 0 { "16 pixel rows".to_owned() } else { format!("{step} MCU rows") };
        println!(
            "  entry points every {name:<14} {:>5.0} bytes an image, {:.2} %",
            hints as f64 / n,
            100.0 * hints as f64 / bytes as f64
        );
    }

    // The answers: entry points and crops change no pixel, and the `image` crate agrees to within its rounding.
    let (mut whole, mut part, mut far) = (Vec::new(), Vec::new(), 0u64);
    let mut ways: Vec<(String, usize)> = Vec::new();
    for s in &samples {
        ours(&mut decoder, s, None, None, &mut whole);
        for hints in [None, Some(0), Some(3), Some(4)] {
            let outcome = ours(&mut decoder, s, Some(s.crop), hints, &mut part);
            assert!(!outcome.entries_rejected || s.entries[hints.unwrap_or(0)].is_empty(), "entry points rejected");
            if matches!(hints, None | Some(4)) {
                let way =
                    format!("{} by {:?}", hints.map_or("without entry points", |_| "with entry points"), outcome.path);
                match ways.iter_mut().find(|(w, _)| *w == way) {
                    Some((_, count)) => *count += 1,
                    None => ways.push((way, 1)),
                }
            }
            let row = s.header.width as usize * 3;
            for (y, line) in part.chunks(s.crop.width as usize * 3).take(s.crop.height as usize).enumerate() {
                let at = (s.crop.y as usize + y) * row + s.crop.x as usize * 3;
                assert!(line == &whole[at..at + line.len()], "a crop differs from the whole");
            }
        }
        let theirs =
            image::load_from_memory_with_format(&s.jpeg, image::ImageFormat::Jpeg).expect("pixels").into_rgb8();
        far += theirs.as_raw().iter().zip(&whole).filter(|(a, b)| a.abs_diff(**b) > 24).count() as u64;
    }
    let samples_of_color: u64 =
        samples.iter().map(|s| 3 * u64::from(s.header.width) * u64::from(s.header.height)).sum();
    assert!(far * 1000 < samples_of_color, "{far} samples are far from those of the image crate");
    for (way, count) in &ways {
        println!("  crop {way}: {count} images");
    }
    let entered = ways.iter().filter(|(w, _)| w == "with entry points by Entries").map(|(_, c)| *c).sum::<usize>();
    let able = samples.iter().filter(|s| !s.entries[4].is_empty()).count();
    assert!(entered * 100 >= able * 99, "{entered} of {able} crops were entered by entry points");

    let decoder = RefCell::new(decoder);
    let portable = RefCell::new(Decoder::new().with_simd(false));
    let zune = Candidate::new("image crate, whole", || {
        for s in &samples {
            image::load_from_memory_with_format(&s.jpeg, image::ImageFormat::Jpeg).expect("pixels");
        }
        n
    });
    let run = |name, decoder, whole: bool, hints: Option<usize>| {
        let (samples, mut out): (_, Vec<u8>) = (&samples, Vec::new());
        let decoder: &RefCell<Decoder> = decoder;
        Candidate::new(name, move || {
            for s in samples {
                ours(&mut decoder.borrow_mut(), s, (!whole).then_some(s.crop), hints, &mut out);
            }
            n
        })
    };
    let mut finding = Vec::new();
    let mut candidates = vec![
        zune,
        run("whole, portable", &portable, true, None),
        run("whole", &decoder, true, None),
        run("whole, entry points", &decoder, true, Some(4)),
        run("crop", &decoder, false, None),
        run("crop, entries every MCU row", &decoder, false, Some(0)),
        run("crop, every 2", &decoder, false, Some(1)),
        run("crop, every 4", &decoder, false, Some(2)),
        run("crop, every 8", &decoder, false, Some(3)),
        run("crop, every 16 pixel rows (default)", &decoder, false, Some(4)),
        Candidate::new("finding entry points", || {
            for s in &samples {
                finding.clear();
                let step = entries::default_step(&s.header);
                entries::find(&s.jpeg, step, &mut decoder.borrow_mut(), &mut finding).expect("a good image");
            }
            n
        }),
    ];
    print("bytes to RGB, one core", "images/s", 1.0, &compare(rounds, &mut candidates));
    drop(candidates);

    let mut relaid = 0;
    let start = std::time::Instant::now();
    for s in &samples {
        relaid += relayout(&s.jpeg, &mut decoder.borrow_mut()).map_or(s.jpeg.len(), |j| j.jpeg.len().min(s.jpeg.len()));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("re-layout saves {:.2} % at {:.0} images/s", 100.0 - 100.0 * relaid as f64 / bytes as f64, n / seconds);
}
