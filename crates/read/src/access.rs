//! Whether files are mapped or read.

use crate::system;
use std::fs::File;

/// How the bytes of shards and indexes are read: mapped into memory, or by positional reads.
///
/// # Contract of a mapping
/// While a file is mapped, it must not be rewritten in place, by this process or another one. Nothing
/// in this crate does so: datasets are written under temporary names and renamed into place, and a rename leaves the
/// mapped file as it was. Adopted and bare TFRecord files belong to other programs, so for them the user
/// must guarantee it when opening them with [`Access::Auto`] or [`Access::Mmap`]. If the contract is broken, records and
/// columns that were not read yet fail their CRCs, which are checked on first use. Bytes that were checked already may
/// change while they are borrowed, which Rust does not allow for `&[u8]` and `&str`: code that reads them may return
/// anything, and `&str` in [`shardtool_format::example::Example`] may cease to be UTF-8.
///
/// # Unreadable bytes
/// A page that cannot be read, because the file was truncated or the device failed, raises SIGBUS. A handler, which is
/// installed before the first mapping, replaces such a page by zeros; the record is then read again with `pread`, and
/// fails with the system's error ([`crate::Error::Unreadable`]). Other records are not affected. Code that borrows bytes asks
/// after their last use whether all could be read: [`crate::Record::check_readable`], [`crate::Shard::check_index_readable`],
/// [`FileBytes::check_readable`](crate::FileBytes::check_readable).
///
/// The handler passes faults at other addresses to the one that was installed before it. A SIGBUS handler that the
/// program installs after opening a dataset gets all faults first: install it earlier, or pass faults on.
///
/// [`Access::Pread`] needs neither contract nor handler: each record is copied and checked before it is used, a
/// truncated file is an error, and a rewritten one fails its CRCs.
///
/// # Default
/// [`Access::Auto`] maps files on local file systems: a mapping saves a system call and a copy per record, many processes
/// share it, and finished datasets are not written to. It does not map files on network and FUSE file systems, where
/// another machine may rewrite a file and connections are lost. Choose [`Access::Pread`] if files may be
/// rewritten in place while they are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Access {
    /// [`Access::Mmap`] on local file systems, [`Access::Pread`] on network and FUSE file systems. Linux's are known, and APFS and
    /// HFS+ of macOS; others count as the latter.
    #[default]
    Auto,
    /// Maps files; records borrow from the mapping.
    Mmap,
    /// Reads each record into a buffer (`pread`).
    Pread,
}

impl Access {
    /// Returns whether a file is mapped.
    pub(crate) fn maps(self, file: &File) -> bool {
        match self {
            Access::Mmap => true,
            Access::Pread => false,
            Access::Auto => system::is_local(file),
        }
    }
}
