//! Label maps: decoding of stored values, and geometries of their images.

use proptest::prelude::*;
use shardtool_decode::{
    DecodedRegion, Error, Filter, Format, LabelMap, Limits, Orientation, Pipeline, PixelsRef, Random, ResizeScratch,
    Transform, apply_geometry,
};

/// A PNG of one value per pixel.
fn png(width: u32, height: u32, color: png::ColorType, depth: png::BitDepth, rows: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        // Colours that differ from their index, so that a palette look-up would fail the test.
        encoder.set_palette(
            (0..256).flat_map(|i: u32| [255 - i as u8, 7, 9]).take(3 << (depth as u8).min(8)).collect::<Vec<_>>(),
        );
    }
    encoder.write_header().unwrap().write_image_data(rows).unwrap();
    bytes
}

fn values(width: u32, height: u32, bits: u32) -> Vec<u8> {
    (0..width * height).map(|i| (i * 7 + i / 5) as u8 & ((1u16 << bits) - 1) as u8).collect()
}

/// Packs rows of values into bytes, the first value in the highest bits.
fn packed(values: &[u8], width: u32, bits: u32) -> Vec<u8> {
    values
        .chunks(width as usize)
        .flat_map(|row| {
            row.chunks((8 / bits) as usize)
                .map(|part| part.iter().enumerate().fold(0, |byte, (i, v)| byte | v << (8 - bits * (i as u32 + 1))))
        })
        .collect()
}

/// Returns the whole map at its own size.
fn whole(labels: &mut LabelMap, width: u32, height: u32) -> Vec<u8> {
    let same = Pipeline::new(vec![Transform::ResizeTo { size: [height, width] }]).unwrap();
    let geometry = same.plan((width, height), Orientation::default(), &mut Draws(0)).unwrap();
    let mut out = vec![0; (width * height) as usize];
    labels.apply_geometry(&geometry, &mut out).unwrap();
    out
}

struct Draws(u64);

impl Random for Draws {
    fn unit(&mut self) -> f64 {
        self.below(1 << 40) as f64 / (1u64 << 40) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 16) % n.max(1)
    }
}

#[test]
fn decodes_stored_values_of_every_depth() {
    use png::{BitDepth, ColorType};
    let mut labels = LabelMap::default();
    for color in [ColorType::Indexed, ColorType::Grayscale] {
        for (depth, bits) in [(BitDepth::One, 1), (BitDepth::Two, 2), (BitDepth::Four, 4), (BitDepth::Eight, 8)] {
            for (width, height) in [(1, 1), (1, 9), (7, 3), (8, 2), (9, 5), (33, 17)] {
                let values = values(width, height, bits);
                let bytes = png(width, height, color, depth, &packed(&values, width, bits));
                labels.decode(&bytes, &Limits::default()).unwrap();
                assert_eq!(whole(&mut labels, width, height), values, "{color:?}, {bits} bits, {width}x{height}");
            }
        }
    }
}

#[test]
fn rejects_images_that_are_not_label_maps() {
    use png::{BitDepth, ColorType};
    let refused = |bytes: &[u8]| LabelMap::default().decode(bytes, &Limits::default()).unwrap_err();
    for bytes in [
        png(2, 2, ColorType::Rgb, BitDepth::Eight, &[0; 12]),
        png(2, 2, ColorType::GrayscaleAlpha, BitDepth::Eight, &[0; 8]),
        png(2, 2, ColorType::Grayscale, BitDepth::Sixteen, &[0; 8]),
        [&[0xFF, 0xD8, 0xFF, 0xE0][..], &[0; 20]].concat(),
    ] {
        assert!(matches!(refused(&bytes), Error::Labels { .. }));
    }
    let good = png(40, 40, ColorType::Grayscale, BitDepth::Eight, &values(40, 40, 8));
    for len in [8, 20, 60, good.len() / 2, good.len() - 13] {
        assert!(
            matches!(refused(&good[..len]), Error::Decoder { format: Format::Png, .. }),
            "{len} of {} bytes",
            good.len()
        );
    }
    let small = Limits::default().with_max_pixels(1599);
    assert!(matches!(LabelMap::default().decode(&good, &small), Err(Error::Limit { .. })));
    assert!(matches!(refused(b"not an image"), Error::UnknownFormat { .. }));
}

#[test]
fn rejects_map_of_another_size_than_its_image() {
    let mut labels = LabelMap::default();
    let bytes = png(6, 4, png::ColorType::Grayscale, png::BitDepth::Eight, &values(6, 4, 8));
    labels.decode(&bytes, &Limits::default()).unwrap();
    let pipeline = Pipeline::eval(4, 4).unwrap();
    let geometry = pipeline.plan((6, 5), Orientation::default(), &mut Draws(0)).unwrap();
    assert!(matches!(labels.apply_geometry(&geometry, &mut [0; 16]), Err(Error::SizeMismatch { found: (6, 4), .. })));
    let geometry = pipeline.plan((6, 4), Orientation::default(), &mut Draws(0)).unwrap();
    assert!(matches!(labels.apply_geometry(&geometry, &mut [0; 15]), Err(Error::LabelBytes { found: 15, .. })));
}

proptest! {
    /// For every crop, flip and orientation, each value is the one of the nearest pixel of the image.
    #[test]
    fn map_and_image_have_equal_geometry(w in 1u32..60, h in 1u32..60, side in 1u32..40, exif in 1u8..=8, seed: u64) {
        let map = values(w, h, 8);
        let rgb: Vec<u8> = map.iter().flat_map(|v| [*v; 3]).collect();
        let pipeline = Pipeline::train(side).unwrap();
        let geometry = pipeline.plan((w, h), Orientation::from_exif(exif), &mut Draws(seed)).unwrap();
        let mut image = vec![0; (side * side * 3) as usize];
        let region = DecodedRegion::whole_image(PixelsRef::new(w, h, &rgb).unwrap());
        apply_geometry(&geometry, &region, Filter::Nearest, &mut image, &mut ResizeScratch::default()).unwrap();
        let mut labels = LabelMap::default();
        labels.decode(&png(w, h, png::ColorType::Grayscale, png::BitDepth::Eight, &map), &Limits::default()).unwrap();
        let mut out = vec![0; (side * side) as usize];
        labels.apply_geometry(&geometry, &mut out).unwrap();
        prop_assert_eq!(out, image.iter().step_by(3).copied().collect::<Vec<_>>());
    }
}
