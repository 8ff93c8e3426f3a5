//! Whether files are mapped or read.

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
    /// Returns whether a file is mapped.
    pub(crate) fn maps(self, file: &File) -> bool {
        match self {
            Access::Mmap => true,
            Access::Pread => false,
            Access::Auto => rustix::fs::fstatfs(file).is_ok_and(|fs| !REMOTE.contains(&(fs.f_type as u32))),
        }
    }
}
