//! Records whose pixels are not what height, width and format say.

use super::{SHARD, case, damage};
use crate::bytes::example::{List, floats, ints, text};
use crate::bytes::zstd::{Frame, block, checksum, skippable};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::tiny::{dog, record, tiny_of};
use crate::sample::Sample;

/// A case like `tiny` whose first record has these features, and pixels with this damage.
fn first(name: &str, features: Vec<(String, List)>) -> Case {
    let damage = damage(name);
    of(name, Sample::new(features).with_wrong_pixels(damage), |e| e.finds(damage, SHARD, Some(0), Some(0)))
}

fn of(name: &str, sample: Sample, expect: impl FnOnce(Expected) -> Expected) -> Case {
    case(name, &tiny_of(vec![sample, dog()]), expect)
}

fn raw(name: &str, size: (i64, i64), pixels: &[u8]) -> Case {
    first(name, record("cat/0.png", 0, "raw", size, pixels))
}

/// Raw pixels with one feature replaced, or removed.
fn other(name: &str, feature: &str, list: Option<List>, pixels: &[u8]) -> Case {
    let features = record("cat/0.png", 0, "raw", (2, 2), pixels).into_iter().filter(|(name, _)| name != feature);
    first(name, features.chain(list.map(|list| (feature.to_owned(), list))).collect())
}

/// A zstd frame for 2 × 2 pixels. What its header says can be checked without a decoder.
fn compressed(name: &str, image: &[u8]) -> Case {
    sized(name, (2, 2), image)
}

fn sized(name: &str, size: (i64, i64), image: &[u8]) -> Case {
    let (damage, features) = (damage(name), record("cat/0.png", 0, "raw-zstd", size, image));
    of(name, Sample::new(features).with_wrong_pixels(damage), |e| {
        let e = e.finds(damage, SHARD, Some(0), Some(0));
        if damage == "ImageDecode" { e.decoding("zstd") } else { e }
    })
}

const SEVENS: [u8; 12] = [7; 12];

pub(super) fn all() -> Vec<Case> {
    let wide = 1i64 << 32;
    let mut cases = vec![
        raw("PixelsLength-raw", (2, 2), &[7; 11]),
        raw("PixelsLength-raw-longer", (2, 2), &[7; 13]),
        raw("PixelsLength-zero-height", (0, 2), &[]),
        raw("PixelsLength-zero-width", (2, 0), &[]),
        raw("PixelsLength-negative", (-2, -2), &SEVENS),
        // The product is 0 modulo 2⁶⁴, and 12 modulo 2³².
        raw("PixelsLength-overflow", (wide, wide), &[]),
        raw("PixelsLength-overflow-32", ((1 << 30) + 1, 4), &SEVENS),
        raw("PixelsLength-largest", (i64::MAX, i64::MAX), &SEVENS),
        other("PixelsLength-no-width", "image/width", None, &SEVENS),
        other("PixelsLength-no-height", "image/height", None, &SEVENS),
        other("PixelsLength-two-heights", "image/height", Some(ints([2, 2])), &SEVENS),
        other("PixelsLength-float-width", "image/width", Some(floats([2.0])), &SEVENS),
    ];
    cases.extend(frames());
    cases.extend(formats());
    cases
}

fn frames() -> Vec<Case> {
    let good = Frame::of(&SEVENS);
    let of = |change: &dyn Fn(&mut Frame)| {
        let mut frame = Frame::of(&SEVENS);
        change(&mut frame);
        frame.bytes()
    };
    let huffman = include_bytes!("../../../../../fixtures/sources/huffman.zst");
    vec![
        compressed("PixelsLength-raw-zstd", &Frame::of(&[7; 13]).bytes()),
        compressed("PixelsLength-raw-zstd-unknown", &of(&|f| (f.size_bytes, f.single_segment) = (0, false))),
        compressed("PixelsLength-raw-zstd-size-only", &of(&|f| f.content_size = 11)),
        compressed("PixelsLength-raw-zstd-eight-bytes", &of(&|f| (f.size_bytes, f.content_size) = (8, 12 << 32 | 12))),
        first("PixelsLength-raw-zstd-no-width", {
            let features = record("cat/0.png", 0, "raw-zstd", (2, 2), &good.bytes()).into_iter();
            features.filter(|(name, _)| name != "image/width").collect()
        }),
        compressed("ImageDecode-raw-zstd", &of(&|f| f.blocks = block(0, true, 100, &SEVENS))),
        compressed("ImageDecode-raw-zstd-truncated", &good.bytes()[..good.bytes().len() - 1]),
        compressed("ImageDecode-raw-zstd-no-block", &of(&|f| f.blocks.clear())),
        compressed("ImageDecode-raw-zstd-no-last-block", &of(&|f| f.blocks = block(0, false, 12, &SEVENS))),
        compressed("ImageDecode-raw-zstd-too-short", &of(&|f| f.blocks = block(0, true, 11, &[7; 11]))),
        compressed("ImageDecode-raw-zstd-too-long", &of(&|f| f.blocks = block(1, true, 13, &[7]))),
        compressed("ImageDecode-raw-zstd-reserved-block", &of(&|f| f.blocks = block(3, true, 12, &SEVENS))),
        // Read as the header of a frame, it has another content size.
        compressed("ImageDecode-raw-zstd-no-frame", b"pixels as text"),
        compressed("ImageDecode-raw-zstd-reserved-bit", &of(&|f| f.reserved = true)),
        compressed("ImageDecode-raw-zstd-dictionary", &of(&|f| f.dictionary = Some(5))),
        compressed("ImageDecode-raw-zstd-checksum", &of(&|f| f.checksum = Some(checksum(&SEVENS) ^ 1))),
        compressed("ImageDecode-raw-zstd-no-checksum", &{
            let frame = of(&|f| f.checksum = Some(checksum(&SEVENS)));
            frame[..frame.len() - 4].to_vec()
        }),
        compressed("ImageDecode-raw-zstd-trailing-byte", &[&good.bytes()[..], &[0]].concat()),
        compressed("ImageDecode-raw-zstd-two-frames", &[good.bytes(), Frame::of(&[]).bytes()].concat()),
        compressed("ImageDecode-raw-zstd-skippable-after", &[good.bytes(), skippable(b"")].concat()),
        // No literals, no table, and nothing before the first byte.
        compressed("ImageDecode-raw-zstd-literals", &of(&|f| f.blocks = block(2, true, 3, &[12 << 3, 7, 7]))),
        compressed("ImageDecode-raw-zstd-treeless", &of(&|f| f.blocks = block(2, true, 5, &[0xc3, 0x40, 0, 1, 0]))),
        compressed(
            "ImageDecode-raw-zstd-offset",
            &of(&|f| {
                // One literal, then a match of 11 bytes at distance 2.
                f.blocks = block(2, true, 7, &[1 << 3, 7, 1, 0, 0x19, 0x4e, 0x08]);
            }),
        ),
        sized("ImageDecode-raw-zstd-cut-block", (20, 20), &huffman[..huffman.len() - 1]),
    ]
}

fn formats() -> Vec<Case> {
    let with_format = |name, image: &[u8], format: Option<&str>| {
        let features =
            record("cat/0.png", 0, "raw", (2, 2), image).into_iter().filter(|(name, _)| name != "image/format");
        (name, Sample::new(features.chain(format.map(|format| (String::from("image/format"), text(format))))))
    };
    let found = |(name, sample): (&str, Sample)| of(name, sample, |e| e.finds(damage(name), SHARD, Some(0), Some(0)));
    let decoded = |(name, sample): (&str, Sample)| {
        of(name, sample, |e| e.finds(damage(name), SHARD, Some(0), Some(0)).decoding("jpeg"))
    };
    let jpeg = include_bytes!("../../../../../fixtures/sources/grey.jpg");
    vec![
        found(with_format("ImageDecode-format", &SEVENS, Some("etching"))),
        found(with_format("ImageDecode-format-case", &SEVENS, Some("RAW"))),
        found(with_format("ImageDecode-format-empty", &SEVENS, Some(""))),
        found(with_format("ImageDecode-format-private", &SEVENS, Some("x-own"))),
        // No format, and first bytes that are no image's; almost those of a BMP and of an AVIF.
        found(with_format("ImageDecode-unknown-signature", &SEVENS, None)),
        found(with_format("ImageDecode-almost-bmp", &[b"BM1234567890123\x29\0\0\0", &SEVENS[..]].concat(), None)),
        found(with_format("ImageDecode-almost-avif", b"\0\0\0\x18ftypxxxx\0\0\0\0miafMiHBavif", None)),
        found(with_format("ImageDecode-empty-image", b"", None)),
        decoded(with_format("ImageDecode-jpeg", b"not an image", Some("jpeg"))),
        decoded(with_format("ImageDecode-jpeg-cut", &jpeg[..jpeg.len() - 40], Some("jpeg"))),
        decoded(with_format("ImageDecode-empty-jpeg", b"", Some("jpeg"))),
    ]
}
