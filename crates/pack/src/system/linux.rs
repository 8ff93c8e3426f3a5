//! Linux.

use serde::{Deserialize, Serialize};
use std::fs::{read_link, read_to_string};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Makes a file, or the names in a folder, durable.
pub(crate) fn sync(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fsync(file)?)
}

/// Makes a folder and everything below it durable, with everything else on its file system.
pub(crate) fn sync_tree(folder: &OwnedFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(folder)?)
}

/// What identifies a process, in addition to its id: the boot of its machine, its PID namespace (containers have their own), and
/// its start time, since ids are used again. On the same machine, a process that has ended is recognised at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(crate) struct ProcessIdentity {
    /// The id of the machine's boot.
    boot: String,
    /// The PID namespace.
    namespace: String,
    /// The process's start, in clock ticks since the boot.
    start: u64,
}

impl ProcessIdentity {
    /// Returns that of this process.
    pub(crate) fn this_process() -> Self {
        ProcessIdentity {
            boot: read_to_string("/proc/sys/kernel/random/boot_id").map_or(String::new(), |id| id.trim().to_owned()),
            namespace: read_link("/proc/self/ns/pid").map_or(String::new(), |link| link.display().to_string()),
            start: running(std::process::id()).unwrap_or(0),
        }
    }

    /// Returns whether the process is known to have ended: it ran here, and does not any more.
    pub(crate) fn has_ended(&self, pid: u32) -> bool {
        let here = ProcessIdentity::this_process();
        let known = |a: &str, b: &str| !a.is_empty() && a == b;
        let same_machine = known(&self.boot, &here.boot) && known(&self.namespace, &here.namespace);
        same_machine && self.start != 0 && here.start != 0 && running(pid) != Some(self.start)
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
impl ProcessIdentity {
    /// Returns that of a process of this machine that had this process's id and has ended.
    pub(crate) fn of_ended_process() -> Self {
        ProcessIdentity { start: 1, ..Self::this_process() }
    }

    /// Returns that of a process of another machine.
    pub(crate) fn elsewhere() -> Self {
        ProcessIdentity { boot: "another".to_owned(), ..Self::of_ended_process() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_has_ended_when_it_was_killed_even_before_it_is_reaped() {
        let here = ProcessIdentity::this_process();
        assert!(!here.has_ended(std::process::id()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let owner = ProcessIdentity { start: running(pid).unwrap(), ..here };
        assert!(!owner.has_ended(pid));
        assert!(
            ProcessIdentity { start: owner.start + 1, ..owner.clone() }.has_ended(pid),
            "another process has its id"
        );
        child.kill().unwrap();
        while running(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(owner.has_ended(pid));
        for elsewhere in [
            ProcessIdentity { boot: "another".to_owned(), ..owner.clone() },
            ProcessIdentity { namespace: "pid:[1]".to_owned(), ..owner.clone() },
            ProcessIdentity { boot: String::new(), ..owner.clone() },
        ] {
            assert!(!elsewhere.has_ended(pid), "{elsewhere:?} is not known");
        }
        child.wait().unwrap();
        assert!(owner.has_ended(pid));
    }
}
