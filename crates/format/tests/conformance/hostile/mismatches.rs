//! Indexes that say something else than the records.

use super::{INDEX, case, changed, damage};
use crate::bytes::crc::{masked, sum};
use crate::bytes::example::{List, bytes, text};
use crate::bytes::index::{Column, Header, file};
use crate::dataset::{Dataset, Shard};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::columns::kinds;
use crate::golden::tiny::{CAT, DOG, dog, tiny};
use crate::sample::Sample;
use serde_json::{Value, json};

/// `tiny` with a column changed before the index is written.
fn column(
    name: &str,
    column: &str,
    change: impl FnOnce(&mut Column),
    expect: impl FnOnce(Expected) -> Expected,
) -> Case {
    let dataset = changed(|dataset| {
        change(dataset.shard().column(column));
        dataset.shard().reindex();
    });
    case(name, &dataset, expect)
}

/// A case with all kinds of columns; the value of one row is another one.
fn value(name: &str, of: &str, row: usize, value: Value, change: impl FnOnce(&mut Column)) -> Case {
    let mut dataset = kinds();
    change(dataset.shard().column(of));
    dataset.shard().reindex();
    let expect =
        |e: Expected| e.column_value("train", 0, of, row, value).finds(damage(name), INDEX, Some(row as u64), None);
    case(name, &dataset, expect)
}

const MISMATCH: &str = "IndexMismatch";

pub(super) fn all() -> Vec<Case> {
    let row = |e: Expected, row: u64| e.finds(MISMATCH, INDEX, Some(row), None);
    let mut cases = vec![
        column(
            "IndexMismatch-record-offset",
            "record_offset",
            |c| c.values.rotate_left(8),
            // Neither frame is as long as the distance to the next offset.
            |e| row(row(e.loses("train", 0, MISMATCH).loses("train", 1, MISMATCH), 0), 1),
        ),
        column(
            "IndexMismatch-record-offset-past-end",
            "record_offset",
            |c| c.values[8..].copy_from_slice(&(u64::MAX - 3).to_le_bytes()),
            |e| row(e.may_lose("train", 0, &[MISMATCH]).loses("train", 1, MISMATCH), 1),
        ),
        column(
            "IndexMismatch-record-offset-at-end",
            "record_offset",
            |c| c.values[8..].copy_from_slice(&354u64.to_le_bytes()),
            |e| row(e.may_lose("train", 0, &[MISMATCH]).loses("train", 1, MISMATCH), 1),
        ),
        column(
            "IndexMismatch-record-offset-inside",
            "record_offset",
            |c| c.values[8] += 4,
            |e| {
                let e = e.may_lose("train", 0, &[MISMATCH]).loses("train", 1, MISMATCH);
                row(e.may_lose("train", 1, &["IndexMismatch", "LengthCrc", "TruncatedFrame"]), 1)
            },
        ),
        // Which bytes are the image: those of the index, or those of the Example.
        column(
            "IndexMismatch-image-offset",
            "image_offset",
            |c| c.values[0] += 1,
            |e| {
                let shifted = [&CAT[1..], &[0x0a]].concat();
                row(e.record_any("train", 0, "image", &[json!(sum(&CAT)), json!(sum(&shifted))]), 0)
            },
        ),
        column(
            "IndexMismatch-image-length",
            "image_length",
            |c| c.values[4] = 0,
            |e| {
                let (own, empty) = (json!(sum(&DOG)), json!(sum(b"")));
                row(e.record_any("train", 1, "image", &[own, empty]), 1)
            },
        ),
        column(
            "IndexMismatch-image-longer",
            "image_length",
            |c| c.values[0] += 1,
            |e| {
                let longer = [&CAT[..], &[0x0a]].concat();
                row(e.record_any("train", 0, "image", &[json!(sum(&CAT)), json!(sum(&longer))]), 0)
            },
        ),
        column(
            "IndexMismatch-image-past-record",
            "image_length",
            |c| c.values[4..].fill(0xff),
            |e| row(e.may_lose("train", 1, &[MISMATCH]), 1),
        ),
        column(
            "IndexMismatch-image-offset-past-record",
            "image_offset",
            |c| c.values[4..].fill(0xff),
            |e| row(e.may_lose("train", 1, &[MISMATCH]), 1),
        ),
        column(
            "IndexMismatch-image-one-byte-past-record",
            "image_length",
            |c| c.values[4] = (158 - 54 + 1) as u8,
            |e| row(e.may_lose("train", 1, &[MISMATCH]), 1),
        ),
        column(
            "IndexMismatch-key",
            "key",
            |c| c.values[0] = b'b',
            |e| {
                let e = e.record_any("train", 0, "key", &[json!(sum(b"cat/0.png")), json!(sum(b"bat/0.png"))]);
                row(lookup(e, b"cat/0.png", b"bat/0.png"), 0)
            },
        ),
        column(
            "IndexMismatch-key-boundary",
            "key",
            |c| c.offsets.as_mut().expect("offsets")[8] = 8,
            |e| {
                let e = e.record_any("train", 0, "key", &[json!(sum(b"cat/0.png")), json!(sum(b"cat/0.pn"))]);
                let e = e.record_any("train", 1, "key", &[json!(sum(b"dog/1.png")), json!(sum(b"gdog/1.png"))]);
                let e = lookup(lookup(e, b"cat/0.png", b"cat/0.pn"), b"dog/1.png", b"gdog/1.png");
                row(row(e, 0), 1)
            },
        ),
        column(
            "IndexMismatch-number",
            "feature:image/class/label",
            |c| c.values[8] = 0,
            |e| row(e.column_value("train", 0, "feature:image/class/label", 1, json!("0")), 1),
        ),
        column(
            "IndexMismatch-number-high-byte",
            "feature:image/width",
            |c| c.values[7] = 0x80,
            |e| {
                let other = (i64::MIN + 2).to_string();
                row(e.column_value("train", 0, "feature:image/width", 0, json!(other)), 0)
            },
        ),
        // Two columns of one row: two findings.
        two_columns(),
        shard_of_header("IndexMismatch-shard-crc", |header| header.shard_crc ^= 1),
        shard_of_header("IndexMismatch-shard-length", |header| header.shard_bytes += 1),
    ];
    cases.extend(nulls());
    cases.extend(ranges());
    cases.extend(no_image());
    cases.extend(jpeg_entries());
    cases.push(absent_feature());
    cases
}

fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces the key of a lookup.
fn lookup(mut expected: Expected, from: &[u8], to: &[u8]) -> Expected {
    let line = expected.read.iter_mut().find(|line| line["lookup"] == hex(from)).expect("a lookup");
    line["lookup"] = json!(hex(to));
    expected
}

fn two_columns() -> Case {
    let dataset = changed(|dataset| {
        let shard = dataset.shard();
        shard.column("feature:image/height").values[0] = 3;
        shard.column("feature:image/width").values[0] = 3;
        shard.reindex();
    });
    case("IndexMismatch-two-columns", &dataset, |e| {
        let e = e.column_value("train", 0, "feature:image/height", 0, json!("3"));
        let e = e.column_value("train", 0, "feature:image/width", 0, json!("3"));
        e.finds(MISMATCH, INDEX, Some(0), None).finds(MISMATCH, INDEX, Some(0), None)
    })
}

/// The header names another shard.
fn shard_of_header(name: &str, change: impl FnOnce(&mut Header)) -> Case {
    let dataset = changed(|dataset| {
        let shard = dataset.shard();
        let mut header = shard.header();
        change(&mut header);
        shard.index = file(&header, &shard.columns);
    });
    case(name, &dataset, |e| super::no_records(e, MISMATCH).finds(MISMATCH, INDEX, None, None))
}

/// Nulls for values, values for nulls, and values that differ in their bits only. Rows 0, 3, 6 and 9 have values.
fn nulls() -> Vec<Case> {
    let (note, number, score) = ("feature:note", "feature:number", "feature:score");
    let bit = |c: &mut Column, row: usize| c.validity.as_mut().expect("validity")[row / 8] ^= 1 << (row % 8);
    vec![
        value("IndexMismatch-null-number", number, 3, Value::Null, |c| {
            bit(c, 3);
            c.values[24..32].fill(0);
        }),
        value("IndexMismatch-null-in-second-byte", number, 9, Value::Null, |c| {
            bit(c, 9);
            c.values[72..80].fill(0);
        }),
        value("IndexMismatch-number-for-null", number, 1, json!("0"), |c| bit(c, 1)),
        value("IndexMismatch-float", score, 6, json!("40d00001"), |c| c.values[24] = 1),
        value("IndexMismatch-float-for-null", score, 8, json!("00000000"), |c| bit(c, 8)),
        value("IndexMismatch-null-float", score, 0, Value::Null, |c| {
            bit(c, 0);
            c.values[..4].fill(0);
        }),
        value("IndexMismatch-bytes", note, 6, json!(sum(b"nope")), |c| c.values[8..12].copy_from_slice(b"nope")),
        value("IndexMismatch-empty-bytes-for-null", note, 7, json!(sum(b"")), |c| bit(c, 7)),
        value("IndexMismatch-null-bytes", note, 9, Value::Null, |c| {
            bit(c, 9);
            c.values.truncate(12);
            c.offsets.as_mut().expect("offsets")[80..].copy_from_slice(&12i64.to_le_bytes());
        }),
        value("IndexMismatch-shorter-bytes", note, 9, json!(sum(b"not")), |c| {
            c.values.pop();
            c.offsets.as_mut().expect("offsets")[80..].copy_from_slice(&15i64.to_le_bytes());
        }),
        bits("IndexMismatch-nan", 0x7fc0_0000, 0x7fc0_0001),
        bits("IndexMismatch-nan-sign", 0x7fc0_0000, 0xffc0_0000),
        bits("IndexMismatch-minus-zero", 0, 0x8000_0000),
    ]
}

/// A float in the record, and one with other bits in the index.
fn bits(name: &str, own: u32, other: u32) -> Case {
    let sample = |bits| Sample::new([("f", List::Float(vec![bits]))]);
    let shard = Shard::new("train", 0, vec![sample(own), sample(0x7fc0_0000)]);
    let mut dataset = Dataset { image: None, label: None, ..Dataset::new(vec![("train", vec![shard])]) };
    dataset.shard().column("feature:f").values[..4].copy_from_slice(&other.to_le_bytes());
    dataset.shard().reindex();
    let other = json!(format!("{other:08x}"));
    case(name, &dataset, |e| e.column_value("train", 0, "feature:f", 0, other).finds(MISMATCH, INDEX, Some(0), None))
}

/// A column of a feature that no record has.
fn absent_feature() -> Case {
    let mut dataset = tiny();
    let shard = dataset.shard();
    shard.columns.push(Column::fixed("feature:absent", crate::bytes::index::I64, vec![0; 16]));
    shard.reindex();
    case("IndexMismatch-absent-feature", &dataset, |mut e| {
        e.read.push(json!({"split": "train", "shard": 0, "column": "feature:absent", "values": ["0", "0"]}));
        e.finds(MISMATCH, INDEX, Some(0), None).finds(MISMATCH, INDEX, Some(1), None)
    })
}

/// Value ranges. Rows 1, 2, 4, 5, 7 and 8 have two values of 300 bytes.
fn ranges() -> Vec<Case> {
    let clip = "values:clip";
    let mut good = kinds();
    let row = good.shard().column(clip).values[..24].to_vec();
    let number = |at: usize| u32::from_le_bytes(row[at..at + 4].try_into().expect("four bytes"));
    let show = |n: [u32; 3]| json!([n[0].to_string(), n[1].to_string(), format!("{:08x}", n[2])]);
    let (first, second) = ([number(0), number(4), number(8)], [number(12), number(16), number(20)]);
    let is = move |first: [u32; 3]| json!([show(first), show(second)]);
    let set = |at: usize, n: u32| move |c: &mut Column| c.values[at..at + 4].copy_from_slice(&n.to_le_bytes());
    let [offset, length, crc] = first;
    vec![
        value("IndexMismatch-range-offset", clip, 1, is([offset + 1, length, crc]), set(0, offset + 1)),
        value("IndexMismatch-range-length", clip, 1, is([offset, length - 1, crc]), set(4, length - 1)),
        value("IndexMismatch-range-crc", clip, 1, is([offset, length, crc ^ 1]), set(8, crc ^ 1)),
        value("IndexMismatch-range-masked-crc", clip, 1, is([offset, length, masked(crc)]), set(8, masked(crc))),
        value("IndexMismatch-range-outside", clip, 1, is([u32::MAX, length, crc]), set(0, u32::MAX)),
        value("IndexMismatch-range-past-record", clip, 1, is([offset, u32::MAX, crc]), set(4, u32::MAX)),
        value("IndexMismatch-ranges-too-few", clip, 1, json!([show(first)]), |c| {
            c.values.drain(12..24);
            let offsets = c.offsets.as_mut().expect("offsets");
            for row in 2..11 {
                let field: &mut [u8; 8] = (&mut offsets[8 * row..8 * row + 8]).try_into().expect("eight bytes");
                *field = (i64::from_le_bytes(*field) - 12).to_le_bytes();
            }
        }),
        value("IndexMismatch-ranges-of-nothing", clip, 0, json!([show(first)]), |c| {
            let twelve = c.values[..12].to_vec();
            c.values.splice(0..0, twelve);
            let offsets = c.offsets.as_mut().expect("offsets");
            for row in 1..11 {
                let field: &mut [u8; 8] = (&mut offsets[8 * row..8 * row + 8]).try_into().expect("eight bytes");
                *field = (i64::from_le_bytes(*field) + 12).to_le_bytes();
            }
        }),
        value("IndexMismatch-ranges-exchanged", clip, 1, json!([show(second), show(first)]), |c| {
            c.values[..24].rotate_left(12)
        }),
    ]
}

/// Records without an image whose row says that they have one, and the reverse.
fn no_image() -> Vec<Case> {
    let two = Sample::new([("image/encoded", bytes(["a", "b"])), ("image/key", text("two"))]);
    let dataset = |offset: u32, length: u32| {
        let mut dataset =
            Dataset { label: None, ..Dataset::new(vec![("train", vec![Shard::new("train", 0, vec![two.clone()])])]) };
        dataset.shard().column("image_offset").values = offset.to_le_bytes().to_vec();
        dataset.shard().column("image_length").values = length.to_le_bytes().to_vec();
        dataset.shard().reindex();
        dataset
    };
    let image = dataset(4, 1);
    let byte = sum(&two.data[4..5]);
    vec![
        case("IndexMismatch-image-of-no-image", &image, |e| {
            let e = e.record_any("train", 0, "image", &[Value::Null, json!(byte)]);
            e.finds(MISMATCH, INDEX, Some(0), None)
        }),
        case("IndexMismatch-length-of-no-image", &dataset(0, 1), |e| e.finds(MISMATCH, INDEX, Some(0), None)),
        column(
            "IndexMismatch-no-image",
            "image_offset",
            |c| c.values[..4].fill(0),
            |e| {
                let e = e.record_any("train", 0, "image", &[Value::Null, json!(sum(&CAT))]);
                e.finds(MISMATCH, INDEX, Some(0), None)
            },
        ),
    ]
}

/// JPEG entry points that are not the image's. Only decoding finds them.
fn jpeg_entries() -> Vec<Case> {
    let jpeg = include_bytes!("../../../../../fixtures/sources/colour.jpg");
    let (good, raw) = ([1, 3, 0x90, 0x15, 0, 0, 0x26, 0, 0xf2, 0xff, 0x22, 0], dog());
    let of = |name: &str, entries: &[u8]| {
        let features = [("image/encoded", bytes([jpeg])), ("image/format", text("jpeg"))];
        let samples = vec![Sample::new(features).with_entries(entries), raw.clone()];
        let dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
        case(name, &dataset, |e| e.finds(MISMATCH, INDEX, Some(0), None).decoding("jpeg"))
    };
    let edited = |at: usize| {
        let mut entries = good;
        entries[at] ^= 1;
        entries
    };
    let of_pixels = {
        let samples = vec![raw.clone().with_entries(&good)];
        let dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
        case("IndexMismatch-entries-of-raw-pixels", &dataset, |e| {
            e.finds(MISMATCH, INDEX, Some(0), None).decoding("jpeg")
        })
    };
    vec![
        of("IndexMismatch-entries-position", &edited(2)),
        of("IndexMismatch-entries-predictor", &edited(10)),
        of("IndexMismatch-entries-cut", &good[..11]),
        of("IndexMismatch-entries-step", &[&[9][..], &good[1..]].concat()),
        of_pixels,
    ]
}
