//! Directories that describe something that cannot be, with right CRCs.

use super::headers::forged;
use super::{INDEX, case, damage, index_refused};
use crate::bytes::index::{self, BYTES, Column, ENTRY, F32, HEADER, I64, U32, U64};
use crate::dataset::{Dataset, Shard};
use crate::golden::Case;
use crate::golden::tiny::tiny;
use crate::sample::Sample;

/// Offsets in an entry.
const KIND: usize = 0;
const ELEMENT: usize = 1;
const NAME: usize = 2;
const RESERVED: usize = 4;
pub(super) const VALIDITY: usize = 8;
pub(super) const OFFSETS: usize = 24;
pub(super) const VALUES: usize = 40;
const CRCS: usize = 56;
const RESERVED_LAST: usize = 68;

/// Returns the offset of an entry of `tiny`: columns are record_offset, image_offset, image_length, key, and three
/// features.
pub(super) fn entry(column: usize) -> usize {
    HEADER + column * ENTRY
}

const KEY: usize = 3;
const NAMES: usize = HEADER + 7 * ENTRY;

/// `tiny` with its columns changed, and its index written with them.
fn columns(name: &str, change: impl FnOnce(&mut Vec<Column>)) -> Case {
    let mut dataset = tiny();
    change(&mut dataset.shard().columns);
    dataset.shard().reindex();
    index_refused(name, dataset.shard().index.clone())
}

fn add(bytes: &mut [u8], at: usize, n: u64) {
    let field: &mut [u8; 8] = (&mut bytes[at..at + 8]).try_into().expect("eight bytes");
    *field = u64::from_le_bytes(*field).wrapping_add(n).to_le_bytes();
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = entries();
    cases.extend(parts());
    cases.extend(required());
    cases.extend(empty_parts());
    cases
}

fn entries() -> Vec<Case> {
    vec![
        forged("IndexLayout-kind", |i| i[entry(0) + KIND] = 2),
        forged("IndexLayout-element", |i| i[entry(0) + ELEMENT] = 9),
        forged("IndexLayout-element-of-variable", |i| i[entry(KEY) + ELEMENT] = U64),
        forged("IndexLayout-element-of-fixed", |i| i[entry(1) + ELEMENT] = BYTES),
        forged("IndexLayout-kind-of-variable", |i| i[entry(KEY) + KIND] = 0),
        forged("IndexLayout-reserved", |i| i[entry(0) + RESERVED] = 1),
        forged("IndexLayout-reserved-last-byte", |i| i[entry(6) + RESERVED + 3] = 1),
        forged("IndexLayout-second-reserved", |i| i[entry(0) + RESERVED_LAST] = 1),
        forged("IndexLayout-second-reserved-last-byte", |i| i[entry(6) + RESERVED_LAST + 3] = 0x80),
        forged("IndexLayout-name-length", |i| i[entry(0) + NAME] = 250),
        forged("IndexLayout-names-left-over", |i| i[entry(6) + NAME] -= 1),
        forged("IndexLayout-name-not-utf8", |i| i[NAMES] = 0xff),
        forged("IndexLayout-column-twice", |i| i.copy_within(NAMES + 13..NAMES + 25, NAMES + 25)),
        columns("IndexLayout-empty-name", |c| c[6].name.clear()),
        // Not UTF-8 only where the names end.
        forged("IndexLayout-character-of-two-names", |i| i[NAMES + 12..NAMES + 14].copy_from_slice("é".as_bytes())),
        forged("IndexLayout-offset", |i| add(i, entry(0) + VALUES, 1)),
        forged("IndexLayout-offset-64", |i| add(i, entry(0) + VALUES, 64)),
        forged("IndexLayout-overlap", |i| i.copy_within(entry(0) + VALUES..entry(0) + VALUES + 8, entry(1) + VALUES)),
        forged("IndexLayout-offset-past-end", |i| i[entry(6) + VALUES + 2] = 1),
        forged("IndexLayout-rows", |i| add(i, entry(0) + VALUES + 8, 8)),
        forged("IndexLayout-fewer-rows", |i| i[entry(6) + VALUES + 8] -= 8),
        forged("IndexLayout-half-a-row", |i| i[entry(6) + VALUES + 8] -= 1),
        forged("IndexLayout-length-overflow", |i| i[entry(KEY) + VALUES + 8..][..8].fill(0xff)),
        // Where the next part would begin, modulo 2⁶⁴.
        forged("IndexLayout-length-wraps", |i| add(i, entry(KEY) + VALUES + 8, 0u64.wrapping_sub(64))),
        forged("IndexLayout-length-past-end", |i| i[entry(KEY) + VALUES + 8 + 3] = 1),
        forged("IndexLayout-length-64-more", |i| add(i, entry(KEY) + VALUES + 8, 64)),
    ]
}

/// Parts that must not be there, or must be.
fn parts() -> Vec<Case> {
    vec![
        columns("IndexLayout-offsets-of-numbers", |c| c[4].offsets = Some(vec![0; 24])),
        columns("IndexLayout-no-offsets", |c| c[KEY].offsets = None),
        columns("IndexLayout-offsets-of-rows", |c| c[KEY].offsets = Some([9u64, 18].map(u64::to_le_bytes).concat())),
        columns("IndexLayout-offsets-too-long", |c| c[KEY].offsets.as_mut().expect("offsets").extend([0; 8])),
        columns("IndexLayout-validity-too-long", |c| c[4].validity = Some(vec![1, 0])),
        columns("IndexLayout-validity-of-a-byte-per-row", |c| c[5].validity = Some(vec![1, 1, 0, 0, 0, 0, 0, 0])),
        columns("IndexLayout-empty-validity", |c| c[4].validity = Some(vec![])),
        // An absent part has no offset, no length and no CRC.
        forged("IndexLayout-offset-of-no-validity", |i| i[entry(4) + VALIDITY] = 64),
        forged("IndexLayout-crc-of-no-validity", |i| i[entry(4) + CRCS] = 1),
        forged("IndexLayout-offset-of-no-offsets", |i| i[entry(4) + OFFSETS + 7] = 1),
        forged("IndexLayout-length-of-no-offsets", |i| i[entry(6) + OFFSETS + 8] = 24),
        forged("IndexLayout-crc-of-no-offsets", |i| i[entry(4) + CRCS + 4] = 1),
        index_refused("IndexLayout-parts-in-other-order", {
            // Values of a feature before its validity.
            let mut dataset = tiny();
            let column = &mut dataset.shard().columns[6];
            column.validity = Some(vec![1]);
            column.values[8..].fill(0);
            dataset.shard().reindex();
            index::forge(dataset.shard().index.clone(), |i| {
                let (a, b) = (entry(6) + VALIDITY, entry(6) + VALUES);
                let at =
                    |i: &[u8], field: usize| u64::from_le_bytes(i[field..field + 8].try_into().expect("eight bytes"));
                let (validity, values) = (at(i, a), at(i, b));
                i[a..a + 8].copy_from_slice(&values.to_le_bytes());
                i[b..b + 8].copy_from_slice(&validity.to_le_bytes());
                let (validity, values) = (validity as usize, values as usize);
                let part = i[values..values + 16].to_vec();
                i[values..values + 16].fill(0);
                i[values] = 1;
                i[validity..validity + 16].copy_from_slice(&part);
            })
        }),
    ]
}

/// Columns that must be there, or be of another kind.
fn required() -> Vec<Case> {
    let ones = |element, width: usize| Column::fixed("x", element, vec![0; 2 * width]);
    let replaced = |name: &str, column: usize, new: Column| {
        columns(name, |c| c[column] = Column { name: c[column].name.clone(), ..new })
    };
    let nullable = |column: Column| Column { validity: Some(vec![1]), ..column };
    let rows = || Column::variable("x", &[Some("a"), None::<&str>]);
    let added = |name: &str, column: Column| columns(name, |c| c.push(column));
    let named = |name: &str, column: Column| Column { name: name.as_bytes().to_vec(), ..column };
    vec![
        columns("IndexColumn-record-offset-absent", |c| drop(c.remove(0))),
        columns("IndexColumn-image-offset-absent", |c| drop(c.remove(1))),
        columns("IndexColumn-image-length-absent", |c| drop(c.remove(2))),
        columns("IndexColumn-key-absent", |c| c[KEY].name = b"Key".to_vec()),
        columns("IndexColumn-none", |c| c.clear()),
        replaced("IndexColumn-record-offset-i64", 0, ones(I64, 8)),
        replaced("IndexColumn-image-offset-u64", 1, ones(U64, 8)),
        replaced("IndexColumn-image-length-f32", 2, ones(F32, 4)),
        replaced("IndexColumn-key-fixed", KEY, ones(U64, 8)),
        replaced("IndexColumn-record-offset-validity", 0, nullable(ones(U64, 8))),
        replaced("IndexColumn-image-length-validity", 2, nullable(ones(U32, 4))),
        replaced("IndexColumn-key-validity", KEY, rows()),
        replaced("IndexColumn-feature-u32", 4, ones(U32, 4)),
        replaced("IndexColumn-feature-u64", 4, ones(U64, 8)),
        added("IndexColumn-values-fixed", named("values:image/encoded", ones(U64, 8))),
        added("IndexColumn-values-validity", named("values:image/encoded", rows())),
        added("IndexColumn-jpeg-entries-fixed", named("jpeg_entries", ones(U32, 4))),
        added("IndexColumn-jpeg-entries-validity", named("jpeg_entries", rows())),
    ]
}

/// A shard without records: its parts are empty, but exist.
fn empty_parts() -> Vec<Case> {
    let empty = || {
        let shard = Shard::named("train-00000.tfrecord", None, Vec::<Sample>::new());
        Dataset { image: None, label: None, opaque: true, ..Dataset::new(vec![("train", vec![shard])]) }
    };
    let forged = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut dataset = empty();
        let shard = dataset.shard();
        shard.index = index::forge(shard.index.clone(), change);
        case(name, &dataset, |e| e.without_index().finds(damage(name), INDEX, None, None))
    };
    let with_column = |name: &str, column: Column| {
        let mut dataset = empty();
        dataset.shard().columns.push(column);
        dataset.shard().reindex();
        case(name, &dataset, |e| e.finds(damage(name), INDEX, None, None))
    };
    let of_bytes =
        |offsets: &[u8]| Column { offsets: Some(offsets.to_vec()), ..Column::variable("x", &[None::<&str>; 0]) };
    vec![
        forged("IndexLayout-no-rows-offset-0", &|i| i[entry(0) + VALUES..][..8].fill(0)),
        forged("IndexLayout-no-rows-length", &|i| i[entry(0) + VALUES + 8] = 8),
        forged("IndexLayout-no-bytes-offset-0", &|i| i[entry(3) + VALUES..][..8].fill(0)),
        forged("IndexLayout-no-bytes-offsets-absent", &|i| i[entry(3) + OFFSETS + 8] = 0),
        with_column("ColumnValue-bytes-without-rows", Column { values: vec![7], ..of_bytes(&[0; 8]) }),
        with_column("ColumnValue-offset-without-rows", of_bytes(&1u64.to_le_bytes())),
    ]
}
