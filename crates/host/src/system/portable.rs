//! Any Unix: the physical memory is the only limit, and this process's memory is all that is known to be in use.

use crate::limit::{Limit, LimitSource, Usage};
use std::iter;
use std::path::Path;

/// The limit on this process's memory: the host's.
#[derive(Debug, Clone)]
pub(crate) struct MemoryLimits;

impl MemoryLimits {
    pub(crate) fn find(_root: &Path) -> Self {
        MemoryLimits
    }

    /// Returns the physical memory.
    pub(crate) fn limits(&self) -> impl Iterator<Item = Limit> + use<> {
        // SAFETY: `sysconf` has no preconditions.
        let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        let bytes = u64::try_from(pages).ok().zip(u64::try_from(page).ok());
        let bytes = bytes.and_then(|(pages, page)| pages.checked_mul(page)).filter(|bytes| *bytes > 0);
        bytes.map(|bytes| Limit { bytes, from: LimitSource::Host }).into_iter()
    }

    /// Returns how much of the physical memory this process uses.
    pub(crate) fn usages(&self) -> impl Iterator<Item = Usage> + use<> {
        iter::zip(self.limits(), anonymous(Path::new("/"))).map(|(limit, used)| Usage { limit, used })
    }
}

/// Returns the bytes that the system counts against this process: its memory without file cache.
#[cfg(target_os = "macos")]
pub(crate) fn anonymous(_root: &Path) -> Option<u64> {
    let process = i32::try_from(std::process::id()).ok()?;
    // SAFETY: all zeros is a valid `rusage_info_v2`, which consists of numbers.
    let mut info: libc::rusage_info_v2 = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is valid for writes of the structure that the flavour names.
    let result = unsafe { libc::proc_pid_rusage(process, libc::RUSAGE_INFO_V2, (&raw mut info).cast()) };
    (result == 0).then_some(info.ri_phys_footprint)
}

/// Returns the largest number of bytes that this process had resident, which is at least its anonymous memory.
#[cfg(not(target_os = "macos"))]
pub(crate) fn anonymous(_root: &Path) -> Option<u64> {
    peak_resident()
}

/// Returns the largest number of bytes that this process had resident.
pub(crate) fn peak_resident() -> Option<u64> {
    // In bytes on macOS, elsewhere in KiB.
    const UNIT: u64 = if cfg!(target_os = "macos") { 1 } else { 1024 };
    // SAFETY: all zeros is a valid `rusage`, which consists of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writes.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    u64::try_from(usage.ru_maxrss).ok().filter(|_| result == 0)?.checked_mul(UNIT)
}
