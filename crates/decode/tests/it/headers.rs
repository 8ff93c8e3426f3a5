//! Format detection, headers, truncation and limits, on generated images and on the corpora if they are available.

use std::io::Cursor;
use std::path::PathBuf;

use image::{DynamicImage, ImageFormat};
use proptest::prelude::*;
use shardtool_decode::{Error, Format, ImageInfo, LimitKind, Limits, check_complete, probe, sniff};

const FORMATS: [(ImageFormat, Format); 6] = [
    (ImageFormat::Jpeg, Format::Jpeg),
    (ImageFormat::Png, Format::Png),
    (ImageFormat::WebP, Format::WebP),
    (ImageFormat::Gif, Format::Gif),
    (ImageFormat::Bmp, Format::Bmp),
    (ImageFormat::Tiff, Format::Tiff),
];

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// An image of width 37 and height 21, which differ so that an exchange of the two fails.
fn sample(format: ImageFormat) -> Vec<u8> {
    let rgb = image::RgbImage::from_fn(37, 21, |x, y| image::Rgb([(7 * x) as u8, (11 * y) as u8, (x * y) as u8]));
    encoded(&DynamicImage::ImageRgb8(rgb), format)
}

fn shared(path: &str) -> Option<Vec<PathBuf>> {
    let root = std::env::var_os("SHARDTOOL_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
    let mut pending = vec![root.join(path)];
    let mut files = Vec::new();
    while let Some(dir) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            eprintln!("skipped: {} does not exist", dir.display());
            return None;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() { pending.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Some(files)
}

/// The header segments of a JPEG: SOI, SOF0 of the given size, SOS.
fn jpeg_header(width: u16, height: u16) -> Vec<u8> {
    let mut jpeg = vec![0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8];
    jpeg.extend(height.to_be_bytes());
    jpeg.extend(width.to_be_bytes());
    jpeg.extend([1, 1, 0x11, 0, 0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0]);
    jpeg
}

/// An Exif segment with an orientation.
fn exif(orientation: u8, big_endian: bool) -> Vec<u8> {
    let mut app1 = vec![0xFF, 0xE1, 0, 34];
    app1.extend(b"Exif\0\0");
    app1.extend(match big_endian {
        true => {
            [b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(), &[orientation, 0, 0, 0, 0, 0, 0]].concat()
        }
        false => {
            [b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(), &[orientation, 0, 0, 0, 0, 0, 0, 0]].concat()
        }
    });
    app1
}

fn fields(info: &ImageInfo) -> (Format, u32, u32, u8, u8) {
    (info.format, info.width, info.height, info.channels, info.orientation)
}

#[test]
fn probes_every_format() {
    for (library, format) in FORMATS {
        let bytes = sample(library);
        assert_eq!(sniff(&bytes), Some(format));
        let channels = if format == Format::Gif { 4 } else { 3 };
        let info = probe(&bytes, &Limits::default()).unwrap();
        assert_eq!(fields(&info), (format, 37, 21, channels, 1));
        check_complete(&bytes).unwrap();
    }
}

#[test]
fn counts_grey_and_alpha_channels() {
    let channels =
        |image: DynamicImage| probe(&encoded(&image, ImageFormat::Png), &Limits::default()).unwrap().channels;
    assert_eq!(channels(DynamicImage::new_luma8(3, 2)), 1);
    assert_eq!(channels(DynamicImage::new_luma_a8(3, 2)), 2);
    assert_eq!(channels(DynamicImage::new_rgba16(3, 2)), 4);
    let grey = encoded(&DynamicImage::new_luma8(3, 2), ImageFormat::Jpeg);
    assert_eq!(probe(&grey, &Limits::default()).unwrap().channels, 1);
}

#[test]
fn reads_exif_orientation() {
    let jpeg = sample(ImageFormat::Jpeg);
    for big_endian in [true, false] {
        for orientation in 1..=8 {
            let tagged = [&jpeg[..2], &exif(orientation, big_endian), &jpeg[2..]].concat();
            let info = probe(&tagged, &Limits::default()).unwrap();
            assert_eq!((info.orientation, info.width, info.height), (orientation, 37, 21));
        }
        for nonsense in [0, 9] {
            let tagged = [&jpeg[..2], &exif(nonsense, big_endian), &jpeg[2..]].concat();
            assert_eq!(probe(&tagged, &Limits::default()).unwrap().orientation, 1);
        }
    }
}

#[test]
fn rejects_decompression_bomb_and_names_the_limit() {
    let e = probe(&jpeg_header(65_535, 65_535), &Limits::default()).unwrap_err();
    assert!(matches!(e, Error::Limit { kind: LimitKind::Pixels, needed: 4_294_836_225, .. }), "{e}");
    assert!(e.to_string().contains("max_pixels"), "{e}");

    // The same size in a PNG whose header chunk has a valid CRC-32.
    let mut png = sample(ImageFormat::Png);
    png[16..24].copy_from_slice(&[0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF]);
    let crc = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    let e = probe(&png, &Limits::default()).unwrap_err();
    assert!(matches!(e, Error::Limit { kind: LimitKind::Pixels, format: Format::Png, .. }), "{e}");
}

/// CRC-32 as PNG (annex D) defines it, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b), |c, _| if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 })
    })
}

#[test]
fn rejects_unsupported_jpeg_headers_by_name() {
    let refused = |marker: u8, precision: u8, height: u16| {
        let mut jpeg = jpeg_header(8, height);
        jpeg[3] = marker;
        jpeg[6] = precision;
        probe(&jpeg, &Limits::default()).unwrap_err().to_string()
    };
    assert!(refused(0xC3, 8, 8).contains("lossless"));
    assert!(refused(0xC5, 8, 8).contains("hierarchical"));
    assert!(refused(0xC9, 8, 8).contains("arithmetic"));
    assert!(refused(0xC1, 12, 8).contains("other than 8 bits"));
    assert!(refused(0xC0, 8, 0).contains("DNL"));
    assert!(matches!(probe(b"<html>", &Limits::default()), Err(Error::UnknownFormat { len: 6, .. })));
    assert!(probe(b"", &Limits::default()).unwrap_err().to_string().contains("0 bytes"));
}

#[test]
fn detects_truncation_at_every_byte() {
    for library in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP] {
        let bytes = sample(library);
        for end in 12..bytes.len() {
            // Without the last 4 bytes, the CRC of IEND, a PNG still has all its pixels.
            if library == ImageFormat::Png && end + 4 >= bytes.len() {
                continue;
            }
            let e = check_complete(&bytes[..end]).unwrap_err();
            assert!(matches!(e, Error::Truncated { .. }), "{library:?} cut at {end}: {e}");
        }
        check_complete(&[&bytes[..], b"trailing bytes \xFF\xD8\xFF"].concat()).unwrap();
    }
}

#[test]
fn end_marker_of_a_thumbnail_is_not_the_end_of_the_image() {
    let jpeg = sample(ImageFormat::Jpeg);
    let thumbnail = sample(ImageFormat::Jpeg);
    let len = (thumbnail.len() as u16 + 2).to_be_bytes();
    let tagged = [&jpeg[..2], &[0xFF, 0xE1], &len, &thumbnail, &jpeg[2..]].concat();
    check_complete(&tagged).unwrap();
    assert!(check_complete(&tagged[..tagged.len() - 2]).is_err());
}

#[test]
fn photographs_are_complete_and_their_halves_truncated() {
    let Some(files) = shared("data/imagenet-sample") else { return };
    assert!(files.len() >= 700);
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        probe(&bytes, &Limits::default()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        check_complete(&bytes).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert!(
            matches!(check_complete(&bytes[..bytes.len() / 2]), Err(Error::Truncated { .. })),
            "{}",
            file.display()
        );
    }
}

#[test]
fn probes_unusual_jpegs() {
    let Some(files) = shared("data/jpeg-corpus/reftest") else { return };
    let refused: Vec<_> = files
        .iter()
        .filter_map(|f| {
            let e = probe(&std::fs::read(f).unwrap(), &Limits::default()).err()?;
            Some(format!("{}: {e}", f.file_name()?.display()))
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    for file in shared("data/jpeg-corpus/crashtest").unwrap_or_default() {
        let bytes = std::fs::read(&file).unwrap();
        let _ = (probe(&bytes, &Limits::default()), check_complete(&bytes));
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(kind in 0..FORMATS.len(), keep in 0usize..16, tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let magic = sample(FORMATS[kind].0);
        let bytes = [&magic[..keep], &tail].concat();
        let _ = (probe(&bytes, &Limits::default()), check_complete(&bytes));
    }

    #[test]
    fn mutated_headers_never_panic(kind in 0..FORMATS.len(), at in 0usize..200, with in any::<u8>(), end in 0usize..4000) {
        let mut bytes = sample(FORMATS[kind].0);
        let at = at % bytes.len();
        bytes[at] = with;
        bytes.truncate(end.max(1));
        let _ = check_complete(&bytes);
        if let Ok(info) = probe(&bytes, &Limits::default()) {
            prop_assert!(u64::from(info.width) * u64::from(info.height) <= Limits::default().max_pixels);
            prop_assert!((1..=8).contains(&info.orientation));
        }
    }
}
