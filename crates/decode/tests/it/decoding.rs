//! Decoding of every format and colour type, raw pixels, encoding, and bad input.

use std::io::Cursor;

use image::{DynamicImage, ImageBuffer, ImageFormat};
use proptest::prelude::*;
use shardtool_decode::{
    DecodeOptions, Error, Format, LimitKind, Limits, Pixels, PixelsRef, decode, decode_into, decode_raw, encode_jpeg,
    encode_raw_zstd, resize,
};

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn smooth(width: u32, height: u32) -> Pixels {
    let data = (0..height).flat_map(|y| (0..width).flat_map(move |x| [(2 * x) as u8, (3 * y) as u8, (x + y) as u8]));
    Pixels { width, height, data: data.collect() }
}

fn smooth_image() -> DynamicImage {
    let p = smooth(40, 30);
    DynamicImage::ImageRgb8(ImageBuffer::from_raw(40, 30, p.data).unwrap())
}

fn mean_difference(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / a.len() as f64
}

#[test]
fn lossless_formats_decode_to_equal_pixels() {
    for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Bmp, ImageFormat::Tiff] {
        let pixels = decode(&encoded(&smooth_image(), format), &DecodeOptions::default()).unwrap();
        assert_eq!(pixels, smooth(40, 30), "{format:?}");
    }
}

/// An animation of one frame at (2, 4) of a canvas of 8 x 7 pixels: the lossless `image`.
fn animated_webp(image: &DynamicImage) -> Vec<u8> {
    let still = encoded(image, ImageFormat::WebP);
    let chunk = |kind: &[u8], data: &[u8]| [kind, &(data.len() as u32).to_le_bytes(), data].concat();
    let (width, height) = (image.width() as u8 - 1, image.height() as u8 - 1);
    let frame = [&[1, 0, 0, 2, 0, 0, width, 0, 0, height, 0, 0, 100, 0, 0, 0], &still[12..]].concat();
    let header = chunk(b"VP8X", &[0x12, 0, 0, 0, 7, 0, 0, 6, 0, 0]);
    let file = [b"WEBP", &header[..], &chunk(b"ANIM", &[9, 9, 9, 255, 0, 0]), &chunk(b"ANMF", &frame)].concat();
    chunk(b"RIFF", &file)
}

#[test]
fn decodes_the_first_frame_of_an_animated_webp_without_blending() {
    let colors =
        [[255, 0, 0, 255], [1, 128, 254, 255], [200, 100, 50, 128], [200, 100, 50, 1], [3, 2, 1, 0], [0, 77, 0, 3]];
    let image = ImageBuffer::from_raw(3, 2, colors.concat()).unwrap();
    let pixels = decode(&animated_webp(&DynamicImage::ImageRgba8(image)), &DecodeOptions::default()).unwrap();
    let mut expected = vec![0; 8 * 7 * 3];
    for (at, [rgb @ .., _]) in colors.into_iter().enumerate() {
        let start = ((4 + at / 3) * 8 + 2 + at % 3) * 3;
        expected[start..start + 3].copy_from_slice(&rgb);
    }
    assert_eq!(pixels, Pixels { width: 8, height: 7, data: expected });
}

/// A run-length coded BMP of 5 x 3 pixels, whose palette is (index, 100 + index, 200 + index).
fn run_length_bmp(bits: u8, data: &[u8]) -> Vec<u8> {
    let colors = (0..16).flat_map(|i| [200 + i, 100 + i, i, 0]);
    let header = [40, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 1, 0, bits, 0, if bits == 8 { 1 } else { 2 }, 0, 0, 0];
    let mut file = [b"BM\0\0\0\0\0\0\0\0\x76\0\0\0", &header[..], &[0; 12], &[16], &[0; 7]].concat();
    file.extend(colors);
    file.extend_from_slice(data);
    file
}

#[test]
fn decodes_run_length_coded_bmp() {
    let indices = |bits, data: &[u8]| {
        let pixels = decode(&run_length_bmp(bits, data), &DecodeOptions::default()).unwrap();
        assert_eq!((pixels.width, pixels.height), (5, 3));
        pixels
            .data
            .chunks(3)
            .map(|rgb| {
                assert_eq!(rgb, [rgb[0], 100 + rgb[0], 200 + rgb[0]]);
                rgb[0]
            })
            .collect::<Vec<_>>()
    };
    // Rows from the bottom: a run beyond the row; three indices and a run; a step over pixels. Then an index beyond the row.
    let four = [6, 0x12, 0, 0, 0, 3, 0x34, 0x50, 2, 0x66, 0, 0, 0, 2, 2, 0, 2, 0x77, 0, 1];
    assert_eq!(indices(4, &four), [0, 0, 7, 7, 0, 3, 4, 5, 6, 6, 1, 2, 1, 2, 1]);
    assert_eq!(indices(4, &[1, 0x99, 0, 5, 0x12, 0x34, 0x56, 0, 0, 1])[10..], [9, 1, 2, 3, 4]);
    let eight = [2, 1, 9, 2, 0, 0, 0, 3, 3, 4, 5, 0, 2, 6, 0, 1];
    assert_eq!(indices(8, &eight), [0, 0, 0, 0, 0, 3, 4, 5, 6, 6, 1, 1, 2, 2, 2]);
    // The last row ends the image; no end of the bitmap follows.
    assert_eq!(indices(8, &[5, 1, 0, 0, 5, 2, 0, 0, 5, 3, 0, 0])[..6], [3, 3, 3, 3, 3, 2]);
    // A step to the second row from the bottom; skipped pixels have the first colour.
    assert_eq!(indices(8, &[0, 2, 1, 1, 1, 9, 0, 1]), [0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
    for damaged in
        [&[5, 1][..], &[0, 6, 1, 2, 3, 4, 5, 6, 0, 1], &[0, 2, 0, 3, 1, 1, 0, 1], &[0, 2, 6, 0, 0, 1], &[0, 3, 1]]
    {
        assert!(decode(&run_length_bmp(8, damaged), &DecodeOptions::default()).is_err(), "{damaged:?}");
    }
}

#[test]
fn converts_every_color_type_to_rgb() {
    let rgb = |image: DynamicImage| decode(&encoded(&image, ImageFormat::Png), &DecodeOptions::default()).unwrap().data;
    let grey = ImageBuffer::from_raw(2, 1, vec![7u8, 250]).unwrap();
    assert_eq!(rgb(DynamicImage::ImageLuma8(grey)), [7, 7, 7, 250, 250, 250]);
    let grey_alpha = ImageBuffer::from_raw(2, 1, vec![7u8, 0, 250, 9]).unwrap();
    assert_eq!(rgb(DynamicImage::ImageLumaA8(grey_alpha)), [7, 7, 7, 250, 250, 250]);
    let rgba = ImageBuffer::from_raw(2, 1, vec![1u8, 2, 3, 0, 4, 5, 6, 128]).unwrap();
    assert_eq!(rgb(DynamicImage::ImageRgba8(rgba)), [1, 2, 3, 4, 5, 6]);
    // The high byte is kept without rounding: 0x12FF becomes 0x12.
    let grey16 = ImageBuffer::from_raw(2, 1, vec![0x12FFu16, 0xFE01]).unwrap();
    assert_eq!(rgb(DynamicImage::ImageLuma16(grey16)), [0x12, 0x12, 0x12, 0xFE, 0xFE, 0xFE]);
    let grey_alpha16 = ImageBuffer::from_raw(2, 1, vec![0x12FFu16, 0, 0xFE01, 7]).unwrap();
    assert_eq!(rgb(DynamicImage::ImageLumaA16(grey_alpha16)), [0x12, 0x12, 0x12, 0xFE, 0xFE, 0xFE]);
    let rgb16 = ImageBuffer::from_raw(2, 1, vec![0x0102u16, 0x0304, 0x0506, 0x0708, 0x090A, 0x0B0C]).unwrap();
    assert_eq!(rgb(DynamicImage::ImageRgb16(rgb16)), [1, 3, 5, 7, 9, 11]);
    let rgba16 = ImageBuffer::from_raw(2, 1, vec![0x0102u16, 0x0304, 0x0506, 9, 0x0708, 0x090A, 0x0B0C, 9]).unwrap();
    assert_eq!(rgb(DynamicImage::ImageRgba16(rgba16)), [1, 3, 5, 7, 9, 11]);
    let float = encoded(&DynamicImage::new_rgb32f(2, 2), ImageFormat::Tiff);
    assert!(matches!(decode(&float, &DecodeOptions::default()), Err(Error::FloatSamples { format: Format::Tiff })));
}

#[test]
fn reuses_the_buffer_for_other_sizes_and_depths() {
    let mut pixels = Pixels::default();
    let options = DecodeOptions::default();
    decode_into(&encoded(&DynamicImage::new_rgba16(50, 50), ImageFormat::Png), &options, &mut pixels).unwrap();
    let at = pixels.data.as_ptr();
    decode_into(&encoded(&smooth_image(), ImageFormat::Png), &options, &mut pixels).unwrap();
    assert_eq!((pixels.data.as_ptr(), &pixels), (at, &smooth(40, 30)));
}

#[test]
fn applies_orientation_only_on_request() {
    let jpeg = encode_jpeg(smooth(40, 30).view().unwrap(), 95).unwrap();
    let app1 = b"\xFF\xE1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let tagged = [&jpeg[..2], app1, &jpeg[2..]].concat();
    let plain = decode(&tagged, &DecodeOptions::default()).unwrap();
    let upright = decode(&tagged, &DecodeOptions::default().with_apply_orientation(true)).unwrap();
    let stored = ImageBuffer::<image::Rgb<u8>, _>::from_raw(40, 30, plain.data).unwrap();
    let turned = image::imageops::rotate90(&stored);
    assert_eq!((upright.width, upright.height, upright.data), (30, 40, turned.into_raw()));
}

#[test]
fn encoded_jpeg_is_close_to_the_pixels_and_smaller_at_lower_quality() {
    let pixels = smooth(80, 80);
    let encode = |quality| encode_jpeg(pixels.view().unwrap(), quality).unwrap();
    for quality in [50, 75, 90, 100] {
        let back = decode(&encode(quality), &DecodeOptions::default()).unwrap();
        let d = mean_difference(&back.data, &pixels.data);
        assert!(d < 3.0, "quality {quality}: {d}");
        // There is one start-of-scan segment, with three components.
        let scans =
            encode(quality).windows(5).filter(|w| w.starts_with(b"\xFF\xDA\0")).map(|w| w[4]).collect::<Vec<_>>();
        assert_eq!(scans, [3]);
    }
    assert!(encode(50).len() < encode(100).len());
    for quality in [0, 101] {
        assert!(matches!(encode_jpeg(pixels.view().unwrap(), quality), Err(Error::Quality { .. })));
    }
    let long = vec![0; 65_536 * 3];
    assert!(matches!(encode_jpeg(PixelsRef::new(65_536, 1, &long).unwrap(), 90), Err(Error::Side { .. })));
}

#[test]
fn rejects_truncated_jpeg() {
    let jpeg = encode_jpeg(smooth(80, 80).view().unwrap(), 90).unwrap();
    for end in [jpeg.len() - 2, jpeg.len() / 2, 30] {
        assert!(matches!(decode(&jpeg[..end], &DecodeOptions::default()), Err(Error::Truncated { .. })), "{end}");
    }
}

#[test]
fn borrows_raw_pixels_and_decompresses_raw_zstd() {
    let pixels = smooth(40, 30);
    let limits = Limits::default();
    let mut scratch = Vec::new();
    let raw = decode_raw(Format::Raw, &pixels.data, 40, 30, &limits, &mut scratch).unwrap();
    assert_eq!(raw.data().as_ptr(), pixels.data.as_ptr());
    assert!(matches!(
        decode_raw(Format::Raw, &pixels.data, 40, 31, &limits, &mut scratch),
        Err(Error::PixelBytes { .. })
    ));

    let frame = encode_raw_zstd(pixels.view().unwrap(), 3).unwrap();
    assert_eq!(decode_raw(Format::RawZstd, &frame, 40, 30, &limits, &mut scratch).unwrap().data(), pixels.data);
    let mut refused =
        |payload: &[u8], w, h| decode_raw(Format::RawZstd, payload, w, h, &limits, &mut scratch).unwrap_err();
    assert!(matches!(refused(&frame, 30, 41), Error::PixelBytes { expected: 3690, found: 3600, .. }));
    assert!(matches!(refused(&frame[..frame.len() - 1], 40, 30), Error::ZstdFrame { .. }));
    assert!(matches!(refused(&[&frame[..], &frame].concat(), 40, 30), Error::ZstdFrame { .. }));
    // A frame written as a stream does not declare its content size.
    let stream = zstd::stream::encode_all(&pixels.data[..], 3).unwrap();
    assert!(matches!(refused(&stream, 40, 30), Error::ZstdSize));
    // Another size is named before a limit.
    assert!(matches!(refused(&frame, 1 << 20, 1 << 20), Error::PixelBytes { found: 3600, .. }));
    for (format, payload) in [(Format::Raw, &pixels.data), (Format::RawZstd, &frame)] {
        let small = limits.with_max_side(39);
        let refused = decode_raw(format, payload, 40, 30, &small, &mut Vec::new()).unwrap_err();
        assert!(matches!(refused, Error::Limit { kind: LimitKind::Side, .. }), "{refused}");
        let none = decode_raw(format, payload, 0, 30, &limits, &mut Vec::new()).unwrap_err();
        assert_eq!(none.damage(), shardtool_format::Damage::PixelsLength);
    }
    assert!(matches!(decode_raw(Format::Png, &frame, 40, 30, &limits, &mut Vec::new()), Err(Error::NotRaw { .. })));
}

#[test]
fn limits_apply_to_decoding() {
    let png = encoded(&smooth_image(), ImageFormat::Png);
    let with = |limits| decode(&png, &DecodeOptions::default().with_limits(limits));
    let all = Limits::default();
    assert!(matches!(with(all.with_max_pixels(1199)), Err(Error::Limit { kind: LimitKind::Pixels, .. })));
    assert!(matches!(with(all.with_max_side(39)), Err(Error::Limit { kind: LimitKind::Side, .. })));
    assert!(matches!(with(all.with_max_bytes(3599)), Err(Error::Limit { kind: LimitKind::Bytes, .. })));
    with(all.with_max_pixels(1200).with_max_side(40).with_max_bytes(1 << 20)).unwrap();
}

#[test]
fn rejects_resizing_to_zero_pixels() {
    let pixels = smooth(8, 8);
    assert!(matches!(resize(pixels.view().unwrap(), (0, 4)), Err(Error::Side { .. })));
    let flat = Pixels { width: 9, height: 7, data: vec![77; 189] };
    assert!(resize(flat.view().unwrap(), (3, 20)).unwrap().data.iter().all(|&v| v == 77));
}

/// A sequential image of which scans are missing has samples of 128 in their place; of a progressive one, low frequencies are
/// estimated. The pixels are compared with libjpeg-turbo's in `crates/jpeg/tests`.
#[test]
fn decodes_jpegs_of_which_scans_are_missing() {
    use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
    let encode = |color, channels, progressive| {
        let mut jpeg = vec![];
        let mut encoder = Encoder::new(&mut jpeg, 90);
        // Sampling factors of 4 are encoded in separate scans.
        encoder.set_sampling_factor(SamplingFactor::F_4_2);
        encoder.set_progressive(progressive);
        let pixels: Vec<u8> = (0..64 * 48 * channels).map(|n| (n * 7 % 251) as u8).collect();
        encoder.encode(&pixels, 64, 48, color).unwrap();
        jpeg
    };
    let options = DecodeOptions::default();
    for (color, channels) in [(ColorType::Cmyk, 4), (ColorType::Rgb, 3)] {
        for progressive in [false, true] {
            let jpeg = encode(color, channels, progressive);
            let starts: Vec<_> = memchr::memmem::find_iter(&jpeg, &[0xff, 0xda]).collect();
            assert!(starts.len() >= channels);
            let mut seen = vec![decode(&jpeg, &options).unwrap().data];
            for cut in &starts[1..] {
                let part = [&jpeg[..*cut], &[0xff, 0xd9]].concat();
                let pixels = decode(&part, &options).unwrap().data;
                assert!(!seen.contains(&pixels), "a scan more changes the pixels");
                if channels == 3 && cut == &starts[1] {
                    assert!(pixels.chunks(3).all(|pixel| pixel == [pixel[0]; 3]));
                }
                seen.push(pixels);
            }
        }
    }
}

/// Unusual JPEGs decode; damaged ones give pixels or an error, never a panic. A progressive JPEG lacks a part of its entropy-coded
/// data, which is damage here even though other decoders tolerate it.
#[test]
fn corpus_decodes_or_is_rejected() {
    let root = std::env::var_os("SHARDTOOL_SHARED")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into(), std::path::PathBuf::from)
        .join("data/jpeg-corpus");
    if !root.is_dir() {
        return eprintln!("skipped: {} does not exist", root.display());
    }
    let (mut seen, mut refused) = (0, Vec::new());
    for (folder, must_decode) in [("reftest", true), ("crashtest", false)] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let result = decode(&std::fs::read(&path).unwrap(), &DecodeOptions::default());
            if let (true, Err(error)) = (must_decode, result) {
                let damaged = matches!(error, Error::Jpeg { .. });
                refused.push((path.file_name().unwrap().to_owned(), damaged));
            }
            seen += 1;
        }
    }
    refused.sort();
    let expected = [("partial_progressive.jpg", true)];
    assert_eq!(refused, expected.map(|(name, damaged)| (name.into(), damaged)));
    assert!(seen > 100, "{seen} files");
}

proptest! {
    #[test]
    fn mutated_images_never_panic(kind in 0usize..6, at in any::<prop::sample::Index>(), with: u8, cut in any::<prop::sample::Index>()) {
        let formats = [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif, ImageFormat::Bmp, ImageFormat::Tiff];
        let mut bytes = encoded(&smooth_image(), formats[kind]);
        let at = at.index(bytes.len());
        bytes[at] = with;
        bytes.truncate(cut.index(bytes.len() * 4).max(1));
        let limits = Limits::default().with_max_pixels(1 << 20).with_max_bytes(1 << 24);
        match decode(&bytes, &DecodeOptions::default().with_limits(limits).with_apply_orientation(true)) {
            Ok(p) => prop_assert_eq!(p.data.len() as u64, u64::from(p.width) * u64::from(p.height) * 3),
            Err(e) => prop_assert!(!matches!(e, Error::Panic { .. }), "{}", e),
        }
    }
}
