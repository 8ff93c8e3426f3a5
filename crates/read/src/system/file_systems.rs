//! Which file systems are local, by their names on each operating system.

use std::fs::File;

/// Network and FUSE file systems, by `f_type` (`statfs(2)` and `include/uapi/linux/magic.h`).
#[cfg(target_os = "linux")]
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

/// Returns whether a file is on a local file system: neither on a network nor on FUSE.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| !REMOTE.contains(&(fs.f_type as u32)))
}

/// macOS's own file systems, by `f_fstypename` (`statfs(2)`).
#[cfg(target_os = "macos")]
const LOCAL: [&[u8]; 2] = [b"apfs", b"hfs"];

/// Returns whether a file is on one of the system's own file systems.
#[cfg(target_os = "macos")]
pub(crate) fn is_local(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| {
        let name = fs.f_fstypename.map(|character| character.cast_unsigned());
        LOCAL.iter().any(|local| name.split(|byte| *byte == 0).next() == Some(*local))
    })
}
