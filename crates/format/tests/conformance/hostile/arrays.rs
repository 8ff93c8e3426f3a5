//! Arrays whose chunks or descriptions are wrong.

use super::{SHARD, case, damage};
use crate::bytes::example::{List, bytes, floats, ints, text};
use crate::bytes::zstd::{Frame, skippable};
use crate::dataset::{Dataset, Shard};
use crate::golden::Case;
use crate::golden::arrays::Array;
use crate::sample::Sample;

const RAW: Array<'_> = Array { shape: &[3, 2], chunk: &[2, 2], dtype: "u16", width: 2, codec: "raw" };
const ZSTD: Array<'_> = Array { codec: "zstd", ..RAW };

/// A case with a damaged array in the first of two records.
fn first(name: &str, features: Vec<(String, List)>) -> Case {
    let bad = Sample::new(features).with_wrong_array("v", damage(name));
    let shard = Shard::named(SHARD, None, vec![bad, RAW.sample("v")]);
    let dataset = Dataset { image: None, label: None, ..Dataset::new(vec![("train", vec![shard])]) };
    case(name, &dataset, |e| {
        let e = e.finds(damage(name), SHARD, Some(0), Some(0));
        let zstd = dataset.splits[0].1[0].samples[0].string("v/codec") == Some(b"zstd");
        if zstd && damage(name) == "ImageDecode" { e.decoding("zstd") } else { e }
    })
}

/// An array with other chunks.
fn chunks(name: &str, array: &Array<'_>, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Case {
    let mut chunks = array.chunks(&array.data());
    if array.codec == "zstd" {
        chunks = chunks.iter().map(|chunk| Frame::of(chunk).bytes()).collect();
    }
    change(&mut chunks);
    first(name, array.features("v", chunks))
}

/// An array with one of its features replaced.
fn feature(name: &str, feature: &str, list: List) -> Case {
    let mut features = RAW.features("v", RAW.chunks(&RAW.data()));
    features.iter_mut().find(|(name, _)| name == feature).expect("a feature of the array").1 = list;
    first(name, features)
}

/// An array of this description, with one chunk of these bytes.
fn described(name: &str, shape: &[i64], chunk: &[i64], bytes: &[u8]) -> Case {
    first(name, Array { shape, chunk, ..RAW }.features("v", vec![bytes.to_vec()]))
}

pub(super) fn all() -> Vec<Case> {
    vec![
        chunks("PixelsLength-array-too-few-chunks", &RAW, |c| drop(c.pop())),
        chunks("PixelsLength-array-too-many-chunks", &RAW, |c| c.push(vec![])),
        chunks("PixelsLength-array-no-chunks", &RAW, |c| c.clear()),
        chunks("PixelsLength-array-chunk", &RAW, |c| c[0].truncate(7)),
        chunks("PixelsLength-array-padded-edge", &RAW, |c| c[1].extend([0; 4])),
        chunks("PixelsLength-array-content-size", &ZSTD, |c| c[1] = Frame::of(&[0; 8]).bytes()),
        chunks("PixelsLength-array-no-content-size", &ZSTD, |c| {
            c[0] = Frame { size_bytes: 0, single_segment: false, ..Frame::of(&[0; 8]) }.bytes();
        }),
        described("PixelsLength-array-chunk-of-nothing", &[0, 2], &[1, 1], &[]),
        feature("PixelsLength-array-numbers", "v", ints([1, 2])),
        first("PixelsLength-array-absent", RAW.features("v", vec![]).split_off(1)),
        feature("ImageDecode-array-dtype", "v/dtype", text("u24")),
        feature("ImageDecode-array-dtype-case", "v/dtype", text("U16")),
        feature("ImageDecode-array-two-dtypes", "v/dtype", bytes(["u16", "u16"])),
        feature("ImageDecode-array-dtype-type", "v/dtype", ints([16])),
        feature("ImageDecode-array-codec", "v/codec", text("lz4")),
        feature("ImageDecode-array-no-codec", "v/codec", bytes::<&str>([])),
        feature("ImageDecode-array-shape-type", "v/shape", floats([3.0, 2.0])),
        feature("ImageDecode-array-chunk-type", "v/chunk", bytes(["2", "2"])),
        feature("ImageDecode-array-no-dimensions", "v/shape", ints([])),
        feature("ImageDecode-array-more-dimensions", "v/shape", ints([3, 2, 1])),
        feature("ImageDecode-array-fewer-dimensions", "v/shape", ints([6])),
        feature("ImageDecode-array-negative", "v/shape", ints([-3, -2])),
        feature("ImageDecode-array-chunk-zero", "v/chunk", ints([0, 2])),
        feature("ImageDecode-array-chunk-negative", "v/chunk", ints([2, -2])),
        // 2⁶³ elements, and 2⁶⁴.
        described("ImageDecode-array-overflow", &[1 << 32, 1 << 31], &[1 << 32, 1 << 31], &[0; 2]),
        described("ImageDecode-array-overflow-64", &[1 << 32, 1 << 32], &[1 << 32, 1 << 32], &[]),
        chunks("ImageDecode-array-chunk-cut", &ZSTD, |c| c[1].truncate(12)),
        chunks("ImageDecode-array-trailing-byte", &ZSTD, |c| c[0].push(0)),
        chunks("ImageDecode-array-skippable", &ZSTD, |c| c[1].extend(skippable(b"x"))),
        chunks("ImageDecode-array-dictionary", &ZSTD, |c| {
            c[0] = Frame { dictionary: Some(1), ..Frame::of(&RAW.chunks(&RAW.data())[0]) }.bytes();
        }),
        chunks("ImageDecode-array-checksum", &ZSTD, |c| {
            c[1] = Frame { checksum: Some(1), ..Frame::of(&RAW.chunks(&RAW.data())[1]) }.bytes();
        }),
    ]
}
