//! Changed datasets: damage of bitmaps and companions.

use super::{SHARD, case, damage};
use crate::bytes::example::{delimited, ints};
use crate::bytes::index::{self, Column, I64};
use crate::dataset::{Dataset, Files};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::versions::{FIRST, SECOND, deleted_rows, versions};
use crate::version::Companion;
use serde_json::{Value, json};

const BITMAP_FILE: &str = "_columns/00000000000000d1.deleted";
const FIRST_FILE: &str = "_columns/0123456789abcdef.columns";
const SECOND_FILE: &str = "_columns/fedcba9876543210.columns";
/// Companions of the shards of `versions`, by number.
const N: usize = 2;
const ENCODED_N: usize = 1;

fn changed(change: impl FnOnce(&mut Dataset)) -> Dataset {
    let mut dataset = versions();
    change(&mut dataset);
    dataset
}

/// `versions` with its files changed after they were written.
fn files(name: &str, change: impl FnOnce(&mut Files), expect: impl FnOnce(Expected) -> Expected) -> Case {
    let mut files = versions().files();
    change(&mut files);
    (name.to_owned(), files, expect(versions().expected()))
}

/// The bitmap of the first shard is not used: its records and keys are lost. Its index may be read all the same.
fn bitmap_lost(name: &str, mut e: Expected) -> Expected {
    let damage = damage(name);
    let keys = ["61", "63"]; // `a` and `c`
    e.read.retain(|line| !keys.iter().any(|key| line["lookup"] == *key));
    for line in e.read.iter_mut().filter(|line| line["column"].is_string() && line["shard"] == 0) {
        *line = json!({"any": [line, null]});
    }
    let e = (0..2).fold(e, |e, record| e.loses("train", record, damage));
    e.finds(damage, BITMAP_FILE, None, None).with_good(&[2])
}

/// A companion of the first or second shard is not used: no record of the shard is delivered.
fn column_lost(name: &str, shard: usize, e: Expected) -> Expected {
    let (damage, file) = (damage(name), [FIRST_FILE, SECOND_FILE][shard]);
    let records = [0..2, 2..4][shard].clone();
    let e = records.fold(e, |e, record| e.loses("train", record, damage));
    e.finds(damage, file, None, None).with_good(&[2])
}

/// `versions` with the bytes of the bitmap changed; the manifest has their CRC.
fn bitmap(name: &str, change: impl FnOnce(&mut Dataset)) -> Case {
    case(name, &changed(change), |e| bitmap_lost(name, e))
}

/// `versions` with the bytes of the companion `feature:n` of the first shard changed; the manifest has their CRC.
fn written(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let dataset = changed(|dataset| change(&mut dataset.shard().companions[N].part.bytes));
    case(name, &dataset, |e| column_lost(name, 0, e))
}

/// `versions` with the companion `feature:n` of the first shard replaced by one of these columns.
fn columns(name: &str, columns: &[Column]) -> Case {
    let dataset = changed(|dataset| {
        let shard = dataset.shard();
        let offset = shard.companions[N].part.offset;
        let part = Companion::of_columns(shard, FIRST, offset, columns).part;
        shard.companions[N].part = part;
        move_apart(&mut shard.companions);
    });
    case(name, &dataset, |e| column_lost(name, 0, e))
}

/// Moves companions so that none overlaps the one before.
fn move_apart(companions: &mut [Companion]) {
    let mut end = 0;
    for companion in companions {
        companion.part.offset = companion.part.offset.max(end);
        end = (companion.part.offset + companion.part.bytes.len()).next_multiple_of(64);
    }
}

fn numbers(name: &str) -> Column {
    Column::fixed(name, I64, [1i64, 2, 3].into_iter().flat_map(i64::to_le_bytes).collect())
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = bitmaps();
    cases.extend(missing());
    cases.extend(companions());
    cases.extend(rows());
    cases.extend(super::version_members::all());
    cases
}

fn bitmaps() -> Vec<Case> {
    let set = |dataset: &mut Dataset, byte: u8, rows: u64| {
        let deleted = dataset.shard().deleted.as_mut().expect("deleted rows");
        (deleted.part.bytes[0], deleted.rows) = (byte, rows);
    };
    vec![
        bitmap("BitmapValue-unused-bit", |d| set(d, 0b1010, 1)),
        bitmap("BitmapValue-fewer-rows", |d| set(d, 0, 1)),
        bitmap("BitmapValue-more-rows", |d| set(d, 0b110, 1)),
        bitmap("BitmapValue-last-bit", |d| set(d, 0x82, 1)),
        // An unused bit does not make up for a row.
        bitmap("BitmapValue-unused-bit-counts", |d| set(d, 0b1000, 1)),
        // The CRC is compared first.
        files(
            "CompanionCrc-bitmap",
            |f| f.get_mut(BITMAP_FILE).expect("the bitmap")[0] = 0b1000,
            |e| bitmap_lost("CompanionCrc-bitmap", e),
        ),
        files(
            "CompanionCrc-bitmap-other-row",
            |f| f.get_mut(BITMAP_FILE).expect("the bitmap")[0] = 1,
            |e| bitmap_lost("CompanionCrc-bitmap-other-row", e),
        ),
        second_byte(),
    ]
}

/// The bitmap of twelve rows has an unused bit in its second byte, and that of another shard in the same file is good.
fn second_byte() -> Case {
    let mut dataset = deleted_rows();
    let deleted = dataset.splits[1].1[0].deleted.as_mut().expect("deleted rows");
    deleted.part.bytes[1] |= 0x10;
    case("BitmapValue-second-byte", &dataset, |mut e| {
        let keep = |line: &Value| line["split"] != "train" || line["lookup"].is_null();
        // `gone` and `last` are in the third shard.
        e.read.retain(|line| keep(line) || line["lookup"] == "676f6e65" || line["lookup"] == "6c617374");
        for line in e.read.iter_mut().filter(|line| line["column"].is_string() && line["shard"] == 0) {
            if line["split"] == "train" {
                *line = json!({"any": [line, null]});
            }
        }
        let e = (0..7).fold(e, |e, record| e.loses("train", record, "BitmapValue"));
        e.finds("BitmapValue", BITMAP_FILE, None, None).with_good(&[3])
    })
}

fn missing() -> Vec<Case> {
    let all_of_first = |e: Expected, name: &str| {
        // One finding for each companion in the file.
        let e = column_lost(name, 0, e);
        (0..3).fold(e, |e, _| e.finds(damage(name), FIRST_FILE, None, None))
    };
    vec![
        files(
            "MissingCompanion-bitmap",
            |f| drop(f.remove(BITMAP_FILE)),
            |e| bitmap_lost("MissingCompanion-bitmap", e),
        ),
        files(
            "MissingCompanion-columns",
            |f| drop(f.remove(FIRST_FILE)),
            |e| all_of_first(e, "MissingCompanion-columns"),
        ),
        files(
            "MissingCompanion-bitmap-empty",
            |f| f.get_mut(BITMAP_FILE).expect("the bitmap").clear(),
            |e| bitmap_lost("MissingCompanion-bitmap-empty", e),
        ),
        // Of three companions the last one is not whole.
        files(
            "MissingCompanion-last-byte",
            |f| assert!(f.get_mut(SECOND_FILE).expect("companions").pop().is_some()),
            |e| column_lost("MissingCompanion-last-byte", 1, e),
        ),
        // Another file has the bytes.
        files(
            "MissingCompanion-other-name",
            |f| {
                let bytes = f.remove(FIRST_FILE).expect("companions");
                f.insert("_columns/0123456789abcde0.columns".to_owned(), bytes);
            },
            |e| all_of_first(e, "MissingCompanion-other-name"),
        ),
    ]
}

/// Companions that are not what an index, or a companion of this shard, must be.
fn companions() -> Vec<Case> {
    let other_shard = |name: &str, at: usize| written(name, |b| *b = index::forge(b.clone(), |b| b[at] ^= 1));
    let other_bytes = |name: &str, f: &dyn Fn(&mut Vec<u8>)| {
        let mut dataset = versions();
        let part = &mut dataset.shard().companions[N].part;
        let before = part.bytes.clone();
        f(&mut part.bytes);
        let after = dataset.shard().companions[N].part.bytes.clone();
        // The manifest has the CRC of the bytes before.
        dataset.shard().companions[N].part.bytes = before;
        let (mut files, part) = (dataset.files(), dataset.shard().companions[N].part.clone());
        files.get_mut(FIRST_FILE).expect("companions")[part.offset..][..after.len()].copy_from_slice(&after);
        (name.to_owned(), files, versions().expected())
    };
    let in_column = |name: &str, f: &dyn Fn(&mut Vec<u8>)| {
        let (name, files, e) = other_bytes(name, f);
        let e = column_lost(&name, 0, e);
        (name, files, e)
    };
    vec![
        other_values(),
        in_column("ColumnCrc-companion", &|b| b[256] ^= 1),
        in_column("IndexPadding-companion", &|b| *b.last_mut().expect("padding") = 1),
        in_column("IndexHeaderCrc-companion", &|b| b[24] ^= 1),
        in_column("IndexMagic-companion", &|b| b[0] = 0),
        in_column("IndexDirectoryCrc-companion", &|b| b[64 + 72] ^= 1),
        // The files of `_columns` are no indexes of shards, and the other way round.
        written("IndexLayout-companion-without-flag", |b| *b = index::forge(b.clone(), |b| b[12] = 0)),
        written("IndexFlags-companion-second", |b| *b = index::forge(b.clone(), |b| b[12] = 3)),
        written("IndexFlags-companion-second-only", |b| *b = index::forge(b.clone(), |b| b[12] = 2)),
        written("IndexVersion-companion", |b| *b = index::forge(b.clone(), |b| b[8] = 2)),
        shard_index_with_flag(),
        other_shard("IndexMismatch-companion-length", 32),
        other_shard("IndexMismatch-companion-crc", 40),
        columns("IndexColumn-companion-of-two", &[numbers("feature:n"), numbers("feature:o")]),
        columns("IndexColumn-companion-other-name", &[numbers("feature:o")]),
        columns(
            "IndexColumn-companion-other-form",
            &[Column::variable("encoded:n", &[Some(ints([1]).feature()), None, None])],
        ),
        columns("IndexColumn-companion-other-element", &[Column::fixed("feature:n", index::F32, vec![0; 12])]),
        columns(
            "IndexColumn-companion-other-kind",
            &[Column::variable("feature:n", &[Some("1"), Some("2"), Some("3")])],
        ),
        columns("IndexColumn-companion-required", &[numbers("record_offset")]),
        columns(
            "ColumnValue-companion-under-null",
            &[{
                let mut column = Column::nullable("feature:n", I64, &[Some([1; 8]), None, None]);
                column.values[8] = 1;
                column
            }],
        ),
        records(),
    ]
}

/// A companion whose parts are good, but not the one that the manifest names: its values are delivered.
fn other_values() -> Case {
    let dataset = changed(|dataset| {
        let shard = dataset.shard();
        let rows = [Some((-10i64).to_le_bytes()), Some(99i64.to_le_bytes()), None];
        let offset = shard.companions[N].part.offset;
        shard.companions[N] = Companion::new(shard, FIRST, offset, Column::nullable("feature:n", I64, &rows));
    });
    // Only the value of the deleted row differs.
    let mut files = dataset.files();
    files.insert("dataset.json".to_owned(), versions().files()["dataset.json"].clone());
    let expected = versions().expected().finds("CompanionCrc", FIRST_FILE, None, None);
    ("CompanionCrc-column".to_owned(), files, expected)
}

/// The companion has another number of rows; its header says so.
fn records() -> Case {
    let name = "RecordCount-companion";
    let dataset = changed(|dataset| {
        let shard = dataset.shard();
        let mut other = shard.clone();
        other.samples.pop();
        let column = Column::fixed("feature:n", I64, vec![1; 16]);
        let offset = shard.companions[N].part.offset;
        shard.companions[N].part = Companion::new(&other, FIRST, offset, column).part;
    });
    case(name, &dataset, |e| column_lost(name, 0, e))
}

/// The index of a shard has the flag of a companion.
fn shard_index_with_flag() -> Case {
    let dataset = changed(|dataset| {
        let shard = dataset.shard();
        shard.index = index::forge(shard.index.clone(), |b| b[12] = 1);
    });
    case("IndexFlags-index-of-a-changed-dataset", &dataset, |mut e| {
        let of_shard = |line: &Value| line["column"].is_string() && line["shard"] == 0;
        e.read.retain(|line| !of_shard(line) && line["lookup"] != "61" && line["lookup"] != "63");
        let e = (0..2).fold(e, |e, record| e.loses("train", record, "IndexFlags"));
        e.finds("IndexFlags", super::INDEX, None, None).with_good(&[2])
    })
}

/// Rows that are not messages, and damage of a deleted record.
fn rows() -> Vec<Case> {
    // The second row of `encoded:n`, of record `e`; a reader may refuse the whole column.
    let message = |name: &str, message: &[u8]| {
        let dataset = changed(|dataset| {
            let shard = &mut dataset.splits[0].1[1];
            let rows = [Some(ints([7, 8]).feature()), Some(message.to_vec())];
            let offset = shard.companions[ENCODED_N].part.offset;
            let column = Column::variable("encoded:n", &rows);
            shard.companions[ENCODED_N].part = Companion::new(shard, SECOND, offset, column).part;
            move_apart(&mut shard.companions);
        });
        case(name, &dataset, |e| {
            let e = e.loses("train", 3, "ColumnValue").may_lose("train", 2, &["ColumnValue"]);
            e.finds("ColumnValue", SECOND_FILE, None, None).with_good(&[2, 3])
        })
    };
    let mut damaged = versions();
    let shard = damaged.shard();
    let offset = shard.samples[0].data.len() + 16;
    shard.bytes[offset + 40] ^= 1;
    let files = {
        let mut files = versions().files();
        files.insert(SHARD.to_owned(), damaged.shard().bytes.clone());
        files
    };
    let deleted = versions().expected().finds("DataCrc", SHARD, Some(1), Some(offset as u64)).with_good(&[4]);
    vec![
        message("ColumnValue-encoded-unfinished", &[0x1a, 5, 1]),
        message("ColumnValue-encoded-wire-type", &[0x1b]),
        message("ColumnValue-encoded-not-a-list", &delimited(4, &[])),
        message("ColumnValue-encoded-value", &delimited(3, &delimited(1, &[0x80]))),
        // A deleted record is no record of the version, but its bytes are part of the shard.
        ("DataCrc-deleted-row".to_owned(), files, deleted),
    ]
}
