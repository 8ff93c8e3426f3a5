//! Columns whose bytes are damaged, or that cannot be.

use super::directory::{OFFSETS, VALIDITY, VALUES, entry};
use super::{INDEX, SECOND, SHARD, case, damage};
use crate::bytes::example::{List, ints};
use crate::bytes::index::Column;
use crate::dataset::{Dataset, Shard};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::columns::kinds;
use crate::golden::tiny::tiny;
use crate::sample::Sample;

/// Columns whose values a reader can take from the record, too.
const IN_RECORD: [&str; 3] = ["image_offset", "image_length", "key"];

/// What damage of one column changes.
fn lost(name: &str, column: &str, mut expected: Expected) -> Expected {
    let damage = damage(name);
    let records = expected.read[0]["records"].as_u64().expect("the split's line");
    for record in 0..records {
        if column == "record_offset" {
            expected = expected.loses("train", record, damage);
        } else if IN_RECORD.contains(&column) {
            expected = expected.may_lose("train", record, &[damage]);
        }
    }
    if column == "key" {
        expected = expected.without_lookups();
    }
    if column.starts_with("feature:") || column.starts_with("values:") {
        expected = expected.loses_column("train", 0, column, damage);
    }
    expected.finds(damage, INDEX, None, None)
}

/// A case with the bytes of an index changed after it was written. `change` gets the index and the position of the
/// column's entry.
fn damaged(name: &str, column: &str, change: impl FnOnce(&mut Vec<u8>, usize)) -> Case {
    let mut dataset = if tiny().shard().columns.iter().any(|c| c.name == column.as_bytes()) { tiny() } else { kinds() };
    let shard = dataset.shard();
    let at = entry(shard.position(column));
    change(&mut shard.index, at);
    case(name, &dataset, |e| lost(name, column, e))
}

/// Returns a field of an entry as a position in the file.
fn place(index: &[u8], field: usize) -> usize {
    u64::from_le_bytes(index[field..field + 8].try_into().expect("eight bytes")) as usize
}

/// Flips a bit of a part: of its byte `byte`.
fn flipped(name: &str, column: &str, part: usize, byte: usize) -> Case {
    damaged(name, column, |index, entry| {
        let at = place(index, entry + part) + byte;
        index[at] ^= 0x10;
    })
}

/// Sets the byte behind a part.
fn padded(name: &str, column: &str, part: usize) -> Case {
    damaged(name, column, |index, entry| {
        let at = place(index, entry + part) + place(index, entry + part + 8);
        assert_ne!(at % 64, 0, "the part is followed by padding");
        index[at] = 1;
    })
}

/// A case with a column changed before the index is written.
fn written(name: &str, column: &str, change: impl FnOnce(&mut Column)) -> Case {
    let mut dataset = kinds();
    change(dataset.shard().column(column));
    dataset.shard().reindex();
    case(name, &dataset, |e| lost(name, column, e))
}

fn set_offset(column: &mut Column, row: usize, value: i64) {
    column.offsets.as_mut().expect("offsets")[8 * row..][..8].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn all() -> Vec<Case> {
    let (note, number, score) = ("feature:note", "feature:number", "feature:score");
    let mut cases = vec![
        flipped("ColumnCrc-fixed", "record_offset", VALUES, 0),
        flipped("ColumnCrc-image-offset", "image_offset", VALUES, 7),
        flipped("ColumnCrc-image-length", "image_length", VALUES, 0),
        flipped("ColumnCrc-offsets", "key", OFFSETS, 8),
        flipped("ColumnCrc-bytes", "key", VALUES, 0),
        flipped("ColumnCrc-feature", "feature:image/height", VALUES, 0),
        flipped("ColumnCrc-last-byte", "feature:image/width", VALUES, 15),
        flipped("ColumnCrc-feature-validity", number, VALIDITY, 1),
        flipped("ColumnCrc-feature-bytes", note, VALUES, 3),
        flipped("ColumnCrc-feature-offsets", note, OFFSETS, 80),
        flipped("ColumnCrc-values", "values:clip", VALUES, 11),
        flipped("ColumnCrc-jpeg-entries", "jpeg_entries", OFFSETS, 9),
        flipped("ColumnCrc-unknown", "x-unknown", VALUES, 39),
        padded("IndexPadding-fixed", "record_offset", VALUES),
        padded("IndexPadding-offsets", "key", OFFSETS),
        padded("IndexPadding-bytes", "key", VALUES),
        padded("IndexPadding-validity", number, VALIDITY),
        padded("IndexPadding-feature-offsets", note, OFFSETS),
        padded("IndexPadding-unknown", "x-unknown", VALUES),
        damaged("IndexPadding-last-byte", "feature:image/width", |index, _| *index.last_mut().expect("an index") = 1),
        written("ColumnValue-first-offset", "key", |c| set_offset(c, 0, 1)),
        written("ColumnValue-offsets-fall", "key", |c| set_offset(c, 4, 3)),
        written("ColumnValue-last-offset-short", "key", |c| c.values.push(b'x')),
        written("ColumnValue-last-offset-long", "key", |c| c.values.truncate(49)),
        written("ColumnValue-offset-negative", "key", |c| set_offset(c, 1, -1)),
        written("ColumnValue-offset-largest", "key", |c| set_offset(c, 9, i64::MAX)),
        written("ColumnValue-all-offsets-0", "key", |c| (0..11).for_each(|row| set_offset(c, row, 0))),
        written("ColumnValue-feature-offsets", note, |c| set_offset(c, 1, 5)),
        written("ColumnValue-unused-bits", number, |c| c.validity.as_mut().expect("validity")[1] |= 0x80),
        written("ColumnValue-first-unused-bit", note, |c| c.validity.as_mut().expect("validity")[1] |= 0x04),
        written("ColumnValue-no-null", "feature:image/height", |c| c.validity = Some(vec![0xff, 0x03])),
        written("ColumnValue-number-under-null", number, |c| c.values[8] = 1),
        written("ColumnValue-last-byte-under-null", number, |c| c.values[71] = 0x80),
        written("ColumnValue-minus-zero-under-null", score, |c| c.values[7] = 0x80),
        written("ColumnValue-bytes-under-null", note, |c| c.validity.as_mut().expect("validity")[0] &= !1),
        written("ColumnValue-unknown", "x-unknown", |c| c.validity = Some(vec![0xff, 0x03])),
        written("ColumnValue-ranges-not-whole", "values:clip", |c| {
            c.values.push(0);
            let length = c.values.len() as i64;
            set_offset(c, 9, length);
            set_offset(c, 10, length);
        }),
        written("ColumnValue-ranges-of-eleven-bytes", "values:clip", |c| {
            // The same bytes, one fewer in a row and one more in the next.
            let end = i64::from_le_bytes(c.offsets.as_ref().expect("offsets")[16..24].try_into().expect("eight bytes"));
            set_offset(c, 2, end - 1);
        }),
    ];
    cases.push(empty_crc());
    cases.push(in_second_shard());
    cases.push(past_the_64th());
    cases.push(offsets_and_last_frame());
    cases.extend(order_of_checks());
    cases
}

/// The CRC of a part without bytes is not 0.
fn empty_crc() -> Case {
    let mut dataset = kinds();
    let shard = dataset.shard();
    let at = entry(shard.position("jpeg_entries"));
    shard.index = crate::bytes::index::forge(shard.index.clone(), |index| index[at + 64] = 1);
    case("ColumnCrc-no-bytes", &dataset, |e| e.finds("ColumnCrc", INDEX, None, None))
}

/// Two shards; a column of the second one is damaged.
fn in_second_shard() -> Case {
    let sample = |i: i64| Sample::new([("n", ints([i]))]);
    let shards = (0..2).map(|n| Shard::new("train", n, vec![sample(2 * n as i64), sample(2 * n as i64 + 1)]));
    let mut dataset = Dataset::new(vec![("train", shards.collect())]);
    (dataset.image, dataset.label) = (None, None);
    let shard = &mut dataset.splits[0].1[1];
    let at = place(&shard.index, entry(shard.position("feature:n")) + VALUES);
    shard.index[at] ^= 1;
    case("ColumnCrc-second-shard", &dataset, |e| {
        let e = e.loses_column("train", 1, "feature:n", "ColumnCrc");
        e.finds("ColumnCrc", "_index/train-00001.tfrecord.index", None, None)
    })
}

/// The offsets and the last frame are damaged: nothing in the index says that records follow.
fn offsets_and_last_frame() -> Case {
    let mut dataset = tiny();
    let shard = dataset.shard();
    shard.bytes[SECOND as usize] ^= 1;
    shard.reindex();
    let at = place(&shard.index, entry(shard.position("record_offset")) + VALUES);
    shard.index[at] ^= 1;
    case("ColumnCrc-and-last-length", &dataset, |e| {
        lost("ColumnCrc", "record_offset", e).finds("LengthCrc", SHARD, Some(1), Some(SECOND))
    })
}

/// The 67th column is damaged.
fn past_the_64th() -> Case {
    let features = (0..63).map(|i| (format!("n{i:02}"), ints([i])));
    let shard = Shard::new("train", 0, vec![Sample::new(features.collect::<Vec<(String, List)>>())]);
    let mut dataset = Dataset { image: None, label: None, ..Dataset::new(vec![("train", vec![shard])]) };
    let shard = dataset.shard();
    let at = place(&shard.index, entry(66) + VALUES);
    shard.index[at] ^= 1;
    case("ColumnCrc-67th-column", &dataset, |e| lost("ColumnCrc-67th-column", "feature:n62", e))
}

/// A part with several damages: the first check that fails decides. These are one finding each.
fn order_of_checks() -> Vec<Case> {
    // The offsets fall, and the CRC does not say so.
    let fall = damaged("ColumnCrc-offsets-that-fall", "key", |index, entry| {
        let at = place(index, entry + OFFSETS);
        index[at + 8..at + 16].copy_from_slice(&[0xff; 8]);
    });
    // Offsets and validity of one column.
    let both = written("ColumnValue-offsets-and-validity", "feature:note", |c| {
        set_offset(c, 0, 1);
        c.validity.as_mut().expect("validity")[1] |= 0x80;
    });
    vec![fall, both]
}
