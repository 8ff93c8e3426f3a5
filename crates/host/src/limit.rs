//! A limit on memory, and how much of it is in use.

use std::fmt;
use std::path::PathBuf;

/// A limit on memory, and what sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Bytes.
    pub bytes: u64,
    /// The host, or the file of a cgroup.
    pub from: LimitSource,
}

/// What sets a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitSource {
    /// The machine's memory.
    Host,
    /// A cgroup's `memory.max` or `memory.limit_in_bytes`.
    Cgroup(PathBuf),
}

impl fmt::Display for LimitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitSource::Host => f.write_str("host memory"),
            LimitSource::Cgroup(file) => write!(f, "{}", file.display()),
        }
    }
}

/// How much of a limit is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The limit.
    pub limit: Limit,
    /// Bytes in use by all processes under the limit, without the file cache that the system can reclaim. Where the system does
    /// not report those of other processes (not Linux), bytes in use by this process.
    pub used: u64,
}
