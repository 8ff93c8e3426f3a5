//! Linux.

/// Returns this thread's `errno`. Async-signal-safe, without preconditions.
pub(crate) use libc::__errno_location as errno;

use libc::c_int;
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::ops::Range;

/// Errors of reading that concern single blocks of a device.
pub(crate) const DEVICE_ERRORS: &[Errno] =
    &[Errno::IO, Errno::BADMSG, Errno::UCLEAN, Errno::NODATA, Errno::REMOTEIO, Errno::HWPOISON];

/// Hints that a range is read soon. Ignores errors.
pub(crate) fn will_need(file: &File, range: Range<u64>) {
    advise(file, range, Advice::WillNeed);
}

/// Hints that a range is not read again soon, so that the page cache need not keep it. Ignores errors.
pub(crate) fn will_not_need(file: &File, range: Range<u64>) {
    advise(file, range, Advice::DontNeed);
}

fn advise(file: &File, range: Range<u64>, advice: Advice) {
    // A length of 0 would mean all of the file.
    if let Some(length) = range.end.checked_sub(range.start).and_then(NonZeroU64::new) {
        let _ = fadvise(file, range.start, Some(length), advice);
    }
}

/// Hints that what is read says nothing about what is read next. Ignores errors.
pub(crate) fn reads_at_random(file: &File) {
    let _ = fadvise(file, 0, None, Advice::Random);
}

/// Returns whether the system has the page at an offset in memory; `false` if that is unknown, as on network file systems.
pub(crate) fn is_in_memory(file: &File, at: u64) -> bool {
    // `mincore` would claim so of all files that belong to another user.
    preadv2(file, &mut [IoSliceMut::new(&mut [0])], at, ReadWriteFlags::NOWAIT) == Ok(1)
}

/// Returns the number of mappings that a process may have, if the system says so.
pub(crate) fn most_mappings() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

/// Returns whether the code of a SIGBUS is that of a fault, which has an address. A code of 0 or less is that of a signal which
/// a process sent.
pub(crate) fn is_fault(code: c_int) -> bool {
    code > 0
}

/// Whether the code of a signal that a process sent may be that of a fault.
pub(crate) const SENT_MAY_LOOK_LIKE_A_FAULT: bool = false;
