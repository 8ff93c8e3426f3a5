//! Limits on the memory of this process, and how much of each is in use: the host's memory, and on Linux the limits of this
//! process's cgroup and its ancestors.

pub use crate::limit::{Limit, LimitSource, Usage};

use crate::system::{self, MemoryLimits};
use std::path::Path;

/// The limits on this process's memory. Paths are found once; numbers are read at each call.
#[derive(Debug, Clone)]
pub struct SystemLimits(MemoryLimits);

impl SystemLimits {
    /// Finds the limits below `root`: `/` except in tests. Only Linux has them in files; other systems ignore `root`.
    pub fn find(root: &Path) -> Self {
        SystemLimits(MemoryLimits::find(root))
    }

    /// Returns the smallest limit; `None` if the system does not report one.
    pub fn smallest(&self) -> Option<Limit> {
        self.0.limits().min_by_key(|limit| limit.bytes)
    }

    /// Returns the first limit of which more than 90 % would be in use after another `bytes` bytes.
    pub fn exceeded_by(&self, bytes: u64) -> Option<Usage> {
        let most = |limit: u64| limit / 10 * 9;
        self.0.usages().find(|usage| usage.used.saturating_add(bytes) > most(usage.limit.bytes))
    }
}

/// Returns the anonymous memory of this process in bytes; 0 if the system does not report it.
pub fn anonymous(root: &Path) -> u64 {
    system::anonymous(root).unwrap_or(0)
}

/// Returns the largest number of bytes that this process had resident so far; `None` if the system does not report it.
pub fn peak_resident() -> Option<u64> {
    system::peak_resident()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_part_of_a_limit_and_more_than_nothing() {
        let limits = SystemLimits::find(Path::new("/"));
        let limit = limits.smallest().expect("every system reports its memory");
        let memory = std::hint::black_box(vec![1u8; 32 << 20]);
        let (anonymous, peak) = (anonymous(Path::new("/")), peak_resident().expect("every system reports it"));
        assert!(anonymous >= memory.len() as u64 && anonymous <= limit.bytes, "{anonymous} of {limit:?}");
        assert!(peak >= memory.len() as u64 && peak <= limit.bytes, "{peak} of {limit:?}");
        let usage = limits.exceeded_by(limit.bytes).expect("nothing has room for as much again");
        assert!(usage.used > 0 && usage.used < usage.limit.bytes, "{usage:?}");
    }
}
