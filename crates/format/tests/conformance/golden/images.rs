//! Images: formats that the record does not name, records without an image, and JPEG entry points.

use super::mixed::{COLOUR, GREY, source};
use super::tiny::{CAT, record};
use crate::bytes::example::{List, bytes, floats, ints, text};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

/// Records that name no format, name it wrongly or have no image.
pub(super) fn images() -> Dataset {
    let sniffed: [&[u8]; 6] = [
        COLOUR.encoded,
        source!("alpha.png"),
        source!("palette.gif"),
        source!("colour.bmp"),
        source!("colour.tiff"),
        source!("lossless.webp"),
    ];
    let mut samples: Vec<_> = sniffed.iter().map(|image| Sample::new([("image/encoded", bytes([image]))])).collect();
    // A format that is not exactly one byte string is absent.
    samples.push(Sample::new([("image/encoded", bytes([GREY.encoded])), ("image/format", bytes(["raw", "png"]))]));
    samples.push(Sample::new([("image/encoded", bytes([GREY.encoded])), ("image/format", ints([1]))]));
    // No image: no feature, two values, another type. Its format does not matter then.
    samples.push(Sample::new([("image/format", text("raw"))]));
    samples.push(Sample::new([("image/encoded", bytes(["one", "two"])), ("image/format", text("nothing known"))]));
    samples.push(Sample::new([("image/encoded", floats([1.0])), ("image/format", text("raw"))]));
    samples.push(Sample::new([("image/encoded", bytes::<&str>([]))]));
    // Raw pixels are upright whatever the orientation is.
    let turned = record("turned", 0, "raw", (2, 2), &CAT).into_iter();
    let turned = turned.chain([("image/orientation".to_owned(), ints([6])), ("image/channels".to_owned(), ints([1]))]);
    samples.push(Sample::new(turned).with_pixels(&CAT));
    // Names of files in any case.
    samples.push(Sample::new([("image/encoded", bytes([COLOUR.encoded])), ("image/format", text("JPEG"))]));
    let dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    Dataset { label: None, ..dataset }
}

/// JPEG entry points: those of a JPEG, and empty rows, of images that have some and of images that have none.
pub(super) fn entry_points() -> Dataset {
    // By entry-points/make.py.
    let two_groups = [1, 3, 0x90, 0x15, 0, 0, 0x26, 0, 0xf2, 0xff, 0x22, 0];
    let jpeg = |encoded: &[u8]| Sample::new([("image/encoded", bytes([encoded])), ("image/format", text("jpeg"))]);
    let samples = vec![
        jpeg(COLOUR.encoded).with_entries(&two_groups),
        jpeg(COLOUR.encoded),
        jpeg(GREY.encoded),
        Sample::new([("image/encoded", bytes([source!("alpha.png")]))]),
        Sample::new(Vec::<(String, List)>::new()),
    ];
    let dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    Dataset { label: None, ..dataset }
}
