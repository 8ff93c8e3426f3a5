//! Label maps: decoding of stored values, and geometries of their images.

use proptest::prelude::*;
use shardtool_decode::{
    DecodedRegion, EncodedImage, Error, Filter, Format, LabelDtype, LabelMap, Limits, Orientation, Pipeline,
    PixelFormat, PixelsRef, Random, ResizeScratch, StoredSamples, Transform, TransformScratch, apply_geometry,
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

/// A grey TIFF of one strip of 16-bit values.
fn tiff(width: u32, height: u32, values: &[u16], big_endian: bool) -> Vec<u8> {
    let (short, long, data) = (3u16, 4u16, 8 + 2 + 8 * 12 + 4);
    let mut file = if big_endian { b"MM\0*\0\0\0\x08".to_vec() } else { b"II*\0\x08\0\0\0".to_vec() };
    let half = |file: &mut Vec<u8>, v: u16| file.extend(if big_endian { v.to_be_bytes() } else { v.to_le_bytes() });
    half(&mut file, 8);
    for (tag, kind, value) in [
        (256, long, width),
        (257, long, height),
        (258, short, 16),
        (259, short, 1),
        (262, short, 1),
        (273, long, data),
        (277, short, 1),
        (279, long, 2 * width * height),
    ] {
        half(&mut file, tag);
        half(&mut file, kind);
        let word = |v: u32| if big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
        file.extend(word(1));
        // A short is at the start of the field.
        if kind == short {
            half(&mut file, value as u16);
            file.extend([0; 2]);
        } else {
            file.extend(word(value));
        }
    }
    file.extend([0; 4]);
    values.iter().for_each(|value| half(&mut file, *value));
    file
}

/// 16-bit values that differ in both bytes.
fn wide_values(width: u32, height: u32) -> Vec<u16> {
    (0..width * height).map(|i| (i * 2_741 + 300) as u16).collect()
}

fn wide_png(width: u32, height: u32, values: &[u16]) -> Vec<u8> {
    let rows: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    png(width, height, png::ColorType::Grayscale, png::BitDepth::Sixteen, &rows)
}

/// Returns the whole map at its own size.
fn whole(labels: &mut LabelMap, width: u32, height: u32) -> Vec<u8> {
    whole_as(labels, width, height, LabelDtype::U8)
}

/// Returns the bytes of the whole map at its own size.
fn whole_as(labels: &mut LabelMap, width: u32, height: u32, dtype: LabelDtype) -> Vec<u8> {
    let same =
        Pipeline::new(vec![Transform::ResizeTo { size: [height, width], interpolation: Filter::Bilinear }]).unwrap();
    let geometry = same.plan((width, height), Orientation::default(), &mut Draws(0), &[]).unwrap().geometry();
    let mut out = vec![0; (width * height) as usize * dtype.bytes()];
    labels.apply_geometry(&geometry, 0, &mut out).unwrap();
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
                labels.decode(&bytes, LabelDtype::U8, &Limits::default()).unwrap();
                assert_eq!(whole(&mut labels, width, height), values, "{color:?}, {bits} bits, {width}x{height}");
            }
        }
    }
}

#[test]
fn delivers_values_of_16_bits() {
    let mut labels = LabelMap::default();
    for (width, height) in [(1, 1), (7, 3), (33, 17)] {
        let values = wide_values(width, height);
        let expected: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        for (name, file) in [
            ("PNG", wide_png(width, height, &values)),
            ("little-endian TIFF", tiff(width, height, &values, false)),
            ("big-endian TIFF", tiff(width, height, &values, true)),
        ] {
            labels.decode(&file, LabelDtype::U16, &Limits::default()).unwrap();
            assert_eq!(whole_as(&mut labels, width, height, LabelDtype::U16), expected, "{name}, {width}x{height}");
        }
    }
}

#[test]
fn converts_between_8_and_16_bits_if_every_value_fits() {
    use png::{BitDepth, ColorType};
    let (width, height) = (9, 5);
    let mut labels = LabelMap::default();
    for (depth, bits) in [(BitDepth::Two, 2), (BitDepth::Eight, 8)] {
        let values = values(width, height, bits);
        let file = png(width, height, ColorType::Indexed, depth, &packed(&values, width, bits));
        labels.decode(&file, LabelDtype::U16, &Limits::default()).unwrap();
        let expected: Vec<u8> = values.iter().flat_map(|value| [*value, 0]).collect();
        assert_eq!(whole_as(&mut labels, width, height, LabelDtype::U16), expected, "{bits} bits");
    }
    let mut small: Vec<u16> = (0..45).map(|i| i * 5).collect();
    small[44] = 255;
    let expected: Vec<u8> = small.iter().map(|value| *value as u8).collect();
    for file in [wide_png(width, height, &small), tiff(width, height, &small, false)] {
        labels.decode(&file, LabelDtype::U8, &Limits::default()).unwrap();
        assert_eq!(whole(&mut labels, width, height), expected);
    }
    small[2 * 9 + 4] = 256;
    for file in [wide_png(width, height, &small), tiff(width, height, &small, true)] {
        let error = labels.decode(&file, LabelDtype::U8, &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::LabelValue { value: 256, x: 4, y: 2, .. }), "{error}");
        assert!(error.to_string().contains("label 256 at column 4, row 2"), "{error}");
    }
}

#[test]
fn rejects_images_that_are_not_label_maps() {
    use png::{BitDepth, ColorType};
    let refused = |bytes: &[u8]| LabelMap::default().decode(bytes, LabelDtype::U16, &Limits::default()).unwrap_err();
    for bytes in [
        png(2, 2, ColorType::Rgb, BitDepth::Eight, &[0; 12]),
        png(2, 2, ColorType::GrayscaleAlpha, BitDepth::Eight, &[0; 8]),
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
    assert!(matches!(LabelMap::default().decode(&good, LabelDtype::U8, &small), Err(Error::Limit { .. })));
    assert!(matches!(refused(b"not an image"), Error::UnknownFormat { .. }));
}

#[test]
fn rejects_map_of_another_size_than_its_image() {
    let mut labels = LabelMap::default();
    let bytes = png(6, 4, png::ColorType::Grayscale, png::BitDepth::Eight, &values(6, 4, 8));
    labels.decode(&bytes, LabelDtype::U8, &Limits::default()).unwrap();
    let pipeline = Pipeline::eval(4, 4).unwrap();
    let geometry = pipeline.plan((6, 5), Orientation::default(), &mut Draws(0), &[]).unwrap().geometry();
    assert!(matches!(
        labels.apply_geometry(&geometry, 0, &mut [0; 16]),
        Err(Error::SizeMismatch { found: (6, 4), .. })
    ));
    let geometry = pipeline.plan((6, 4), Orientation::default(), &mut Draws(0), &[]).unwrap().geometry();
    assert!(matches!(labels.apply_geometry(&geometry, 0, &mut [0; 15]), Err(Error::LabelBytes { found: 15, .. })));
}

#[test]
fn headers_say_what_samples_are() {
    use png::{BitDepth, ColorType};
    let found = |bytes: &[u8]| EncodedImage::parse(bytes).unwrap().stored_samples();
    let (deep, alpha) = (Some("grey of 16 bits"), Err("an image with alpha, which is dropped"));
    let scaled = Err("grey of fewer than 8 bits, which is scaled to 0 to 255");
    for (color, depth, bytes, expected) in [
        (ColorType::Grayscale, BitDepth::One, 1, (PixelFormat::GRAY8, None, scaled)),
        (ColorType::Grayscale, BitDepth::Eight, 4, (PixelFormat::GRAY8, None, Ok(PixelFormat::GRAY8))),
        (ColorType::Grayscale, BitDepth::Sixteen, 8, (PixelFormat::GRAY16, deep, Ok(PixelFormat::GRAY16))),
        (ColorType::GrayscaleAlpha, BitDepth::Eight, 8, (PixelFormat::GRAY8, None, alpha)),
        (ColorType::GrayscaleAlpha, BitDepth::Sixteen, 16, (PixelFormat::GRAY16, deep, alpha)),
        (
            ColorType::Indexed,
            BitDepth::Two,
            1,
            (PixelFormat::RGB8, Some("an image with a palette"), Ok(PixelFormat::RGB8)),
        ),
        (ColorType::Rgb, BitDepth::Eight, 12, (PixelFormat::RGB8, None, Ok(PixelFormat::RGB8))),
        (ColorType::Rgba, BitDepth::Sixteen, 32, (PixelFormat::RGB16, None, alpha)),
    ] {
        let samples: StoredSamples = found(&png(4, 1, color, depth, &vec![0; bytes])).unwrap();
        let samples = (samples.format, samples.may_be_values(), samples.unchanged());
        assert_eq!(samples, expected, "{color:?} of {depth:?}");
    }
    let deep = found(&tiff(3, 2, &[0; 6], true)).unwrap();
    assert_eq!((deep.palette, deep.unchanged()), (false, Ok(PixelFormat::GRAY16)));
    assert_eq!(found(b"GIF89a\x01\x00\x01\x00"), None);
    assert_eq!(found(b"\x89PNG\r\n\x1a\n"), None);
}

#[test]
fn plans_that_keep_pixels_in_place_move_none() {
    let moves = |steps: &str| {
        let pipeline: Pipeline = serde_json::from_str(steps).unwrap();
        pipeline.plan((6, 4), Orientation::default(), &mut Draws(1), &[]).unwrap().moves_pixels()
    };
    assert!(!moves(
        r#"[{"resize_to": {"size": [4, 6]}}, {"random_invert": {"p": 1.0}}, {"gaussian_blur": {"kernel_size": [3, 3]}}]"#
    ));
    assert!(moves(r#"[{"resize_to": {"size": [4, 6]}}, {"horizontal_flip": {"p": 1.0}}]"#));
    assert!(moves(r#"[{"resize_to": {"size": [4, 5]}}]"#));
    assert!(moves(r#"[{"center_crop": {"size": [4, 5]}}]"#));
    assert!(moves(r#"[{"pad": {"padding": [1, 0, 0, 0]}}, {"center_crop": {"size": [4, 6]}}]"#));
    assert!(moves(
        r#"[{"random_invert": {"p": 1.0}}, {"vertical_flip": {"p": 1.0}}, {"center_crop": {"size": [4, 6]}}]"#
    ));
}

proptest! {
    /// Steps by nearest neighbour move the values of an image as those of a label map, whatever colours they would change.
    #[test]
    fn plan_by_nearest_moves_values_as_label_maps(w in 20u32..60, h in 20u32..60, exif in 1u8..=8, seed: u64) {
        let steps = r#"[
            {"random_zoom_out": {"fill": [9, 9, 9], "side_range": [1.0, 1.5], "p": 0.5}},
            {"random_resized_crop": {"size": [31, 27], "scale": [0.3, 1.0]}}, {"horizontal_flip": {}}, {"vertical_flip": {}},
            {"color_jitter": {"brightness": [0.5, 1.5]}},
            {"random_affine": {"degrees": [-20.0, 20.0], "shear": [-5.0, 5.0, 0.0, 0.0], "interpolation": "bilinear", "fill": [9, 9, 9]}},
            {"random_perspective": {"distortion_scale": 0.3, "p": 0.5, "interpolation": "bilinear"}},
            {"pad": {"padding": [3, 2, 1, 0], "fill": [9, 9, 9]}}, {"resize_to": {"size": [23, 40]}},
            {"random_erasing": {"p": 1.0}}, {"random_invert": {"p": 1.0}}
        ]"#;
        let pipeline: Pipeline = serde_json::from_str(steps).unwrap();
        let plan = pipeline.plan((w, h), Orientation::from_exif(exif), &mut Draws(seed), &[]).unwrap();
        let values: Vec<u8> = (1..=(w * h) as u16).flat_map(u16::to_le_bytes).collect();
        let mut scratch = TransformScratch::default();
        let mut labels = LabelMap::default();
        labels.set((w, h), LabelDtype::U16, &values).unwrap();
        let mut expected = vec![0; 2 * 23 * 40];
        plan.apply_to_labels(&mut labels, 0, &mut expected, &mut scratch).unwrap();
        let pixels = PixelsRef::with_format(w, h, PixelFormat::GRAY16, &values).unwrap();
        let mut found = vec![9; 2 * 23 * 40];
        plan.by_nearest().apply(&DecodedRegion::whole_image(pixels), &mut found, &mut scratch).unwrap();
        prop_assert_eq!(&found, &expected);
        prop_assert!(plan.moves_pixels());
    }

    /// For every crop, flip and orientation, each value is the one of the nearest pixel of the image.
    #[test]
    fn map_and_image_have_equal_geometry(w in 1u32..60, h in 1u32..60, side in 1u32..40, exif in 1u8..=8, seed: u64) {
        let map = values(w, h, 8);
        let rgb: Vec<u8> = map.iter().flat_map(|v| [*v; 3]).collect();
        let pipeline = Pipeline::train(side).unwrap();
        let geometry = pipeline.plan((w, h), Orientation::from_exif(exif), &mut Draws(seed), &[]).unwrap().geometry();
        let mut image = vec![0; (side * side * 3) as usize];
        let region = DecodedRegion::whole_image(PixelsRef::new(w, h, &rgb).unwrap());
        apply_geometry(&geometry, &region, Filter::Nearest, &mut image, &mut ResizeScratch::default()).unwrap();
        let expected: Vec<u8> = image.iter().step_by(3).copied().collect();
        let mut labels = LabelMap::default();
        let file = png(w, h, png::ColorType::Grayscale, png::BitDepth::Eight, &map);
        labels.decode(&file, LabelDtype::U8, &Limits::default()).unwrap();
        let mut out = vec![0; (side * side) as usize];
        labels.apply_geometry(&geometry, 0, &mut out).unwrap();
        prop_assert_eq!(&out, &expected);
        // The value is in both bytes of a 16-bit label.
        let wide: Vec<u16> = map.iter().map(|v| u16::from(*v) * 0x101).collect();
        labels.decode(&wide_png(w, h, &wide), LabelDtype::U16, &Limits::default()).unwrap();
        let mut out = vec![0; (side * side) as usize * 2];
        labels.apply_geometry(&geometry, 0, &mut out).unwrap();
        prop_assert_eq!(out, expected.iter().flat_map(|v| [*v; 2]).collect::<Vec<_>>());
    }
}
