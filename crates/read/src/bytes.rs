//! Bytes of a file, mapped or read: the same answers either way.

use crate::{Error, Result};
use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Once, OnceLock};

/// How the bytes of shards and indexes are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// [`Access::Mmap`] on local file systems, [`Access::Pread`] on network and FUSE ones, where a file that shrinks
    /// under its mapping would kill the process.
    #[default]
    Auto,
    /// Files are mapped; records borrow from the mapping.
    Mmap,
    /// Records are read into memory of their own.
    Pread,
}

/// Network and FUSE file systems, by `f_type` (Linux, `statfs(2)` and `include/uapi/linux/magic.h`).
const REMOTE: [u32; 12] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x6573_5546, // FUSE: sshfs, s3fs, gcsfuse, virtiofs
    0x0102_1997, // 9P
    0x00c3_6400, // Ceph
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x5346_414f, // AFS
    0x7375_7245, // Coda
];

impl Access {
    fn maps(self, file: &File) -> bool {
        match self {
            Access::Mmap => true,
            Access::Pread => false,
            Access::Auto => rustix::fs::fstatfs(file).is_ok_and(|fs| !REMOTE.contains(&(fs.f_type as u32))),
        }
    }
}

/// An open file of a known length.
#[derive(Debug)]
pub struct FileBytes {
    source: Source,
    len: u64,
    /// The mapped file, opened again when its pages are first given up.
    reopened: OnceLock<Option<File>>,
    exact: Once,
}

#[derive(Debug)]
enum Source {
    Map(Mmap),
    File(File),
}

impl FileBytes {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// What cannot be checked: that nobody shortens or rewrites the file while it is mapped. Datasets are written once
    /// and renamed into place, so that only an outsider could; then CRCs find altered bytes, and a shortened file ends
    /// the process with SIGBUS ([`Access::Pread`] gives an error instead).
    pub fn open(path: &Path, access: Access) -> Result<Self> {
        let io = |source| Error::Io { action: "open", path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(io(std::io::ErrorKind::IsADirectory.into()));
        }
        let len = metadata.len();
        let source = if access.maps(&file) {
            // SAFETY: the mapping is read-only and private to this type. Files of a dataset are never written in place
            // (they are renamed into place when complete), which is the promise stated above.
            Source::Map(unsafe { Mmap::map(&file) }.map_err(io)?)
        } else {
            Source::File(file)
        };
        Ok(FileBytes { source, len, reopened: OnceLock::new(), exact: Once::new() })
    }

    /// Length of the file when it was opened, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a file's length, not a collection's")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// All bytes, when the file is mapped.
    pub fn mapped(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Map(map) => Some(map),
            Source::File(_) => None,
        }
    }

    /// The bytes of a range: borrowed from the mapping, or read.
    ///
    /// # Errors
    /// Any of reading; `UnexpectedEof` for a range past the end.
    pub fn range(&self, range: Range<u64>) -> std::io::Result<Cow<'_, [u8]>> {
        match self.mapped_range(&range) {
            Some(bytes) => bytes.map(Cow::Borrowed),
            None => {
                let mut buffer = vec![];
                self.read_into(range, &mut buffer)?;
                Ok(Cow::Owned(buffer))
            }
        }
    }

    /// The bytes of a range of a mapped file; `None` where the file is not mapped.
    pub(crate) fn mapped_range(&self, range: &Range<u64>) -> Option<std::io::Result<&[u8]>> {
        let whole = self.mapped()?;
        let part = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        Some(
            part.and_then(|(start, end)| whole.get(start..end)).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into()),
        )
    }

    /// Reads a range into a buffer, which is resized to it.
    pub(crate) fn read_into(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        if range.end > self.len || range.start > range.end {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let length = (range.end - range.start) as usize;
        if buffer.capacity() < length {
            // No more than is needed: who reads counts it.
            *buffer = Vec::with_capacity(length);
        }
        buffer.resize(length, 0);
        match &self.source {
            Source::Map(map) => buffer.copy_from_slice(&map[range.start as usize..range.end as usize]),
            Source::File(file) => file.read_exact_at(buffer, range.start)?,
        }
        Ok(())
    }

    /// Asks the system to read a range ahead. Only a hint: nothing waits, and what fails does so silently.
    pub fn will_need(&self, range: Range<u64>) {
        let length = range.end.min(self.len).saturating_sub(range.start);
        match &self.source {
            Source::Map(map) => {
                let _ = map.advise_range(Advice::WillNeed, range.start as usize, length as usize);
            }
            Source::File(file) => {
                let length = std::num::NonZeroU64::new(length);
                let _ = rustix::fs::fadvise(file, range.start, length, rustix::fs::Advice::WillNeed);
            }
        }
    }

    /// From now on the system reads just what is touched or asked for ahead, not what lies around it. Read-around may be
    /// megabytes for each record, most of them thrown away unread where memory is short.
    pub(crate) fn read_exactly(&self) {
        self.exact.call_once(|| match &self.source {
            Source::Map(map) => drop(map.advise(Advice::Random)),
            Source::File(file) => drop(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random)),
        });
    }

    /// Gives the range's pages up: out of this process, and, unless another process maps them, out of the page cache. For
    /// data that will not be read again soon on a machine whose page cache others need. Only a hint; whole pages are given
    /// up, those at the ends too, and come back when they are read. `path` is the file's.
    pub(crate) fn release(&self, range: Range<u64>, path: &Path) {
        const PAGE: u64 = 4096;
        let (start, end) = (range.start / PAGE * PAGE, range.end.next_multiple_of(PAGE).min(self.len));
        let Some(length) = end.checked_sub(start).and_then(std::num::NonZeroU64::new) else { return };
        let file = match &self.source {
            Source::File(file) => Some(file),
            Source::Map(map) => {
                // SAFETY: the mapping is shared and read-only, so that dropped pages come back with the file's bytes: what
                // anybody reads through it stays the same.
                let dropped = unsafe {
                    map.unchecked_advise_range(UncheckedAdvice::DontNeed, start as usize, length.get() as usize)
                };
                let _ = dropped;
                self.reopened.get_or_init(|| File::open(path).ok()).as_ref()
            }
        };
        if let Some(file) = file {
            // The end is rounded up: the last page of a file is whole to the page cache.
            let length = std::num::NonZeroU64::new(length.get().next_multiple_of(PAGE));
            let _ = rustix::fs::fadvise(file, start, length, rustix::fs::Advice::DontNeed);
        }
    }
}
