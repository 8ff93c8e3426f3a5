//! Indexes whose header is damaged, or whose file has another length than the header says.

use super::index_refused;
use crate::bytes::index::{self, HEADER};
use crate::golden::Case;
use crate::golden::tiny::tiny;

/// Offsets in the header.
const MAJOR: usize = 8;
const REQUIRED_FLAGS: usize = 12;
pub(super) const COLUMNS: usize = 20;
pub(super) const RECORDS: usize = 24;
pub(super) const DIRECTORY_BYTES: usize = 44;
pub(super) const INDEX_BYTES: usize = 48;

/// The index of `tiny`, with its header and directory left as they are.
fn damaged(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let mut index = tiny().shard().index.clone();
    change(&mut index);
    index_refused(name, index)
}

/// The index of `tiny`, with the CRCs of header and directory corrected.
pub(super) fn forged(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    index_refused(name, index::forge(tiny().shard().index.clone(), change))
}

pub(super) fn all() -> Vec<Case> {
    vec![
        damaged("IndexTruncated-empty", |i| i.clear()),
        damaged("IndexTruncated-header", |i| i.truncate(63)),
        damaged("IndexTruncated-after-header", |i| i.truncate(HEADER)),
        damaged("IndexTruncated-column", |i| i.truncate(i.len() - 64)),
        damaged("IndexTruncated-last-byte", |i| i.truncate(i.len() - 1)),
        forged("IndexTruncated-length-huge", |i| i[INDEX_BYTES + 7] = 0xff),
        damaged("IndexMagic-text-transfer", |i| i[0] = 0x09),
        damaged("IndexMagic-version-0.1", |i| i[3] = b'X'),
        damaged("IndexMagic-last-byte", |i| i[7] = 0),
        forged("IndexVersion-2", |i| i[MAJOR] = 2),
        forged("IndexVersion-0", |i| i[MAJOR] = 0),
        forged("IndexVersion-257", |i| i[MAJOR + 1] = 1),
        forged("IndexFlags-first", |i| i[REQUIRED_FLAGS] = 1),
        forged("IndexFlags-private", |i| i[REQUIRED_FLAGS + 3] = 1),
        forged("IndexFlags-last", |i| i[REQUIRED_FLAGS + 3] = 0x80),
        damaged("IndexHeaderCrc-records", |i| i[RECORDS] ^= 1),
        damaged("IndexHeaderCrc-crc", |i| i[63] ^= 1),
        // A flipped bit is not a later version, a flag, or another length.
        damaged("IndexHeaderCrc-version", |i| i[MAJOR] ^= 2),
        damaged("IndexHeaderCrc-minor-version", |i| i[MAJOR + 2] ^= 1),
        damaged("IndexHeaderCrc-flags", |i| i[REQUIRED_FLAGS] ^= 1),
        damaged("IndexHeaderCrc-length", |i| i[INDEX_BYTES + 1] ^= 8),
        damaged("IndexHeaderCrc-directory-crc", |i| i[56] ^= 1),
        // The order of checks: version before flags, flags before the length.
        forged("IndexVersion-and-flags", |i| (i[MAJOR], i[REQUIRED_FLAGS]) = (2, 1)),
        forged("IndexFlags-and-length", |i| (i[REQUIRED_FLAGS], i[INDEX_BYTES]) = (1, 1)),
        damaged("IndexDirectoryCrc-entry", |i| i[HEADER + 9] ^= 1),
        damaged("IndexDirectoryCrc-name", |i| i[HEADER + 7 * index::ENTRY] ^= 1),
        damaged("IndexDirectoryCrc-reserved", |i| i[HEADER + 4] ^= 1),
        forged("IndexLayout-index-length", |i| i[INDEX_BYTES + 1] -= 1),
        damaged("IndexLayout-trailing-byte", |i| i.push(0)),
        forged("IndexLayout-trailing-padding", |i| {
            i.extend([0; 64]);
            let length = i.len() as u64;
            i[INDEX_BYTES..INDEX_BYTES + 8].copy_from_slice(&length.to_le_bytes());
        }),
        forged("IndexLayout-directory-length", |i| i[DIRECTORY_BYTES + 3] = 0x7f),
        forged("IndexLayout-directory-longer", |i| i[DIRECTORY_BYTES] += 1),
        forged("IndexLayout-directory-empty", |i| i[DIRECTORY_BYTES..DIRECTORY_BYTES + 4].fill(0)),
        forged("IndexLayout-columns", |i| i[COLUMNS] = 200),
        forged("IndexLayout-columns-huge", |i| i[COLUMNS..COLUMNS + 4].fill(0xff)),
        forged("IndexLayout-one-column-less", |i| i[COLUMNS] -= 1),
        forged("IndexLayout-records", |i| i[RECORDS + 7] = 0xff),
        damaged("IndexPadding-directory", |i| {
            let end = HEADER + 7 * index::ENTRY + NAMES;
            i[end] = 1;
        }),
        damaged("IndexPadding-directory-last-byte", |i| i[START - 1] = 0x80),
        // The padding after the directory is checked before its entries.
        forged("IndexPadding-directory-shorter-than-entries", |i| i[DIRECTORY_BYTES + 1] = 0),
    ]
}

/// Bytes of the names of `tiny`'s columns, and where its first part begins.
const NAMES: usize =
    "record_offsetimage_offsetimage_lengthkeyfeature:image/class/labelfeature:image/heightfeature:image/width".len();
pub(super) const START: usize = (HEADER + 7 * index::ENTRY + NAMES).next_multiple_of(64);
