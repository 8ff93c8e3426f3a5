//! Any Unix, without advice about the page cache and questions to it, which differ from system to system.

/// Returns this thread's `errno`. Async-signal-safe, without preconditions.
#[cfg(not(target_os = "macos"))]
pub(crate) use libc::__errno_location as errno;
/// Returns this thread's `errno`. Async-signal-safe, without preconditions.
#[cfg(target_os = "macos")]
pub(crate) use libc::__error as errno;

use libc::c_int;
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;

/// Errors of reading that concern single blocks of a device.
pub(crate) const DEVICE_ERRORS: &[Errno] = &[Errno::IO, Errno::BADMSG];

/// Does nothing.
pub(crate) fn will_need(_file: &File, _range: Range<u64>) {}

/// Does nothing.
pub(crate) fn will_not_need(_file: &File, _range: Range<u64>) {}

/// Does nothing.
pub(crate) fn reads_at_random(_file: &File) {}

/// Returns `false`: it is unknown.
pub(crate) fn is_in_memory(_file: &File, _at: u64) -> bool {
    false
}

/// Returns `None`: Unix has no such limit.
pub(crate) fn most_mappings() -> Option<u64> {
    None
}

/// Returns whether the code of a SIGBUS is that of a fault, which has an address: `BUS_ADRALN`, `BUS_ADRERR` and `BUS_OBJERR`, whose
/// numbers are the same on Linux and macOS.
pub(crate) fn is_fault(code: c_int) -> bool {
    (1..=3).contains(&code)
}

/// Whether the code of a signal that a process sent may be that of a fault. On macOS it is (XNU, `sendsig`): such a signal has an
/// address in no mapping, or in a page that is then read from its file.
pub(crate) const SENT_MAY_LOOK_LIKE_A_FAULT: bool = true;
