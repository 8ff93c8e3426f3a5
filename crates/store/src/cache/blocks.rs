//! The blocks of one object, in a sparse file.

use super::files::{open, punch};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The first bytes of a block are written last, so that a block that begins with data is whole. More than the unit in which a
/// file system keeps holes.
const HEAD: usize = 64 << 10;

/// A file in the cache, which exists when its first block is written.
#[derive(Debug)]
pub(super) struct BlockFile {
    path: PathBuf,
    file: OnceLock<File>,
    block: u64,
}

impl BlockFile {
    pub(super) fn new(path: PathBuf, block: u64) -> Self {
        BlockFile { path, file: OnceLock::new(), block }
    }

    /// Returns the file, if this or another process has written a block.
    fn file(&self) -> Option<&File> {
        if self.file.get().is_none() {
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::open(&self.path, flags, Mode::empty()).ok()?;
            let _ = self.file.set(file.into());
        }
        self.file.get()
    }

    /// Returns whether the file has a block.
    pub(super) fn has(&self, block: u64) -> bool {
        let start = block * self.block;
        self.file().is_some_and(|file| seek(file, SeekFrom::Data(start)) == Ok(start))
    }

    /// Returns the first block at or after `block` that the file has.
    pub(super) fn next(&self, block: u64) -> Option<u64> {
        let data = seek(self.file()?, SeekFrom::Data(block * self.block)).ok()?;
        Some(data / self.block)
    }

    /// Returns the number of blocks up to the last one that was ever written.
    pub(super) fn end(&self) -> u64 {
        self.len().div_ceil(self.block)
    }

    fn len(&self) -> u64 {
        self.file().and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len())
    }

    /// Reads part of one block. Returns whether the file had the block before and after.
    pub(super) fn read(&self, range: Range<u64>, out: &mut [u8]) -> bool {
        let block = range.start / self.block;
        self.has(block)
            && self.file().is_some_and(|file| file.read_exact_at(out, range.start).is_ok())
            && self.has(block)
    }

    /// Appends a range to an empty buffer, without making its bytes zeros first. Returns whether the file has all of its blocks;
    /// otherwise, the buffer may hold any part of it. (A block that is written at the same time may be holes here. It then
    /// fails its check, and is read again.)
    pub(super) fn append(&self, range: &Range<u64>, buffer: &mut Vec<u8>) -> bool {
        let length = (range.end - range.start) as usize;
        let Some(file) = self.file() else { return false };
        while buffer.len() < length {
            let at = range.start + buffer.len() as u64;
            match rustix::io::pread(file, spare_capacity(buffer), at) {
                Ok(0) => return false,
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        buffer.truncate(length);
        (range.start / self.block..range.end.div_ceil(self.block)).all(|block| self.has(block))
    }

    /// Writes a block.
    ///
    /// # Errors
    /// Those of the system. The file then has nothing of the block.
    pub(super) fn write(&self, block: u64, bytes: &[u8]) -> io::Result<()> {
        let file = match self.file() {
            Some(file) => file,
            None => {
                let created = File::from(open(&self.path)?);
                self.file.get_or_init(|| created)
            }
        };
        let start = block * self.block;
        let (head, tail) = bytes.split_at(bytes.len().min(HEAD));
        let written = file.write_all_at(tail, start + head.len() as u64);
        written.and_then(|()| file.write_all_at(head, start)).inspect_err(|_| {
            let _ = punch(file, start, self.block);
        })
    }

    /// Removes a block, also one that a killed process has written in part. Returns its bytes; 0 if the file has nothing of it.
    pub(super) fn remove(&self, block: u64) -> io::Result<u64> {
        let Some(file) = self.file().filter(|_| self.next(block) == Some(block)) else { return Ok(0) };
        let start = block * self.block;
        punch(file, start, self.block)?;
        Ok(self.len().saturating_sub(start).min(self.block))
    }

    /// Removes the file. Returns the bytes that became free.
    pub(super) fn unlink(&self) -> io::Result<u64> {
        let bytes = std::fs::symlink_metadata(&self.path)?.blocks() * 512;
        std::fs::remove_file(&self.path)?;
        Ok(bytes)
    }
}
