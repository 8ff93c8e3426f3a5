//! Any Unix: the blocks of one object are files in a folder. A block is written under another name and then renamed, so that a file
//! with a block's name is whole. (Holes are not portable: macOS reports them late.)

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Every file system has what is needed.
pub(in crate::cache) fn check_file_system(_folder: &Path, _block: u64) -> io::Result<()> {
    Ok(())
}

/// Returns the bytes of all blocks in a folder. Removes what killed processes left of others.
pub(in crate::cache) fn bytes_of_blocks(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // Neither a link nor a file is a folder of blocks.
        if !std::fs::symlink_metadata(&path)?.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&path)? {
            let entry = entry?;
            match number(&entry.file_name()) {
                Some(_) => bytes += entry.metadata()?.len(),
                None => drop(std::fs::remove_file(entry.path())),
            }
        }
    }
    Ok(bytes)
}

/// The blocks of one object in the cache: a folder, which exists when its first block is written.
#[derive(Debug)]
pub(in crate::cache) struct Blocks {
    path: PathBuf,
    block: u64,
}

impl Blocks {
    pub(in crate::cache) fn new(path: PathBuf, block: u64) -> Self {
        Blocks { path, block }
    }

    /// Opens the folder, which other processes may remove and create again.
    fn folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)
    }

    /// Returns the length of a block; `None` without a file of it.
    fn length(&self, block: u64) -> Option<u64> {
        let stat = statat(self.folder().ok()?, name(block), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        u64::try_from(stat.st_size).ok().filter(|_| is_file)
    }

    /// Returns whether there is a block.
    pub(in crate::cache) fn has(&self, block: u64) -> bool {
        self.length(block).is_some()
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.filter_map(|entry| number(&entry.file_name()))
    }

    /// Returns the first block at or after `block` that there is.
    pub(in crate::cache) fn next(&self, block: u64) -> Option<u64> {
        self.numbers().filter(|number| *number >= block).min()
    }

    /// Returns the number of blocks up to the last one.
    pub(in crate::cache) fn end(&self) -> u64 {
        self.numbers().max().map_or(0, |last| last.saturating_add(1))
    }

    /// Opens the file of a block.
    fn open(&self, block: u64) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(self.folder().ok()?, name(block), flags, Mode::empty()).ok().map(File::from)
    }

    /// Reads part of one block. Returns whether there was all of it. A file that ends earlier is damaged, and removed.
    pub(in crate::cache) fn read(&self, range: Range<u64>, out: &mut [u8]) -> bool {
        let block = range.start / self.block;
        let Some(file) = self.open(block) else { return false };
        let read = file.read_exact_at(out, range.start % self.block).is_ok();
        if !read {
            let _ = self.remove(block);
        }
        read
    }

    /// Appends a range to an empty buffer, without making its bytes zeros first. Returns whether there were all of its blocks;
    /// otherwise, the buffer may hold any part of it.
    pub(in crate::cache) fn append(&self, range: &Range<u64>, buffer: &mut Vec<u8>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let block = at / self.block;
            let end = range.end.min((block + 1) * self.block);
            let Some(file) = self.open(block) else { return false };
            while at < end {
                let length = buffer.len();
                match rustix::io::pread(&file, spare_capacity(buffer), at % self.block) {
                    Ok(0) => {
                        let _ = self.remove(block);
                        return false;
                    }
                    Ok(read) => {
                        // A file that was made longer has bytes of no block.
                        let read = (read as u64).min(end - at);
                        buffer.truncate(length + read as usize);
                        at += read;
                    }
                    Err(Errno::INTR) => {}
                    Err(_) => return false,
                }
            }
        }
        true
    }

    /// Writes a block.
    ///
    /// # Errors
    /// Those of the system. There is nothing of the block then.
    pub(in crate::cache) fn write(&self, block: u64, bytes: &[u8]) -> io::Result<()> {
        static WRITES: AtomicU64 = AtomicU64::new(0);
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = self.folder()?;
        // Only the process with the claim of a block writes it; another machine with the same folder may have the same numbers.
        let temporary = format!(".{}.{}.{}", name(block), std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
        let written = File::from(file).write_all(bytes);
        let written = written.and_then(|()| Ok(renameat(&folder, &temporary, &folder, name(block))?));
        written.inspect_err(|_| {
            let _ = unlinkat(&folder, &temporary, AtFlags::empty());
        })
    }

    /// Removes a block. Returns its bytes; 0 if there is nothing of it.
    pub(in crate::cache) fn remove(&self, block: u64) -> io::Result<u64> {
        let Some(bytes) = self.length(block) else { return Ok(0) };
        unlinkat(self.folder()?, name(block), AtFlags::empty())?;
        Ok(bytes)
    }

    /// Removes all blocks. Returns the bytes that became free.
    pub(in crate::cache) fn unlink(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for block in self.numbers() {
            bytes += self.remove(block)?;
        }
        // It stays if another process writes a block at this moment.
        match std::fs::remove_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
            _ => Ok(bytes),
        }
    }
}

/// Returns the name of the file of a block.
fn name(block: u64) -> String {
    format!("{block:016x}")
}

/// Returns the number of the block of which a file has the name.
fn number(file: &std::ffi::OsStr) -> Option<u64> {
    let text = file.to_str().filter(|text| text.len() == 16)?;
    u64::from_str_radix(text, 16).ok().filter(|number| name(*number) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_written_whole_and_read_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = Blocks::new(folder.path().join("object"), 100);
        assert!(!blocks.has(0) && blocks.next(0).is_none() && blocks.end() == 0);
        let content: Vec<u8> = (0..250).map(|n| n as u8).collect();
        for (number, bytes) in content.chunks(100).enumerate() {
            blocks.write(number as u64, bytes).unwrap();
        }
        assert_eq!((blocks.next(1), blocks.end(), bytes_of_blocks(folder.path()).unwrap()), (Some(1), 3, 250));
        for range in [0..250, 0..100, 99..101, 150..250, 30..230] {
            let mut buffer = Vec::with_capacity(1000);
            let expected = &content[range.start as usize..range.end as usize];
            assert!(blocks.append(&range, &mut buffer) && buffer == expected, "{range:?}");
        }
        let mut part = [0; 10];
        assert!(blocks.read(195..200, &mut part[..5]) && part[..5] == content[195..200]);
        assert_eq!((blocks.remove(1).unwrap(), blocks.remove(1).unwrap(), blocks.next(1)), (100, 0, Some(2)));
        assert!(!blocks.append(&(50..150), &mut Vec::with_capacity(100)));
        assert_eq!(blocks.unlink().unwrap(), 150);
        assert!(!folder.path().join("object").exists());
    }

    #[test]
    fn damaged_files_are_removed_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let blocks = Blocks::new(folder.path().join("object"), 100);
        let path = folder.path().join("object").join(name(7));
        blocks.write(7, &[1; 100]).unwrap();
        // Longer than it was: the bytes behind the block are not read.
        std::fs::write(&path, [2; 300]).unwrap();
        let mut buffer = Vec::with_capacity(1000);
        assert!(!blocks.append(&(700..900), &mut buffer), "block 8 was not written");
        std::fs::write(&path, [1; 40]).unwrap();
        assert!(!blocks.read(730..750, &mut [0; 20]) && !blocks.has(7), "it ended within the range");
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(!blocks.has(7) && !blocks.read(700..701, &mut [0]));
        // What a killed process left.
        std::fs::write(folder.path().join("object/.half"), [1; 40]).unwrap();
        assert_eq!(bytes_of_blocks(folder.path()).unwrap_or(0), std::fs::symlink_metadata(&path).unwrap().len());
        assert!(!folder.path().join("object/.half").exists());
        blocks.write(7, &[3; 100]).unwrap();
        assert!(blocks.has(7), "the link was replaced");
    }
}
