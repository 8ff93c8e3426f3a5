//! The dataset that `format-spec.md` shows in hex, and records like its own.

use crate::bytes::example::{List, bytes, ints, text};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

/// The pixels of the two records.
pub(crate) const CAT: [u8; 12] = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
pub(crate) const DOG: [u8; 6] = [1, 2, 3, 4, 5, 6];

/// Two records of raw pixels, in one shard.
pub(crate) fn tiny() -> Dataset {
    tiny_of(vec![cat(), dog()])
}

/// A dataset like `tiny` with other records.
pub(crate) fn tiny_of(samples: Vec<Sample>) -> Dataset {
    Dataset { classes: vec!["cat", "dog"], ..Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]) }
}

pub(crate) fn cat() -> Sample {
    Sample::new(record("cat/0.png", 0, "raw", (2, 2), &CAT)).with_pixels(&CAT)
}

pub(crate) fn dog() -> Sample {
    Sample::new(record("dog/1.png", 1, "raw", (1, 2), &DOG)).with_pixels(&DOG)
}

/// The fewest features that raw pixels allow. `size` is height and width.
pub(crate) fn record(key: &str, label: i64, format: &str, size: (i64, i64), encoded: &[u8]) -> Vec<(String, List)> {
    let features = [
        ("image/key", text(key)),
        ("image/class/label", ints([label])),
        ("image/format", text(format)),
        ("image/height", ints([size.0])),
        ("image/width", ints([size.1])),
        ("image/encoded", bytes([encoded])),
    ];
    features.map(|(name, list)| (name.to_owned(), list)).into()
}

/// A record of raw pixels, and further features.
pub(crate) fn with(key: &str, label: i64, more: Vec<(&str, List)>) -> Sample {
    let more = more.into_iter().map(|(name, list)| (name.to_owned(), list));
    let pixels = [label as u8, 7, 9];
    Sample::new(record(key, label, "raw", (1, 1), &pixels).into_iter().chain(more)).with_pixels(&pixels)
}
