//! What the operating system says of this machine and this process.
//!
//! | module | contents |
//! |---|---|
//! | `linux` | files below `/proc` and `/sys`, with cgroups |
//! | `portable` | what every Unix has |

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
mod portable;

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
pub(crate) use linux::{MemoryLimits, anonymous, peak_resident};
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
pub(crate) use portable::{MemoryLimits, anonymous, peak_resident};

/// Returns the name of this machine; `None` if it has none.
pub fn hostname() -> Option<String> {
    let system = rustix::system::uname();
    Some(system.nodename().to_string_lossy().into_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn hostname_is_what_the_system_has_in_its_file() {
        let file = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(super::hostname().unwrap_or_default(), file.trim());
    }
}
