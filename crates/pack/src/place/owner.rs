//! Which process writes a split, and whether it has ended.
//!
//! A process is named by the boot of its machine, its PID namespace (containers have their own), its id, and its start time,
//! since ids are used again. On the same machine, a process that has ended is recognised at once.

use serde::{Deserialize, Serialize};
use std::fs::{read_link, read_to_string};

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct Owner {
    /// The machine's name, for messages.
    pub(super) host: String,
    /// The id of the machine's boot.
    pub(super) boot: String,
    /// The PID namespace.
    pub(super) namespace: String,
    pub(super) pid: u32,
    /// The process's start, in clock ticks since the boot.
    pub(super) start: u64,
}

impl Owner {
    /// Returns this process.
    pub(super) fn this_process() -> Self {
        let line = |path: &str| read_to_string(path).map_or(String::new(), |text| text.trim().to_owned());
        let pid = std::process::id();
        Owner {
            host: line("/proc/sys/kernel/hostname"),
            boot: line("/proc/sys/kernel/random/boot_id"),
            namespace: read_link("/proc/self/ns/pid").map_or(String::new(), |link| link.display().to_string()),
            pid,
            start: running(pid).unwrap_or(0),
        }
    }

    /// Returns whether the process is known to have ended: it ran here, and does not any more.
    pub(super) fn has_ended(&self) -> bool {
        let here = Owner::this_process();
        let known = |a: &str, b: &str| !a.is_empty() && a == b;
        let same_machine = known(&self.boot, &here.boot) && known(&self.namespace, &here.namespace);
        same_machine && self.start != 0 && here.start != 0 && running(self.pid) != Some(self.start)
    }
}

/// Returns the start time of a process that runs; `None` if it does not exist, or has ended and is not yet reaped.
fn running(pid: u32) -> Option<u64> {
    // The second field is the program's name, which may contain anything. State and start time are the 3rd and 22nd.
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_has_ended_when_it_was_killed_even_before_it_is_reaped() {
        assert!(!Owner::this_process().has_ended());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let owner = Owner { pid: child.id(), start: running(child.id()).unwrap(), ..Owner::this_process() };
        assert!(!owner.has_ended());
        assert!(Owner { start: owner.start + 1, ..owner.clone() }.has_ended(), "another process has its id");
        child.kill().unwrap();
        while running(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(owner.has_ended());
        for elsewhere in [
            Owner { boot: "another".to_owned(), ..owner.clone() },
            Owner { namespace: "pid:[1]".to_owned(), ..owner.clone() },
            Owner { boot: String::new(), ..owner.clone() },
        ] {
            assert!(!elsewhere.has_ended(), "{elsewhere:?} is not known");
        }
        child.wait().unwrap();
        assert!(owner.has_ended());
    }
}
