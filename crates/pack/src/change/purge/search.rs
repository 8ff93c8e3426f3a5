//! Searches the files in a dataset's folder for what was purged: blocks of 64 bytes of the records, and keys. A block that a kept record
//! has too does not count: JPEG files share headers and tables. Keys are searched for where no kept version has its own, some of which
//! may begin or end as they do.

use super::chosen::Chosen;
use super::reach::Reach;
use crate::Error;
use crate::place::{self, Place};
use crate::progress::{Progress, check};
use shardtool_format::manifest::Manifest;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Bytes of a block. A file with 127 consecutive bytes of a record has one of its blocks.
const BLOCK: usize = 64;
/// Blocks that are searched for, at most; of more, each nth.
const MOST: u64 = 4 << 20;
/// Keys that are shorter are not searched for: other texts have them.
const SHORTEST_KEY: usize = 6;
/// Factor of the rolling hash.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bits of the filter, as a power of two.
const FILTER_BITS: u32 = 26;

/// What is searched for.
pub(super) struct Needles {
    /// Hashes of blocks.
    blocks: HashSet<u64>,
    /// A bit for the highest bits of each hash: most places of a file have none.
    filter: Vec<u64>,
    keys: Vec<Vec<u8>>,
}

impl Needles {
    /// Reads the records that will be purged.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(super) fn new(chosen: &Chosen) -> Result<Self, Error> {
        let mut bytes = 0;
        for (_, kept) in chosen.affected() {
            let shard = chosen.open(kept)?;
            for row in &kept.rows {
                let frame = shard.frame(*row)?;
                bytes += frame.end - frame.start;
            }
        }
        let every = (bytes / BLOCK as u64).div_ceil(MOST).max(1) as usize;
        let mut needles = Needles { blocks: HashSet::new(), filter: vec![0; 1 << (FILTER_BITS - 6)], keys: vec![] };
        let mut buffer = vec![];
        for (_, kept) in chosen.affected() {
            let shard = chosen.open(kept)?;
            for row in &kept.rows {
                let record = shard.record(*row, std::mem::take(&mut buffer))?;
                for block in record.data().as_chunks::<BLOCK>().0.iter().step_by(every) {
                    needles.add(block);
                }
                record.check_readable()?;
                buffer = record.into_buffer();
            }
        }
        needles.keys =
            chosen.forbidden().into_iter().filter(|key| key.len() >= SHORTEST_KEY).map(<[u8]>::to_vec).collect();
        Ok(needles)
    }

    fn add(&mut self, block: &[u8; BLOCK]) {
        // A block of one byte value is in many files.
        if block.iter().all(|byte| *byte == block[0]) {
            return;
        }
        let hash = block.iter().fold(0, |hash: u64, byte| push(hash, *byte));
        self.blocks.insert(hash);
        let bit = filter_bit(hash);
        self.filter[bit / 64] |= 1 << (bit % 64);
    }

    /// Searches all files in a dataset's folder, and in folders in it. `manifests` are those of the kept versions: what their shards have
    /// does not count. Returns the files with a finding, by their paths in the folder.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Io`].
    pub(super) fn search<P: Reach>(
        mut self,
        place: &P,
        manifests: &[Manifest],
        progress: &dyn Progress,
    ) -> Result<Vec<PathBuf>, Error> {
        let shards = manifests.iter().flat_map(|manifest| &manifest.splits).flat_map(|split| &split.shards);
        let shards: HashSet<PathBuf> = shards.map(|shard| PathBuf::from(&shard.file)).collect();
        for shard in &shards {
            let mut shared = vec![];
            self.blocks_in(place, shard, progress, &mut |hash| shared.push(hash))?;
            shared.into_iter().for_each(|hash| {
                self.blocks.remove(&hash);
            });
        }
        let named: HashSet<PathBuf> =
            manifests.iter().flat_map(|manifest| place::files_of(place.path(), manifest)).collect();
        let mut found = vec![];
        for file in place.all_files()?.into_iter().filter(|file| !shards.contains(file)) {
            let mut has_block = false;
            let has_key = self.blocks_in(place, &file, progress, &mut |_| has_block = true)?;
            if has_block || (has_key && !named.contains(&file)) {
                found.push(file);
            }
        }
        Ok(found)
    }

    /// Calls `found` with the hash of each block in a file. Returns whether the file has one of the keys. One that was removed meanwhile
    /// has nothing.
    fn blocks_in<P: Place>(
        &self,
        place: &P,
        file: &Path,
        progress: &dyn Progress,
        found: &mut dyn FnMut(u64),
    ) -> Result<bool, Error> {
        // A block, or a key with the byte before it, that begins in one part and ends in the next one.
        let overlap = 1 + self.keys.iter().map(Vec::len).max().unwrap_or(0).max(BLOCK);
        let (mut window, mut has_key, mut is_first, mut stopped) = (vec![], false, true, Ok(()));
        place.read_parts(file, &mut |part| {
            if stopped.is_ok() {
                stopped = check(progress);
            }
            if stopped.is_err() {
                return;
            }
            window.extend_from_slice(part);
            has_key = has_key || self.has_key(&window, is_first, false);
            self.blocks_of(&window, found);
            let gone = window.len().saturating_sub(overlap);
            window.drain(..gone);
            is_first &= gone == 0;
        })?;
        stopped?;
        Ok(has_key || self.has_key(&window, is_first, true))
    }

    /// Calls `found` with the hash of each block in some bytes.
    fn blocks_of(&self, bytes: &[u8], found: &mut dyn FnMut(u64)) {
        let gone = (0..BLOCK).fold(1u64, |power, _| power.wrapping_mul(FACTOR));
        let mut hash = bytes.iter().take(BLOCK).fold(0, |hash, byte| push(hash, *byte));
        for at in 0..bytes.len().saturating_sub(BLOCK - 1) {
            if at > 0 {
                let first = (u64::from(bytes[at - 1]) + 1).wrapping_mul(gone);
                hash = push(hash, bytes[at + BLOCK - 1]).wrapping_sub(first);
            }
            let bit = filter_bit(hash);
            if self.filter[bit / 64] >> (bit % 64) & 1 == 1 && self.blocks.contains(&hash) {
                found(hash);
            }
        }
    }

    /// Returns whether a part of a file has one of the keys, and no longer name. Of a part that is not the first or the last one, a key at
    /// its beginning or end is found in the part before or after it, which has the bytes around.
    fn has_key(&self, part: &[u8], is_first: bool, is_last: bool) -> bool {
        self.keys.iter().any(|key| {
            memchr::memmem::find_iter(part, key).any(|at| {
                let end = at + key.len();
                (at > 0 || is_first) && (end < part.len() || is_last) && is_word(part, at, end)
            })
        })
    }
}

/// Returns whether the bytes before and after a name do not continue it.
fn is_word(bytes: &[u8], start: usize, end: usize) -> bool {
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
    !is_name(start.checked_sub(1).and_then(|before| bytes.get(before))) && !is_name(bytes.get(end))
}

fn push(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(FACTOR).wrapping_add(u64::from(byte) + 1)
}

fn filter_bit(hash: u64) -> usize {
    (hash.wrapping_mul(FACTOR) >> (64 - FILTER_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Directory;
    use std::fs;

    /// Bytes that are read at once.
    const PART: usize = 1 << 20;

    #[test]
    fn a_block_is_found_at_every_offset_and_across_parts_and_a_shared_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let place = Directory::open(folder.path()).unwrap().unwrap();
        let write = |bytes: Vec<u8>| fs::write(folder.path().join("file"), bytes).unwrap();
        let file = Path::new("file");
        let record: Vec<u8> = (0..4 * BLOCK).map(|at| (at * at / 7 + at) as u8).collect();
        let mut needles = Needles { blocks: HashSet::new(), filter: vec![0; 1 << (FILTER_BITS - 6)], keys: vec![] };
        record.as_chunks::<BLOCK>().0.iter().for_each(|block| needles.add(block));
        assert_eq!(needles.blocks.len(), 4);
        for offset in [0, 1, 63, 64, PART - BLOCK, PART - 3, PART, PART + BLOCK - 1, 2 * PART + 5] {
            for from in [0, 1, 17, 63, 64] {
                // 127 bytes of the record, wherever they begin.
                write([&vec![7; offset][..], &record[from..from + 127], &[9; 100]].concat());
                let mut found = 0;
                needles.blocks_in(&place, file, &(), &mut |_| found += 1).unwrap();
                assert!(found > 0, "offset {offset}, byte {from}");
                write([&vec![7; offset][..], &record[1..64], &[9; 100]].concat());
                needles.blocks_in(&place, file, &(), &mut |_| panic!("no whole block is there")).unwrap();
            }
        }
        needles.keys = vec![b"a key that is purged".to_vec()];
        let length = needles.keys[0].len();
        // At the beginning and the end of a part, and across both.
        let before = [0, 15, PART - length - 1, PART - length, PART - 9, PART - 1, PART, PART + 15, 2 * PART - length];
        for (text, is_found) in [
            ("a key that is purged", true),
            ("/a key that is purged.", true),
            ("a key that is purged2", false),
            ("4a key that is purged", false),
        ] {
            for before in before {
                write([&vec![b'/'; before][..], text.as_bytes()].concat());
                let found = needles.blocks_in(&place, file, &(), &mut |_| ()).unwrap();
                assert_eq!(found, is_found, "{text} after {before} bytes");
            }
        }
        assert!(!needles.blocks_in(&place, Path::new("none"), &(), &mut |_| ()).unwrap(), "no such file");
    }
}
