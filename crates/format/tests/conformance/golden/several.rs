//! Clips: several images in one feature, and the ranges of their values.

use super::mixed::{COLOUR, GREY};
use crate::bytes::example::{bytes, floats, ints, text};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

/// A shard with value ranges, and one without: no value is longer than 256 bytes there, or no record has two.
pub(super) fn clips() -> Dataset {
    let long = [1u8; 257];
    let first = vec![
        Sample::new([
            ("clip", bytes([COLOUR.encoded, GREY.encoded, COLOUR.encoded])),
            ("clip/format", text("jpeg")),
            ("clip/fps", floats([29.97])),
            ("one-long", bytes([[7; 300]])),
            ("short", bytes(["a", "b"])),
            ("chunks", bytes([&b""[..], &long, b""])),
        ]),
        Sample::new([("clip", bytes([GREY.encoded])), ("chunks", bytes::<&str>([]))]),
        Sample::new([("clip", ints([1])), ("one-long", bytes(["short"])), ("chunks", bytes(["alone"]))]),
        Sample::new([("clip/fps", floats([1.0]))]),
    ];
    let second = vec![
        Sample::new([("clip", bytes([GREY.encoded])), ("short", bytes(["a", "b"])), ("chunks", bytes(["c", "d"]))]),
        Sample::new([("clip", bytes([COLOUR.encoded])), ("short", text("alone"))]),
    ];
    let shards = [first, second].into_iter().enumerate();
    let shards = shards.map(|(number, samples)| Shard::new("train", number, samples)).collect();
    Dataset { image: None, label: None, ..Dataset::new(vec![("train", shards)]) }
}
