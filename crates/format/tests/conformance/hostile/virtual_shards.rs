//! Virtual shards: columns of the index that are damaged, or say what cannot be.

use super::{INDEX, SECOND, SHARD, case, damage, no_records};
use crate::bytes::frame;
use crate::bytes::index::{Column, U32};
use crate::bytes::manifest;
use crate::dataset::{Dataset, Shard};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::tiny::{cat, dog};
use crate::golden::virtual_shards::{CAT_FILE, DOG_FILE, virtual_files, virtual_tar};
use crate::virtual_shard::{entry, range};

const FILES: &str = "virtual_files";
const RANGES: &str = "virtual_ranges";
const BYTES: &str = "virtual_bytes";

/// `virtual-files` with the index of its shard changed.
pub(super) fn changed(change: impl FnOnce(&mut Shard)) -> Dataset {
    let mut dataset = virtual_files();
    change(dataset.shard());
    dataset.shard().reindex();
    dataset
}

/// Rows whose frames cannot be made.
fn mismatch(name: &str, rows: &[u64], change: impl FnOnce(&mut Shard)) -> Case {
    case(name, &changed(change), |e| {
        rows.iter()
            .fold(e, |e, row| e.loses("train", *row, "IndexMismatch").finds("IndexMismatch", INDEX, Some(*row), None))
    })
}

/// A column that is not used: no record of the shard is delivered.
fn column_lost(name: &str, e: Expected) -> Expected {
    let damage = damage(name);
    e.loses("train", 0, damage).loses("train", 1, damage).finds(damage, INDEX, None, None)
}

fn set_offset(column: &mut Column, row: usize, value: i64) {
    column.offsets.as_mut().expect("offsets")[8 * row..][..8].copy_from_slice(&value.to_le_bytes());
}

/// Replaces the rows of a column.
fn set_rows(shard: &mut Shard, name: &str, rows: &[Vec<u8>]) {
    *shard.column(name) = Column::variable(name, &rows.iter().map(Some).collect::<Vec<_>>());
}

/// Returns a row of a column.
fn row(shard: &mut Shard, name: &str, row: usize) -> Vec<u8> {
    let column = shard.column(name);
    let offset = |row: usize| {
        let bytes = &column.offsets.as_ref().expect("offsets")[8 * row..][..8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as usize
    };
    column.values[offset(row)..offset(row + 1)].to_vec()
}

/// Gives the file of the first row another name.
pub(super) fn rename(shard: &mut Shard, name: &[u8]) {
    let first = entry(12, name);
    let second = first.len() as u64;
    set_rows(shard, FILES, &[first, entry(6, DOG_FILE.as_bytes())]);
    shard.column(RANGES).values[32..40].copy_from_slice(&second.to_le_bytes());
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = ranges();
    cases.extend(entries());
    cases.extend(lengths());
    cases.extend(columns());
    cases.extend(shards());
    cases
}

/// Ranges that cannot be.
fn ranges() -> Vec<Case> {
    let set = |at: usize, bytes: &'static [u8]| {
        move |shard: &mut Shard| shard.column(RANGES).values[at..at + bytes.len()].copy_from_slice(bytes)
    };
    vec![
        mismatch("IndexMismatch-source-reserved", &[0], set(28, &[1])),
        mismatch("IndexMismatch-source-reserved-high-bit", &[1], set(63, &[0x80])),
        mismatch("IndexMismatch-source-empty-range", &[0], |shard| {
            let (first, second) = (row(shard, RANGES, 0), row(shard, RANGES, 1));
            set_rows(shard, RANGES, &[[first, range(0, 0, 0, 0, 0)].concat(), second]);
        }),
        // One byte more than the row has, although the lengths add up.
        mismatch("IndexMismatch-source-before", &[0], |shard| {
            let bytes = row(shard, BYTES, 0).len() as u32 + 1;
            shard.column(RANGES).values[24..28].copy_from_slice(&bytes.to_le_bytes());
        }),
        mismatch("IndexMismatch-source-before-all", &[1], set(32 + 24, &[0xff; 4])),
        before_second_range(),
        mismatch("IndexMismatch-source-range-past-file", &[0], set(8, &[1])),
        mismatch("IndexMismatch-source-offset-all", &[1], set(32 + 8, &[0xff; 8])),
    ]
}

/// Two ranges, each after fewer bytes than the row has, but together after more.
fn before_second_range() -> Case {
    let mut dataset = virtual_tar();
    let shard = &mut dataset.splits[1].1[0];
    let bytes = row(shard, BYTES, 1).len() as u32;
    let ranges = shard.column(RANGES);
    let first = u32::from_le_bytes(ranges.values[32 + 24..32 + 28].try_into().expect("four bytes"));
    ranges.values[64 + 24..64 + 28].copy_from_slice(&(bytes - first + 1).to_le_bytes());
    shard.reindex();
    case("IndexMismatch-source-before-second", &dataset, |e| {
        let e = e.loses("train", 1, "IndexMismatch").finds("IndexMismatch", INDEX, Some(1), None);
        e.with_good(&[6])
    })
}

/// Entries of files that leave the column, or have no name.
fn entries() -> Vec<Case> {
    let bytes = (entry(12, CAT_FILE.as_bytes()).len() + entry(6, DOG_FILE.as_bytes()).len()) as u64;
    let file =
        |at: u64| move |shard: &mut Shard| shard.column(RANGES).values[32..40].copy_from_slice(&at.to_le_bytes());
    let name_length = |n: u32| {
        move |shard: &mut Shard| {
            let at = 12 + CAT_FILE.len() + 8;
            shard.column(FILES).values[at..at + 4].copy_from_slice(&n.to_le_bytes());
        }
    };
    vec![
        mismatch("IndexMismatch-source-file-at-end", &[1], file(bytes)),
        mismatch("IndexMismatch-source-file-cut", &[1], file(bytes - 11)),
        mismatch("IndexMismatch-source-file-past-end", &[1], file(bytes + 1)),
        mismatch("IndexMismatch-source-file-all", &[1], file(u64::MAX)),
        mismatch("IndexMismatch-source-name-past-end", &[1], name_length(DOG_FILE.len() as u32 + 1)),
        mismatch("IndexMismatch-source-name-all", &[1], name_length(u32::MAX)),
        mismatch("IndexMismatch-source-name-not-utf8", &[0], |shard| shard.column(FILES).values[12] = 0xff),
    ]
}

/// Parts that do not add up to the length of the frame.
fn lengths() -> Vec<Case> {
    let offsets = |offsets: [u64; 2]| {
        move |shard: &mut Shard| {
            shard.column("record_offset").values = offsets.into_iter().flat_map(u64::to_le_bytes).collect();
        }
    };
    let boundary = |shard: &mut Shard| {
        let first = row(shard, BYTES, 0).len() as i64;
        set_offset(shard.column(BYTES), 1, first + 1);
    };
    vec![
        mismatch("IndexMismatch-source-range-shorter", &[0], |shard| shard.column(RANGES).values[16] = 11),
        longer_range(),
        mismatch("IndexMismatch-source-bytes-longer", &[1], |shard| {
            let rows = [row(shard, BYTES, 0), [row(shard, BYTES, 1), vec![0]].concat()];
            set_rows(shard, BYTES, &rows);
        }),
        shorter_frame(),
        mismatch("IndexMismatch-source-bytes-shorter", &[0], |shard| {
            let rows = [row(shard, BYTES, 0)[1..].to_vec(), row(shard, BYTES, 1)];
            set_rows(shard, BYTES, &rows);
        }),
        mismatch("IndexMismatch-source-bytes-boundary", &[0, 1], boundary),
        mismatch("IndexMismatch-source-record-offset", &[0, 1], offsets([0, SECOND + 1])),
        mismatch("IndexMismatch-source-record-offset-twice", &[0, 1], offsets([0, 0])),
    ]
}

/// The parts add up, but the frame that they begin with is shorter. Its own length and CRCs are good.
fn shorter_frame() -> Case {
    let dataset = changed(|shard| {
        let rows = [row(shard, BYTES, 0), [row(shard, BYTES, 1), vec![0]].concat()];
        set_rows(shard, BYTES, &rows);
        shard.bytes.push(0);
    });
    case("IndexMismatch-source-frame-shorter", &dataset, |e| {
        e.may_lose("train", 1, &["IndexMismatch"]).finds("IndexMismatch", INDEX, Some(1), None)
    })
}

/// A range of one byte more, which the file has.
fn longer_range() -> Case {
    let mut dataset = virtual_tar();
    let shard = &mut dataset.splits[1].1[1];
    shard.column(RANGES).values[16] += 1;
    shard.reindex();
    case("IndexMismatch-source-range-longer", &dataset, |e| {
        let file = "_index/train-00001.tfrecord.index";
        e.loses("train", 3, "IndexMismatch").finds("IndexMismatch", file, Some(0), None).with_good(&[6])
    })
}

/// Columns that are absent, of another kind, or damaged.
fn columns() -> Vec<Case> {
    let refused = |name: &str, change: &dyn Fn(&mut Shard)| {
        case(name, &changed(change), |e| no_records(e, "IndexColumn").finds("IndexColumn", INDEX, None, None))
    };
    let written = |name: &str, change: &dyn Fn(&mut Shard)| case(name, &changed(change), |e| column_lost(name, e));
    let mut cases = vec![];
    for name in [FILES, RANGES, BYTES] {
        let case = |detail: &str| format!("IndexColumn-{}-{detail}", name.replace('_', "-"));
        cases.push(refused(&case("absent"), &|shard| shard.columns.retain(|c| c.name != name.as_bytes())));
        cases.push(refused(&case("element"), &|shard| *shard.column(name) = Column::fixed(name, U32, vec![0; 8])));
        cases.push(refused(&case("validity"), &|shard| shard.column(name).validity = Some(vec![0b11])));
        // A bit of the values, after the index was written.
        let mut dataset = virtual_files();
        let shard = dataset.shard();
        let values = shard.column(name).values.clone();
        let at = shard.index.windows(values.len()).position(|part| part == values).expect("the column");
        shard.index[at + 3] ^= 0x10;
        let damaged = format!("ColumnCrc-{}", name.replace('_', "-"));
        cases.push(super::case(&damaged, &dataset, |e| column_lost(&damaged, e)));
    }
    cases.extend([
        refused("IndexColumn-virtual-none", &|shard| {
            shard.columns.retain(|column| !column.name.starts_with(b"virtual_"));
        }),
        written("ColumnValue-source-ranges-not-whole", &|shard| {
            let ranges = shard.column(RANGES);
            ranges.values.truncate(63);
            set_offset(ranges, 2, 63);
        }),
        written("ColumnValue-source-ranges-boundary", &|shard| set_offset(shard.column(RANGES), 1, 33)),
        written("ColumnValue-virtual-files-offset", &|shard| set_offset(shard.column(FILES), 1, -1)),
        written("ColumnValue-virtual-bytes-last-offset", &|shard| {
            let bytes = shard.column(BYTES);
            bytes.values.truncate(bytes.values.len() - 1);
        }),
    ]);
    let mut dataset = virtual_files();
    *dataset.shard().index.last_mut().expect("padding") = 1;
    cases.push(case("IndexPadding-virtual-bytes", &dataset, |e| column_lost("IndexPadding", e)));
    cases
}

/// Shards as wholes.
fn shards() -> Vec<Case> {
    let mut without_index = virtual_files().files();
    without_index.remove(INDEX);
    let expected = no_records(virtual_files().expected(), "MissingIndex").finds("MissingIndex", INDEX, None, None);
    let other_crc = changed(|shard| (shard.bytes[0], shard.sha256) = (0, false));
    let mut other_sum = virtual_files().files();
    let text = &other_sum["dataset.json"];
    let digits = b"\"sha256\": \"";
    let at = text.windows(digits.len()).position(|part| part == digits).expect("a sum") + digits.len();
    let digit = if text[at] == b'0' { b'1' } else { b'0' };
    let text = manifest::forge(text, |body| body[at] = digit);
    other_sum.insert("dataset.json".to_owned(), text);
    let expected_sum = virtual_files().expected().finds("ShardSha256", SHARD, None, None);
    assert_eq!(virtual_files().shard().bytes, [frame(&cat().data), frame(&dog().data)].concat());
    vec![
        ("MissingIndex-virtual".to_owned(), without_index, expected),
        case("ShardCrc-virtual", &other_crc, |e| e.finds("ShardCrc", SHARD, None, None)),
        ("ShardSha256-virtual".to_owned(), other_sum, expected_sum),
    ]
}
