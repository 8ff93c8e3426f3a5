//! Measures decoding, and crop with resize into the batch, for image sizes of ImageNet and of a camera. Every result is first
//! compared with a floating-point reference.
//!
//! `cargo run --release -p shardtool-benches --bin resize`

use std::hint::black_box;

use shardtool_benches::{Candidate, compare, print};
use shardtool_decode::{
    DecodeOptions, DecodedRegion, Filter, Geometry, Orientation, Pipeline, Pixels, PixelsRef, Random, ResizeScratch,
    Transform, apply_geometry, decode_into, encode_jpeg,
};

const SIDE: u32 = 224;
const REPEAT: usize = 50;

/// Returns constants: the pipelines here draw no random numbers.
struct Fixed;

impl Random for Fixed {
    fn unit(&mut self) -> f64 {
        0.0
    }

    fn below(&mut self, _: u64) -> u64 {
        0
    }
}

fn main() {
    for (width, height) in [(300, 280), (1600, 1200)] {
        let pixels = photograph(width, height);
        let jpeg = encode_jpeg(pixels.view().unwrap(), 90).unwrap();
        let resize = plan(vec![Transform::ResizeTo { size: [SIDE, SIDE], interpolation: Filter::Bilinear }], &pixels);
        let flip = plan(
            vec![
                Transform::ResizeTo { size: [SIDE, SIDE], interpolation: Filter::Bilinear },
                Transform::HorizontalFlip { p: 1.0 },
            ],
            &pixels,
        );
        check(&resize, &pixels);

        let mut decoded = Pixels::default();
        let rates = compare(
            9,
            &mut [
                candidate("decode JPEG (image crate)", || {
                    decode_into(&jpeg, &DecodeOptions::default(), &mut decoded).unwrap();
                    assert_eq!((decoded.width, decoded.height), (width, height));
                }),
                candidate("resize to 224x224, bilinear", applied(&resize, &pixels, Filter::Bilinear)),
                candidate("resize and flip", applied(&flip, &pixels, Filter::Bilinear)),
                candidate("resize to 224x224, nearest", applied(&resize, &pixels, Filter::Nearest)),
            ],
        );
        print(&format!("{width}x{height}, {} kB", jpeg.len() / 1000), "images/s", 1.0, &rates);
        for r in &rates {
            println!("  {:<34} {:>10.3} ms/image", r.name, 1e3 / r.median);
        }
    }
}

fn candidate<'a>(name: &'a str, mut work: impl FnMut() + 'a) -> Candidate<'a> {
    Candidate::new(name, move || {
        (0..REPEAT).for_each(|_| work());
        REPEAT as f64
    })
}

fn applied<'a>(geometry: &'a Geometry, pixels: &'a Pixels, filter: Filter) -> impl FnMut() + 'a {
    let mut scratch = ResizeScratch::default();
    let mut out = vec![0; (SIDE * SIDE * 3) as usize];
    move || {
        let window = DecodedRegion::whole_image(PixelsRef::new(pixels.width, pixels.height, &pixels.data).unwrap());
        apply_geometry(geometry, &window, filter, black_box(&mut out), &mut scratch).unwrap();
    }
}

fn plan(steps: Vec<Transform>, pixels: &Pixels) -> Geometry {
    let stored = (pixels.width, pixels.height);
    Pipeline::new(steps).unwrap().plan(stored, Orientation::default(), &mut Fixed, &[]).unwrap().geometry()
}

/// Generates waves, edges and noise, so that entropy coding takes as long as for a photograph.
fn photograph(width: u32, height: u32) -> Pixels {
    let mut state = 1u32;
    let data = (0..width * height).flat_map(|i| {
        let (x, y) = ((i % width) as f32, (i / width) as f32);
        [0.031f32, 0.017, 0.045].map(|f| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let edge = if ((x + 2.0 * y) as u32 / 90).is_multiple_of(2) { 40.0 } else { 0.0 };
            (100.0 + 60.0 * (f * x).sin() * (f * y).cos() + edge + (state >> 28) as f32) as u8
        })
    });
    Pixels { width, height, data: data.collect() }
}

/// Compares with antialiased bilinear resizing by its definition: each result is the mean of all source pixels, weighted by
/// a triangle around its centre whose half width is the reduction factor, at least one pixel.
fn check(geometry: &Geometry, pixels: &Pixels) {
    let mut out = vec![0; (SIDE * SIDE * 3) as usize];
    let window = DecodedRegion::whole_image(pixels.view().unwrap());
    apply_geometry(geometry, &window, Filter::Bilinear, &mut out, &mut ResizeScratch::default()).unwrap();
    let weights = |i: u32, n: u32| -> Vec<(usize, f64)> {
        let scale = f64::from(n) / f64::from(SIDE);
        let (centre, support) = ((f64::from(i) + 0.5) * scale, scale.max(1.0));
        let weight = |x: u32| (1.0 - ((f64::from(x) + 0.5 - centre) / support).abs()).max(0.0);
        let all: f64 = (0..n).map(weight).sum();
        (0..n).map(|x| (x as usize, weight(x) / all)).filter(|w| w.1 > 0.0).collect()
    };
    for y in (0..SIDE).step_by(13) {
        for x in (0..SIDE).step_by(7) {
            for c in 0..3 {
                let (rows, columns) = (weights(y, pixels.height), weights(x, pixels.width));
                let at = |r: usize, k: usize| f64::from(pixels.data[(r * pixels.width as usize + k) * 3 + c]);
                let want: f64 =
                    rows.iter().map(|&(r, a)| columns.iter().map(|&(k, b)| a * b * at(r, k)).sum::<f64>()).sum();
                let got = f64::from(out[((y * SIDE + x) * 3) as usize + c]);
                assert!((want - got).abs() <= 1.5, "({x}, {y}) channel {c}: {got}, expected {want}");
            }
        }
    }
}
