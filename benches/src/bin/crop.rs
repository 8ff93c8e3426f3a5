//! Measures the work from the bytes of a photograph to its row in the batch on one thread: RandomResizedCrop(224), and
//! Resize(256) with CenterCrop(224). Compares the libraries `image` and `fast_image_resize` with our decoding of the whole
//! image and of the crop only, with and without entry points, exact and reduced. Also prints the time of each stage.
//!
//! `cargo run --release -p shardtool-benches --bin crop -- [ROUNDS] [IMAGES] [FOLDER]`. FOLDER is by default
//! `data/imagenet-sample` in `../shared` or in the folder that `SHARDTOOL_SHARED` names; without it the benchmark is skipped.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use fast_image_resize as fir;
use fir::images::{Image, ImageRef};
use shardtool_benches::photographs::{Photograph, files, photographs, random_resized_crop};
use shardtool_benches::{Candidate, compare_cpu, print};
use shardtool_decode::{
    DecodeOptions, DecodePath, DecodedRegion, Decoder, Filter, Pipeline, Pixels, RegionOptions, ResizeScratch,
    apply_geometry,
};
use shardtool_jpeg::{self as jpeg, Request, Scale};

const SIDE: u32 = 224;
const EXACT: Option<f64> = None;
const REDUCED: Option<f64> = Some(2.0);

/// A photograph, and its crop as a box for the other libraries.
struct Sample {
    photograph: Photograph,
    crop_box: [f64; 4],
}

impl std::ops::Deref for Sample {
    type Target = Photograph;

    fn deref(&self) -> &Photograph {
        &self.photograph
    }
}

/// Decoders and buffers that are reused from image to image.
#[derive(Default)]
struct Worker {
    decoder: Decoder,
    scratch: ResizeScratch,
    whole: Pixels,
    out: Vec<u8>,
    resizer: fir::Resizer,
}

impl Worker {
    fn window(&mut self, s: &Sample, with_entries: bool, reducing_gap: Option<f64>) -> (DecodePath, bool) {
        let entries = with_entries.then_some(&s.entries[..]);
        let options = RegionOptions::default().with_reducing_gap(reducing_gap);
        let window = self.decoder.decode_region(&s.jpeg, entries, &s.geometry, &options).expect("a good image");
        apply_geometry(&s.geometry, &window, Filter::Bilinear, &mut self.out, &mut self.scratch).expect("a window");
        (window.path, window.entries_rejected)
    }

    fn whole(&mut self, s: &Sample) {
        self.decoder.decode_into(&s.jpeg, &DecodeOptions::default(), &mut self.whole).expect("a good image");
        self.resize(s);
    }

    fn resize(&mut self, s: &Sample) {
        let window = DecodedRegion::whole_image(self.whole.view().expect("pixels"));
        apply_geometry(&s.geometry, &window, Filter::Bilinear, &mut self.out, &mut self.scratch).expect("a window");
    }

    fn libraries(&mut self, s: &Sample) {
        let image = image::load_from_memory_with_format(&s.jpeg, image::ImageFormat::Jpeg).expect("a good image");
        let rgb = image.into_rgb8();
        (self.whole.width, self.whole.height) = rgb.dimensions();
        self.whole.data = rgb.into_raw();
        self.resize_with_fast_image_resize(s);
    }

    fn resize_with_fast_image_resize(&mut self, s: &Sample) {
        let (width, height) = (self.whole.width, self.whole.height);
        let source = ImageRef::new(width, height, &self.whole.data, fir::PixelType::U8x3).expect("pixels");
        let mut target = Image::from_slice_u8(SIDE, SIDE, &mut self.out, fir::PixelType::U8x3).expect("a place");
        let [left, top, w, h] = s.crop_box;
        let bilinear = fir::ResizeAlg::Convolution(fir::FilterType::Bilinear);
        let options = fir::ResizeOptions::new().resize_alg(bilinear).crop(left, top, w, h);
        self.resizer.resize(&source, &mut target, &options).expect("a crop inside");
    }
}

fn load(paths: &[PathBuf], pipeline: &Pipeline, evaluation: bool) -> Vec<Sample> {
    let crop_box = |p: &Photograph| {
        if evaluation {
            // The middle 224 of 256 pixels along the shorter side.
            let (w, h) = (p.header.width, p.header.height);
            let side = f64::from(w.min(h)) * f64::from(SIDE) / 256.0;
            [(f64::from(w) - side) / 2.0, (f64::from(h) - side) / 2.0, side, side]
        } else {
            [p.crop.x, p.crop.y, p.crop.width, p.crop.height].map(f64::from)
        }
    };
    photographs(paths, pipeline).into_iter().map(|p| Sample { crop_box: crop_box(&p), photograph: p }).collect()
}

/// Checks that all exact paths give the same pixels, that reduced decoding and the other libraries give similar ones, and that
/// images take the measured decode path. `limit` is the allowed mean difference per value to the other libraries.
fn check(samples: &[Sample], limit: f64) {
    let mut worker = Worker { out: vec![0; (SIDE * SIDE * 3) as usize], ..Worker::default() };
    let mut paths: BTreeMap<String, usize> = BTreeMap::new();
    let (mut hit, mut plain, mut far, mut reduced) = (0, 0, Far::default(), Far::default());
    for s in samples {
        worker.whole(s);
        let want = worker.out.clone();
        for (with, count) in [(true, &mut hit), (false, &mut plain)] {
            worker.out.fill(1);
            let (path, rejected) = worker.window(s, with, EXACT);
            assert!(worker.out == want, "the crop differs from the crop of the whole (entry points: {with})");
            assert!(!rejected || !with, "entry points rejected");
            *count += usize::from(if with {
                path == DecodePath::Entries
            } else {
                matches!(path, DecodePath::Start | DecodePath::Restarts)
            });
            *paths.entry(format!("{} entry points: {path:?}", if with { "with" } else { "without" })).or_default() += 1;
        }
        worker.window(s, true, REDUCED);
        if worker.out != want {
            reduced.add(&worker.out, &want);
        }
        worker.libraries(s);
        far.add(&worker.out, &want);
    }
    for (path, count) in paths {
        println!("  {path}: {count} images");
    }
    println!("  compared with the other libraries: mean difference {:.3} of 255 per pixel", far.mean());
    println!(
        "  reduced, {} images: mean difference {:.3} to exact, largest of one image {:.3}, of one value {}",
        reduced.images,
        reduced.mean(),
        reduced.worst,
        reduced.most
    );
    assert!(far.mean() < limit, "the libraries disagree");
    assert!(
        hit * 100 >= samples.len() * 99 && plain * 100 >= samples.len() * 99,
        "at least 99 % of the images take the measured decode path"
    );
}

#[derive(Default)]
struct Far {
    images: usize,
    sum: f64,
    worst: f64,
    most: u8,
}

impl Far {
    fn add(&mut self, a: &[u8], b: &[u8]) {
        let mean = a.iter().zip(b).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / a.len() as f64;
        self.images += 1;
        self.sum += mean;
        self.worst = self.worst.max(mean);
        self.most = self.most.max(a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0));
    }

    fn mean(&self) -> f64 {
        self.sum / self.images.max(1) as f64
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |default: usize| args.next().map_or(default, |n| n.parse().expect("a number"));
    let (rounds, count) = (number(7), number(150));
    let shared = std::env::var_os("SHARDTOOL_SHARED")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared").into(), PathBuf::from);
    let folder = args.next().map_or_else(|| shared.join("data/imagenet-sample"), PathBuf::from);
    if !folder.is_dir() {
        return println!("skipped: no folder {}", folder.display());
    }
    let paths = files(&folder);
    let paths: Vec<_> = paths.iter().step_by((paths.len() / count).max(1)).take(count).cloned().collect();
    measure("RandomResizedCrop(224)", &load(&paths, &random_resized_crop(SIDE), false), 2.0, rounds);
    let evaluation = Pipeline::eval(256, SIDE).expect("a pipeline");
    // CenterCrop cuts at whole pixels of the resized image; the box of the other libraries differs by up to half a pixel.
    measure("Resize(256), CenterCrop(224)", &load(&paths, &evaluation, true), 4.0, rounds);
}

fn measure(title: &str, samples: &[Sample], limit: f64, rounds: usize) {
    println!("{title}: {} images", samples.len());
    check(samples, limit);
    let worker = RefCell::new(Worker { out: vec![0; (SIDE * SIDE * 3) as usize], ..Worker::default() });
    let each = |name, work: fn(&mut Worker, &Sample)| {
        let worker = &worker;
        Candidate::new(name, move || {
            samples.iter().for_each(|s| work(&mut worker.borrow_mut(), s));
            samples.len() as f64
        })
    };
    let rates = compare_cpu(
        rounds,
        &mut [
            each("image + fast_image_resize", |w, s| w.libraries(s)),
            each("whole, then resize", |w, s| w.whole(s)),
            each("crop, no entry points", |w, s| _ = w.window(s, false, EXACT)),
            each("crop, no entry points, gap 2", |w, s| _ = w.window(s, false, REDUCED)),
            each("crop, entry points", |w, s| _ = w.window(s, true, EXACT)),
            each("crop, entry points, gap 2", |w, s| _ = w.window(s, true, REDUCED)),
        ],
    );
    print("  end to end", "images/s", 1.0, &rates);
    stages(samples, rounds);
}

/// Measures the stages of the exact crop with entry points. Decoding to 1/8 is mostly entropy decoding.
fn stages(samples: &[Sample], rounds: usize) {
    let mut decoder = jpeg::Decoder::new();
    let mut pixels: Vec<u8> = Vec::new();
    let mut part = |s: &Sample, scale: Scale| {
        let n = scale.divisor();
        let (x, y) = (s.crop.x / n, s.crop.y / n);
        let width = (s.crop.x + s.crop.width).div_ceil(n) - x;
        let height = (s.crop.y + s.crop.height).div_ceil(n) - y;
        let request = Request { rect: Some(jpeg::Rect { x, y, width, height }), scale, ..Request::default() };
        let stride = width as usize * 3;
        pixels.resize(pixels.len().max(stride * height as usize), 0);
        let entries = (!s.entries.is_empty()).then_some(&s.entries[..]);
        decoder.decode(&s.jpeg, entries, &request, &mut pixels, stride).expect("a good image");
    };
    let mut worker = Worker { out: vec![0; (SIDE * SIDE * 3) as usize], ..Worker::default() };
    let mut wholes = Vec::new();
    for s in samples {
        worker.whole(s);
        wholes.push(std::mem::take(&mut worker.whole));
    }
    let wholes = RefCell::new(wholes);
    let mut other = Worker { out: vec![0; (SIDE * SIDE * 3) as usize], ..Worker::default() };
    let part = RefCell::new(&mut part);
    let n = samples.len() as f64;
    let decode = |scale| {
        let part = &part;
        move || {
            samples.iter().for_each(|s| (part.borrow_mut())(s, scale));
            n
        }
    };
    fn resize(worker: &mut Worker, samples: &[Sample], wholes: &RefCell<Vec<Pixels>>, work: fn(&mut Worker, &Sample)) {
        for (s, whole) in samples.iter().zip(wholes.borrow_mut().iter_mut()) {
            std::mem::swap(whole, &mut worker.whole);
            work(worker, s);
            std::mem::swap(whole, &mut worker.whole);
        }
    }
    let rates = compare_cpu(
        rounds,
        &mut [
            Candidate::new("decode the crop", decode(Scale::Full)),
            Candidate::new("decode it to 1/8: entropy", decode(Scale::Eighth)),
            Candidate::new("resize it, ours", || {
                resize(&mut worker, samples, &wholes, Worker::resize);
                n
            }),
            Candidate::new("resize it, fast_image_resize", || {
                resize(&mut other, samples, &wholes, Worker::resize_with_fast_image_resize);
                n
            }),
        ],
    );
    println!("  by stage");
    for r in &rates {
        println!("  {:<34} {:>10.3} ms/image", r.name, 1e3 / r.median);
    }
}
