//! Which process writes a split, and whether it has ended.

use crate::system::ProcessIdentity;
use serde::{Deserialize, Serialize};
use shardtool_host::system::hostname;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct Owner {
    /// The machine's name, for messages.
    pub(super) host: String,
    pub(super) pid: u32,
    #[serde(flatten)]
    pub(super) identity: ProcessIdentity,
}

impl Owner {
    /// Returns this process.
    pub(super) fn this_process() -> Self {
        let identity = ProcessIdentity::this_process();
        Owner { host: hostname().unwrap_or_default(), pid: std::process::id(), identity }
    }

    /// Returns whether the process is known to have ended: it ran here, and does not any more.
    pub(super) fn has_ended(&self) -> bool {
        self.identity.has_ended(self.pid)
    }
}
