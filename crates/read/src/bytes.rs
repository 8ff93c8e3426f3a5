//! Bytes of a file, mapped or read; the results are the same.

use crate::{Error, Result};
use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Once, OnceLock};

/// How the bytes of shards and indexes are read: mapped into memory, or by positional reads.
///
/// # Contract of a mapping
/// While a file is mapped, it must be neither truncated nor rewritten in place, by this process or another one. Nothing
/// in this crate does so: datasets are written under temporary names and renamed into place, and a rename leaves the
/// mapped file as it was. Adopted and bare TFRecord files belong to other programs, so for them the user
/// must guarantee it when opening them with [`Access::Auto`] or [`Access::Mmap`]. If the contract is broken:
/// - *Truncated:* the first access past the new end raises SIGBUS, which ends the process.
/// - *Rewritten in place:* records and columns that were not read yet fail their CRCs, which are checked on first use.
///   Bytes that were checked already may change while they are borrowed, which Rust does not allow for `&[u8]` and `&str`:
///   code that reads them may return anything, and `&str` in [`shardtool_format::example::Example`] may cease to be UTF-8.
///
/// [`Access::Pread`] needs no such contract: each record is copied and checked before it is used, a
/// truncated file is an error, and a rewritten one fails its CRCs.
///
/// # Default
/// [`Access::Auto`] maps files on local file systems: a mapping saves a system call and a copy per record, many processes
/// share it, and finished datasets are not written to. It does not map files on network and FUSE file systems, where
/// another machine may truncate a file and a lost connection is a SIGBUS. Choose [`Access::Pread`] if files may be
/// rewritten in place while they are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Access {
    /// [`Access::Mmap`] on local file systems, [`Access::Pread`] on network and FUSE file systems.
    #[default]
    Auto,
    /// Maps files; records borrow from the mapping.
    Mmap,
    /// Reads each record into a buffer (`pread`).
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

/// An open file: a mapping, or a descriptor for positional reads.
#[derive(Debug)]
pub struct FileBytes {
    bytes: Bytes,
    len: u64,
    /// The mapped file, opened again when its pages are first released.
    reopened: OnceLock<Option<File>>,
    exact: Once,
}

#[derive(Debug)]
enum Bytes {
    Map(Mmap),
    File(File),
}

impl FileBytes {
    /// Opens a file for reading. If `access` maps the file, the contract in [`Access`] applies until the value is
    /// dropped.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(path: &Path, access: Access) -> Result<Self> {
        let io = |source| Error::Io { action: "open", path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if metadata.is_dir() {
            return Err(io(std::io::ErrorKind::IsADirectory.into()));
        }
        let len = metadata.len();
        let bytes = if access.maps(&file) {
            // SAFETY: the file must not be truncated or written while it is mapped. No code of this workspace does (files
            // are completed under another name and renamed, `pack/commit.rs`); for other writers it is the contract of
            // `Access`, which the caller accepts by choosing a mapping.
            Bytes::Map(unsafe { Mmap::map(&file) }.map_err(io)?)
        } else {
            Bytes::File(file)
        };
        Ok(FileBytes { bytes, len, reopened: OnceLock::new(), exact: Once::new() })
    }

    /// Returns the length of the file when it was opened, in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a file's length, not a collection's")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns all bytes if the file is mapped.
    pub fn mapped(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Map(map) => Some(map),
            Bytes::File(_) => None,
        }
    }

    /// Returns the bytes of a range: borrowed from the mapping, or read.
    ///
    /// # Errors
    /// Errors of reading; `UnexpectedEof` for a range past the end.
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

    /// Returns the bytes of a range if the file is mapped.
    pub(crate) fn mapped_range(&self, range: &Range<u64>) -> Option<std::io::Result<&[u8]>> {
        let whole = self.mapped()?;
        let part = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        Some(
            part.and_then(|(start, end)| whole.get(start..end)).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into()),
        )
    }

    /// Reads a range into a buffer and resizes the buffer to it.
    pub(crate) fn read_into(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        if range.end > self.len || range.start > range.end {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let length = (range.end - range.start) as usize;
        if buffer.capacity() < length {
            // `reserve` may allocate more than the length, which the loader's memory budget does not count.
            *buffer = Vec::with_capacity(length);
        }
        buffer.resize(length, 0);
        match &self.bytes {
            Bytes::Map(map) => buffer.copy_from_slice(&map[range.start as usize..range.end as usize]),
            Bytes::File(file) => file.read_exact_at(buffer, range.start)?,
        }
        Ok(())
    }

    /// Hints that the system should read a range ahead. Does not wait; ignores errors.
    pub fn will_need(&self, range: Range<u64>) {
        let length = range.end.min(self.len).saturating_sub(range.start);
        match &self.bytes {
            Bytes::Map(map) => {
                let _ = map.advise_range(Advice::WillNeed, range.start as usize, length as usize);
            }
            Bytes::File(file) => {
                let length = std::num::NonZeroU64::new(length);
                let _ = rustix::fs::fadvise(file, range.start, length, rustix::fs::Advice::WillNeed);
            }
        }
    }

    /// Turns read-around off (`MADV_RANDOM`): the system reads the touched pages and those of [`FileBytes::will_need`]
    /// only. Read-around may be megabytes per record, most of which is evicted unread if memory is short.
    pub(crate) fn read_exactly(&self) {
        self.exact.call_once(|| match &self.bytes {
            Bytes::Map(map) => drop(map.advise(Advice::Random)),
            Bytes::File(file) => drop(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random)),
        });
    }

    /// Hints that a range will not be read again soon: drops its pages from this process and, unless another process
    /// maps them, from the page cache. Pages at the ends are dropped whole; dropped pages are read again when needed.
    /// `path` is the file's path.
    pub(crate) fn release(&self, range: Range<u64>, path: &Path) {
        const PAGE: u64 = 4096;
        let (start, end) = (range.start / PAGE * PAGE, range.end.next_multiple_of(PAGE).min(self.len));
        let Some(length) = end.checked_sub(start).and_then(std::num::NonZeroU64::new) else { return };
        let file = match &self.bytes {
            Bytes::File(file) => Some(file),
            Bytes::Map(map) => {
                // SAFETY: `MADV_DONTNEED` on a shared file mapping loses no data (`Mmap::map` makes such a mapping, and
                // this one is read-only): dropped pages are read from the file again, with the same bytes under the
                // contract of `Access`. The range lies inside the mapping, since `end` is at most its length.
                let dropped = unsafe {
                    map.unchecked_advise_range(UncheckedAdvice::DontNeed, start as usize, length.get() as usize)
                };
                let _ = dropped;
                self.reopened.get_or_init(|| File::open(path).ok()).as_ref()
            }
        };
        if let Some(file) = file {
            // The length is rounded up because the page cache holds the last page of a file whole.
            let length = std::num::NonZeroU64::new(length.get().next_multiple_of(PAGE));
            let _ = rustix::fs::fadvise(file, start, length, rustix::fs::Advice::DontNeed);
        }
    }
}
