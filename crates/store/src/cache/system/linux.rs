//! Linux: the blocks of one object are a sparse file, whose holes say which blocks it does not have.

use super::super::files::open;
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The first bytes of a block are written last, so that a block that begins with data is whole. At least the unit in which a file
/// system keeps holes, which is at most a page, and pages are at most 64 KiB.
const HEAD: usize = 64 << 10;

/// Returns an error if the file system of a folder does not keep holes of `block` bytes.
pub(in crate::cache) fn check_file_system(folder: &Path, block: u64) -> io::Result<()> {
    let path = folder.join("holes");
    let _ = std::fs::remove_file(&path);
    let file = File::from(open(&path)?);
    let data = [1; 4096];
    file.write_all_at(&data, 0)?;
    file.write_all_at(&data, 2 * block)?;
    let finds = |at| seek(&file, SeekFrom::Data(at)).ok();
    let kept = finds(block) == Some(2 * block);
    let removed = punch(&file, 0, block).is_ok() && finds(0) == Some(2 * block);
    let _ = std::fs::remove_file(&path);
    if kept && removed {
        return Ok(());
    }
    let problem = "the file system keeps no holes in files (ext4, XFS, Btrfs and tmpfs do)";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
}

/// Returns the bytes of all blocks in a folder.
pub(in crate::cache) fn bytes_of_blocks(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.blocks() * 512;
    }
    Ok(bytes)
}

/// Makes a hole.
fn punch(file: &File, start: u64, len: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, len)?)
}

/// The blocks of one object in the cache: a file, which exists when its first block is written.
#[derive(Debug)]
pub(in crate::cache) struct Blocks {
    path: PathBuf,
    file: OnceLock<File>,
    block: u64,
}

impl Blocks {
    pub(in crate::cache) fn new(path: PathBuf, block: u64) -> Self {
        Blocks { path, file: OnceLock::new(), block }
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
    pub(in crate::cache) fn has(&self, block: u64) -> bool {
        let start = block * self.block;
        self.file().is_some_and(|file| seek(file, SeekFrom::Data(start)) == Ok(start))
    }

    /// Returns the first block at or after `block` that the file has.
    pub(in crate::cache) fn next(&self, block: u64) -> Option<u64> {
        let data = seek(self.file()?, SeekFrom::Data(block * self.block)).ok()?;
        Some(data / self.block)
    }

    /// Returns the number of blocks up to the last one that was ever written.
    pub(in crate::cache) fn end(&self) -> u64 {
        self.len().div_ceil(self.block)
    }

    fn len(&self) -> u64 {
        self.file().and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len())
    }

    /// Reads part of one block. Returns whether the file had the block before and after.
    pub(in crate::cache) fn read(&self, range: Range<u64>, out: &mut [u8]) -> bool {
        let block = range.start / self.block;
        self.has(block)
            && self.file().is_some_and(|file| file.read_exact_at(out, range.start).is_ok())
            && self.has(block)
    }

    /// Appends a range to an empty buffer, without making its bytes zeros first. Returns whether the file has all of its blocks;
    /// otherwise, the buffer may hold any part of it. (A block that is written at the same time may be holes here. It then
    /// fails its check, and is read again.)
    pub(in crate::cache) fn append(&self, range: &Range<u64>, buffer: &mut Vec<u8>) -> bool {
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
    pub(in crate::cache) fn write(&self, block: u64, bytes: &[u8]) -> io::Result<()> {
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
    pub(in crate::cache) fn remove(&self, block: u64) -> io::Result<u64> {
        let Some(file) = self.file().filter(|_| self.next(block) == Some(block)) else { return Ok(0) };
        let start = block * self.block;
        punch(file, start, self.block)?;
        Ok(self.len().saturating_sub(start).min(self.block))
    }

    /// Removes the file. Returns the bytes that became free.
    pub(in crate::cache) fn unlink(&self) -> io::Result<u64> {
        let bytes = std::fs::symlink_metadata(&self.path)?.blocks() * 512;
        std::fs::remove_file(&self.path)?;
        Ok(bytes)
    }
}
