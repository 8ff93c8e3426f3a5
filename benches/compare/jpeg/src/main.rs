//! Compares this project's JPEG decoder with libjpeg-turbo, zune-jpeg and the `image` crate by CPU time: one core, the same
//! images, in turn. First the pixels of every image are compared with those of libjpeg-turbo; a difference fails the run.
//!
//! `cargo run --release --manifest-path benches/compare/jpeg/Cargo.toml -- FOLDER [ROUNDS]`

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use shardtool_benches::photographs::{Photograph, files, photographs, random_resized_crop};
use shardtool_benches::{Candidate, compare_cpu, print};
use shardtool_decode::{DecodedRegion, Filter, PixelsRef, RegionOptions, ResizeScratch, apply_geometry};
use shardtool_jpeg::{Decoder, Outcome, Request, Scale};
use turbojpeg::{Decompressor, Image, PixelFormat, ScalingFactor};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

const SIDE: u32 = 224;

/// Decodes into `out` and returns the number of bytes.
fn turbo(decoder: &mut Decompressor, p: &Photograph, scale: Scale, out: &mut Vec<u8>) -> usize {
    decoder.set_scaling_factor(ScalingFactor::new(1, scale.divisor() as usize)).expect("a scale");
    decoder.read_header(&p.jpeg).expect("a JPEG");
    let (width, height) = p.header.size(scale);
    let (width, height) = (width as usize, height as usize);
    out.resize(out.len().max(width * height * 3), 0);
    let image = Image { pixels: &mut out[..], width, pitch: width * 3, height, format: PixelFormat::RGB };
    decoder.decompress(&p.jpeg, image).expect("pixels");
    width * height * 3
}

fn zune(p: &Photograph, out: &mut Vec<u8>) -> usize {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&p.jpeg[..]), options);
    decoder.decode_headers().expect("a JPEG");
    let size = decoder.output_buffer_size().expect("a size");
    out.resize(out.len().max(size), 0);
    decoder.decode_into(&mut out[..size]).expect("pixels");
    size
}

#[derive(Clone, Copy, Default)]
struct Work {
    entries: bool,
    crop: bool,
    scale: Scale,
}

fn ours(decoder: &mut Decoder, p: &Photograph, work: Work, out: &mut Vec<u8>) -> (usize, Outcome) {
    let rect = work.crop.then_some(p.crop);
    let (width, height) = rect.map_or(p.header.size(work.scale), |r| (r.width, r.height));
    let stride = width as usize * 3;
    out.resize(out.len().max(stride * height as usize), 0);
    let request = Request { rect, scale: work.scale, ..Request::default() };
    let outcome = decoder.decode(&p.jpeg, work.entries.then_some(&p.entries[..]), &request, out, stride);
    (stride * height as usize, outcome.expect("pixels"))
}

/// Checks that pixels equal those of libjpeg-turbo at every scale, with and without entry points, and that images take the
/// measured decode path.
fn check(samples: &[Photograph], files: usize) {
    let (mut theirs, mut decoder) = (Decompressor::new().expect("libjpeg-turbo"), Decoder::new());
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut paths: BTreeMap<String, usize> = BTreeMap::new();
    let mut entered = 0;
    for p in samples {
        for scale in Scale::ALL {
            let size = turbo(&mut theirs, p, scale, &mut a);
            for entries in [false, true] {
                let (_, outcome) = ours(&mut decoder, p, Work { entries, scale, crop: false }, &mut b);
                assert!(a[..size] == b[..size], "pixels differ at 1/{}", scale.divisor());
                if scale == Scale::Full {
                    let with = if entries { "with" } else { "without" };
                    *paths.entry(format!("{with} entry points: {:?}", outcome.path)).or_default() += 1;
                    entered += usize::from(outcome.path == shardtool_jpeg::DecodePath::Entries);
                }
            }
        }
    }
    for (path, count) in paths {
        println!("  {path}: {count} images");
    }
    println!("  decoded by the fallback, and not measured: {} of {files} files", files - samples.len());
    assert!(entered * 100 >= samples.len() * 99 && samples.len() * 100 >= files * 99, "at least 99 % of the files take the measured decode path");
}

/// Makes a candidate that does `work` on each photograph.
fn each<'a>(name: &'a str, samples: &'a [Photograph], mut work: impl FnMut(&Photograph) + 'a) -> Candidate<'a> {
    Candidate::new(name, move || {
        samples.iter().for_each(&mut work);
        samples.len() as f64
    })
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("FOLDER [ROUNDS]");
    let rounds = args.next().map_or(5, |r| r.parse().expect("a number of rounds"));
    let paths = files(Path::new(&folder));
    let samples = photographs(&paths, &random_resized_crop(SIDE));
    let n = samples.len() as f64;
    let bytes: usize = samples.iter().map(|s| s.jpeg.len()).sum();
    let hints: usize = samples.iter().map(|s| s.entries.len()).sum();
    let rows: f64 = samples.iter().map(|s| f64::from(s.crop.height) / f64::from(s.header.height)).sum();
    let (size, share) = (bytes as f64 / n, 100.0 * hints as f64 / bytes as f64);
    println!("{n} images, {size:.0} bytes each, entry points {share:.2} %; crops take {:.2} of the rows", rows / n);
    check(&samples, paths.len());

    let theirs = RefCell::new(Decompressor::new().expect("libjpeg-turbo"));
    let decoder = RefCell::new(Decoder::new());
    let portable = RefCell::new(Decoder::new().with_simd(false));
    let samples = &samples;
    let mut candidates = Vec::new();
    let scales = [("libjpeg-turbo, whole", Scale::Full), ("libjpeg-turbo, 1/2", Scale::Half)];
    for (name, scale) in
        scales.into_iter().chain([("libjpeg-turbo, 1/4", Scale::Quarter), ("libjpeg-turbo, 1/8", Scale::Eighth)])
    {
        let (theirs, mut out) = (&theirs, Vec::new());
        candidates.push(each(name, samples, move |p| {
            turbo(&mut theirs.borrow_mut(), p, scale, &mut out);
        }));
    }
    let mut out = Vec::new();
    candidates.push(each("zune-jpeg, whole", samples, move |p| {
        zune(p, &mut out);
    }));
    candidates.push(each("image, whole", samples, |p| {
        let image = image::load_from_memory_with_format(&p.jpeg, image::ImageFormat::Jpeg).expect("pixels");
        std::hint::black_box(image.into_rgb8());
    }));
    let whole = Work::default();
    let scaled = |scale| Work { scale, ..whole };
    for (name, work, decoder) in [
        ("ours, whole", whole, &decoder),
        ("ours, whole, portable", whole, &portable),
        ("ours, whole, entry points", Work { entries: true, ..whole }, &decoder),
        ("ours, crop", Work { crop: true, ..whole }, &decoder),
        ("ours, crop, entry points", Work { crop: true, entries: true, ..whole }, &decoder),
        ("ours, 1/2", scaled(Scale::Half), &decoder),
        ("ours, 1/2, entry points", Work { entries: true, ..scaled(Scale::Half) }, &decoder),
        ("ours, 1/4", scaled(Scale::Quarter), &decoder),
        ("ours, 1/4, entry points", Work { entries: true, ..scaled(Scale::Quarter) }, &decoder),
        ("ours, 1/8", scaled(Scale::Eighth), &decoder),
        ("ours, 1/8, entry points", Work { entries: true, ..scaled(Scale::Eighth) }, &decoder),
    ] {
        let mut out = Vec::new();
        candidates.push(each(name, samples, move |p| {
            ours(&mut decoder.borrow_mut(), p, work, &mut out);
        }));
    }
    print("bytes to RGB, one core", "images/s", 1.0, &compare_cpu(rounds, &mut candidates));

    let buffers = || (ResizeScratch::default(), vec![0; (SIDE * SIDE * 3) as usize]);
    let (mut pixels, (mut scratch, mut result)) = (Vec::new(), buffers());
    let mut candidates = vec![each("libjpeg-turbo, whole, our resize", samples, |p| {
        let size = turbo(&mut theirs.borrow_mut(), p, Scale::Full, &mut pixels);
        let view = PixelsRef::new(p.header.width, p.header.height, &pixels[..size]).expect("pixels");
        apply_geometry(&p.geometry, &DecodedRegion::whole_image(view), Filter::Bilinear, &mut result, &mut scratch)
            .expect("a window");
    })];
    for (name, entries, reducing_gap) in [
        ("ours, exact", false, None),
        ("ours, entry points, exact", true, None),
        ("ours, reducing gap 2", false, Some(2.0)),
        ("ours, entry points, reducing gap 2", true, Some(2.0)),
    ] {
        let (mut decoder, (mut scratch, mut result)) = (shardtool_decode::Decoder::default(), buffers());
        let options = RegionOptions::default().with_reducing_gap(reducing_gap);
        candidates.push(each(name, samples, move |p| {
            let hints = entries.then_some(&p.entries[..]);
            let window = decoder.decode_region(&p.jpeg, hints, &p.geometry, &options).expect("a good image");
            apply_geometry(&p.geometry, &window, Filter::Bilinear, &mut result, &mut scratch).expect("a window");
        }));
    }
    print("bytes to RandomResizedCrop(224), one core", "images/s", 1.0, &compare_cpu(rounds, &mut candidates));
}
