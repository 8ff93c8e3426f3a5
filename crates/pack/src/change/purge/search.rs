//! Searches the files in a dataset's folder for what was purged: blocks of 64 bytes of the records, and keys. A block that a kept record
//! has too does not count: JPEG files share headers and tables. Keys are searched for where no kept version has its own, some of which
//! may begin or end as they do.

use super::chosen::Chosen;
use crate::Error;
use crate::place;
use crate::progress::{Progress, check};
use shardtool_format::manifest::Manifest;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Bytes of a block. A file with 127 consecutive bytes of a record has one of its blocks.
const BLOCK: usize = 64;
/// Blocks that are searched for, at most; of more, each nth.
const MOST: u64 = 4 << 20;
/// Keys that are shorter are not searched for: other texts have them.
const SHORTEST_KEY: usize = 6;
/// Bytes that are read at once.
const PART: usize = 1 << 20;
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

    /// Searches all files in a folder, and in folders in it. `manifests` are those of the kept versions: what their shards have does
    /// not count. Returns the files with a finding, by their paths in the folder.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Io`].
    pub(super) fn search(
        mut self,
        folder: &Path,
        manifests: &[Manifest],
        progress: &dyn Progress,
    ) -> Result<Vec<PathBuf>, Error> {
        let shards = manifests.iter().flat_map(|manifest| &manifest.splits).flat_map(|split| &split.shards);
        let shards: HashSet<PathBuf> = shards.map(|shard| PathBuf::from(&shard.file)).collect();
        for shard in &shards {
            let mut shared = vec![];
            self.blocks_in(&folder.join(shard), progress, &mut |hash| shared.push(hash))?;
            shared.into_iter().for_each(|hash| {
                self.blocks.remove(&hash);
            });
        }
        let named: HashSet<PathBuf> = manifests.iter().flat_map(|manifest| place::files_of(folder, manifest)).collect();
        let mut files = vec![];
        list(folder, Path::new(""), &mut files)?;
        let mut found = vec![];
        for file in files.into_iter().filter(|file| !shards.contains(file)) {
            let mut has_block = false;
            let has_key = self.blocks_in(&folder.join(&file), progress, &mut |_| has_block = true)?;
            if has_block || (has_key && !named.contains(&file)) {
                found.push(file);
            }
        }
        Ok(found)
    }

    /// Calls `found` with the hash of each block in a file. Returns whether the file has one of the keys.
    fn blocks_in(&self, path: &Path, progress: &dyn Progress, found: &mut dyn FnMut(u64)) -> Result<bool, Error> {
        let gone = (0..BLOCK).fold(1u64, |power, _| power.wrapping_mul(FACTOR));
        let overlap = self.keys.iter().map(Vec::len).max().unwrap_or(0).max(BLOCK);
        let mut file = File::open(path).map_err(Error::io("read", path))?;
        let (mut buffer, mut kept, mut has_key) = (vec![0; PART + overlap], 0, false);
        loop {
            check(progress)?;
            let read = match file.read(&mut buffer[kept..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(Error::io("read", path))?,
            };
            if read == 0 {
                return Ok(has_key);
            }
            let bytes = &buffer[..kept + read];
            has_key = has_key || self.keys.iter().any(|key| has_word(bytes, key));
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
            let end = bytes.len();
            kept = overlap.min(end);
            buffer.copy_within(end - kept..end, 0);
        }
    }
}

/// Returns whether bytes have a key that is not a part of a longer name.
fn has_word(bytes: &[u8], key: &[u8]) -> bool {
    let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
    memchr::memmem::find_iter(bytes, key).any(|at| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !is_name(before) && !is_name(bytes.get(at + key.len()))
    })
}

fn push(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(FACTOR).wrapping_add(u64::from(byte) + 1)
}

fn filter_bit(hash: u64) -> usize {
    (hash.wrapping_mul(FACTOR) >> (64 - FILTER_BITS)) as usize
}

/// Lists the files in a folder, and in folders in it, without following links.
fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let path = root.join(folder);
    for entry in fs::read_dir(&path).map_err(Error::io("list", &path))? {
        let entry = entry.map_err(Error::io("list", &path))?;
        let kind = entry.file_type().map_err(Error::io("list", &path))?;
        let relative = folder.join(entry.file_name());
        if kind.is_dir() {
            list(root, &relative, files)?;
        } else if kind.is_file() {
            files.push(relative);
        }
    }
    files.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_at_every_offset_and_across_parts_and_a_shared_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let record: Vec<u8> = (0..4 * BLOCK).map(|at| (at * at / 7 + at) as u8).collect();
        let mut needles = Needles { blocks: HashSet::new(), filter: vec![0; 1 << (FILTER_BITS - 6)], keys: vec![] };
        record.as_chunks::<BLOCK>().0.iter().for_each(|block| needles.add(block));
        assert_eq!(needles.blocks.len(), 4);
        for offset in [0, 1, 63, 64, PART - BLOCK, PART - 3, PART, PART + BLOCK - 1, 2 * PART + 5] {
            for from in [0, 1, 17, 63, 64] {
                let path = folder.path().join("file");
                // 127 bytes of the record, wherever they begin.
                fs::write(&path, [&vec![7; offset][..], &record[from..from + 127], &[9; 100]].concat()).unwrap();
                let mut found = 0;
                needles.blocks_in(&path, &(), &mut |_| found += 1).unwrap();
                assert!(found > 0, "offset {offset}, byte {from}");
                fs::write(&path, [&vec![7; offset][..], &record[1..64], &[9; 100]].concat()).unwrap();
                needles.blocks_in(&path, &(), &mut |_| panic!("no whole block is there")).unwrap();
            }
        }
        needles.keys = vec![b"a key that is purged".to_vec()];
        let path = folder.path().join("key");
        for (text, is_found) in
            [("a key that is purged", true), ("/a key that is purged.", true), ("a key that is purged2", false)]
        {
            fs::write(&path, [&vec![7; PART + 15][..], text.as_bytes()].concat()).unwrap();
            assert_eq!(needles.blocks_in(&path, &(), &mut |_| ()).unwrap(), is_found, "{text}");
        }
    }
}
