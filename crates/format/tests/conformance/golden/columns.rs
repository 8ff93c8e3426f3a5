//! Columns of features: nulls, byte strings, and when a writer stores a column.

use super::tiny::with;
use crate::bytes::example::{List, bytes, floats, ints, text};
use crate::bytes::index::{Column, F32};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

fn dataset(shards: Vec<Vec<Sample>>) -> Dataset {
    let shards = shards.into_iter().enumerate().map(|(number, samples)| Shard::new("train", number, samples));
    Dataset::new(vec![("train", shards.collect())])
}

/// Nulls in numbers and byte strings, and features that have a column in one shard and none in another.
pub(super) fn columns() -> Dataset {
    // Nine records: the validity has two bytes.
    let first = (0..9).map(|i| {
        let mut features = vec![("always", ints([-i])), ("source", text(["web", "", "camera"][i as usize % 3]))];
        if i % 2 == 0 {
            features.extend([("even", ints([i])), ("score", floats([i as f32 / 4.0])), ("caption", text("even"))]);
        }
        if i == 8 {
            features.extend([("last", ints([0])), ("last-float", floats([0.0])), ("last-string", text(""))]);
        }
        if i == 1 {
            // An empty list is null, too.
            features.extend([("score", floats([])), ("caption", bytes::<&str>([])), ("only-empty", ints([]))]);
        }
        with(&format!("{i}.raw"), i, features)
    });
    // No column: two values, another type, a byte string of 257 bytes, names under `image/`, no value at all.
    let longest = "l".repeat(256);
    let second = vec![
        with(
            "a.raw",
            0,
            vec![
                ("always", ints([1])),
                ("even", ints([1, 2])),
                ("score", ints([3])),
                ("caption", text(&"c".repeat(257))),
                ("source", text(&longest)),
                ("image/note", text("n")),
                ("image/number", ints([1])),
                ("last", ints([])),
            ],
        ),
        with(
            "b.raw",
            1,
            vec![("even", ints([1])), ("score", floats([0.5])), ("caption", text("short")), ("source", text("x"))],
        ),
    ];
    dataset(vec![first.collect(), second])
}

/// Sixty-six columns of features.
pub(super) fn many() -> Dataset {
    let samples = (0..2).map(|row| {
        let names: Vec<String> = (0..62).map(|i| format!("n{i:02}")).collect();
        let features =
            names.iter().enumerate().filter(|(i, _)| i % 7 != row).map(|(i, name)| (name.as_str(), ints([i as i64])));
        with(&format!("{row}.raw"), row as i64, features.collect())
    });
    dataset(vec![samples.collect()])
}

/// Numbers at the ends of their types.
pub(super) fn numbers() -> Dataset {
    let floats: [u32; 10] = [
        0,
        0x8000_0000, // −0
        1,
        0x7f7f_ffff,
        0x7f80_0000, // infinity
        0xff80_0000,
        0x7fc0_0000, // NaN, quiet and signalling, with signs and payloads
        0xffc0_0001,
        0x7f80_0001,
        0xffff_ffff,
    ];
    let ints = [0, -1, 1, i64::MAX, i64::MIN, 127, 128, 1 << 31, (1 << 53) + 1, -(1 << 53) - 1];
    let samples = floats.iter().zip(ints).enumerate().map(|(row, (float, int))| {
        let features = vec![
            ("float", List::Float(vec![*float])),
            ("floats", List::Float(vec![*float, 0x3f80_0000])),
            ("int", List::Int64(vec![int])),
            ("ints", List::Int64(vec![int, -int.max(-i64::MAX)])),
        ];
        with(&row.to_string(), row as i64, features)
    });
    dataset(vec![samples.collect()])
}

/// Numbers of logical types, at the ends of their types: one, several, none, and byte strings that hold no number.
pub(super) fn logical() -> Dataset {
    let floats: [f64; 6] = [0.1, -0.0, f64::MAX, f64::MIN_POSITIVE / 4.0, f64::NEG_INFINITY, 1_700_000_000.123];
    let ints: [u64; 6] = [0, 1, u64::MAX, 1 << 63, (1 << 53) + 1, i64::MAX as u64];
    let mut samples: Vec<_> = floats
        .iter()
        .zip(ints)
        .enumerate()
        .map(|(row, (float, int))| {
            let (float, other) = (float.to_le_bytes(), f64::NAN.to_le_bytes());
            let mut features = vec![
                ("time", bytes([float])),
                ("times", bytes([float, other])),
                ("hash", bytes([int.to_le_bytes()])),
                ("hashes", bytes([int.to_le_bytes(), u64::MAX.to_le_bytes(), [0; 8]])),
            ];
            if row == 3 {
                features.truncate(1);
            }
            with(&row.to_string(), row as i64, features)
        })
        .collect();
    // A signalling NaN, and byte strings of other lengths.
    samples.push(with("nan", 6, vec![("time", bytes([0x7ff0_0000_0000_0001u64.to_le_bytes()]))]));
    samples.push(with("long", 7, vec![("time", text("123456789")), ("hashes", text(""))]));
    let logical = vec![("hash", "uint64"), ("hashes", "uint64"), ("time", "float64"), ("times", "float64")];
    Dataset { logical, ..dataset(vec![samples]) }
}

/// Keys: from each of the three sources, repeated in a shard and across shards and splits, empty, and not UTF-8.
pub(super) fn keys() -> Dataset {
    let sample = |features: Vec<(&str, List)>| Sample::new(features);
    let key = |key: &[u8]| ("image/key", bytes([key]));
    let name = |name: &str| ("image/filename", text(name));
    let first = vec![
        sample(vec![key(b"a"), name("unused")]),
        sample(vec![name("b")]),
        sample(vec![]),
        sample(vec![key(b"")]),
        sample(vec![key(b"a")]),
    ];
    let second = vec![
        sample(vec![("image/key", bytes(["one", "two"])), name("c")]),
        sample(vec![("image/key", ints([1])), ("image/filename", bytes::<&str>([]))]),
        sample(vec![key(b"\xff\x00\n"), name("unused")]),
        sample(vec![key(b"b")]),
        sample(vec![key("große/é".as_bytes())]),
    ];
    let third = vec![sample(vec![key(b"other")]), sample(vec![])];
    let shards = [first, vec![], second].into_iter().enumerate();
    let shards = shards.map(|(number, samples)| Shard::new("train", number, samples)).collect();
    let other = Shard::named("näher.tfrecord", None, third);
    Dataset { image: None, label: None, ..Dataset::new(vec![("other", vec![other]), ("train", shards)]) }
}

/// Labels that give no class, with an offset.
pub(super) fn classes() -> Dataset {
    let labels: [List; 10] = [
        ints([7]),
        ints([9]),
        ints([10]), // past the last class
        ints([6]),  // negative
        ints([i64::MIN]),
        ints([i64::MAX]),
        ints([]),
        ints([7, 8]),
        floats([7.0]),
        text("7"),
    ];
    let sample = |label: List| Sample::new([("class", label)]);
    let mut samples: Vec<_> = labels.map(sample).into();
    samples.push(Sample::new(Vec::<(String, List)>::new()));
    let named = ["zero", "one", "two"].to_vec();
    let split = vec![("train", vec![Shard::new("train", 0, samples)])];
    Dataset { image: None, label: Some("class"), label_offset: 7, classes: named, ..Dataset::new(split) }
}

/// Class ids without names: the smallest, some that are large, and labels next to them that are none.
pub(super) fn unnamed_classes() -> Dataset {
    let max = i64::MAX;
    let labels = [-3, -2, 0, 198, 1 << 40, max - 2, max - 1, max];
    let samples = labels.map(|label| Sample::new([("class", ints([label]))])).into();
    let split = vec![("train", vec![Shard::new("train", 0, samples)])];
    Dataset { image: None, label: Some("class"), label_offset: -2, ..Dataset::new(split) }
}

/// A dataset with a column of each kind, each with nulls where it may have some.
pub(crate) fn kinds() -> Dataset {
    let samples = (0..10).map(|i| {
        let mut features =
            vec![("clip", bytes([vec![i as u8; if i == 1 { 300 } else { 3 }], vec![7; 2]])), ("a", ints([i]))];
        if i % 3 == 0 {
            features = vec![("number", ints([i + 1])), ("score", floats([0.5 + i as f32])), ("note", text("note"))];
        }
        with(&format!("{i}.raw"), i, features).with_entries(if i == 2 { &[1, 3] } else { &[] })
    });
    let mut dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples.collect())])]);
    // Entry points of raw pixels would be damage of their own.
    let shard = dataset.shard();
    shard.column("jpeg_entries").offsets.as_mut().expect("offsets").fill(0);
    shard.column("jpeg_entries").values.clear();
    shard.columns.push(Column::fixed("x-unknown", F32, vec![0x3f; 40]));
    shard.reindex();
    dataset
}
