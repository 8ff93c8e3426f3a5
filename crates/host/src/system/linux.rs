//! Linux: the host's memory, and the limits of this process's cgroup and its ancestors, below a root folder.
//!
//! Sources: Linux, `Documentation/admin-guide/cgroup-v2.rst` (`memory.max`, `memory.current`, `memory.stat`) and
//! `cgroup-v1/memory.rst` (`memory.limit_in_bytes`, `memory.usage_in_bytes`, `memory.stat`); `proc_pid_cgroup(5)`,
//! `proc_pid_mountinfo(5)`, `proc_pid_status(5)`.

use crate::limit::{Limit, LimitSource, Usage};
use std::path::{Path, PathBuf};

/// The limits on this process's memory. Paths are found once; numbers are read at each call, below `root` (`/` except
/// in tests).
#[derive(Debug, Clone)]
pub(crate) struct MemoryLimits {
    root: PathBuf,
    cgroups: Vec<Cgroup>,
}

/// A cgroup folder, as this process sees it.
#[derive(Debug, Clone)]
struct Cgroup {
    folder: PathBuf,
    version: u8,
}

impl MemoryLimits {
    pub(crate) fn find(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
        let cgroups = mounts.lines().filter_map(Mount::parse).flat_map(|mount| mount.cgroups(&groups)).collect();
        MemoryLimits { root: root.to_owned(), cgroups }
    }

    /// Returns all limits that the system reports.
    pub(crate) fn limits(&self) -> impl Iterator<Item = Limit> {
        let host = self.host().map(|(bytes, _)| Limit { bytes, from: LimitSource::Host });
        // Version 1 reports "no limit" as a number near 2⁶³, which is never the smallest.
        host.into_iter().chain(self.cgroups.iter().filter_map(|group| group.limit(&self.root)))
    }

    /// Returns how much of each limit is in use.
    pub(crate) fn usages(&self) -> impl Iterator<Item = Usage> {
        let host = self.host().map(|(bytes, used)| Usage { limit: Limit { bytes, from: LimitSource::Host }, used });
        let usage = |group: &Cgroup| Some(Usage { limit: group.limit(&self.root)?, used: group.used(&self.root)? });
        host.into_iter().chain(self.cgroups.iter().filter_map(usage))
    }

    /// Returns the host's memory and how much of it is in use, in bytes.
    fn host(&self) -> Option<(u64, u64)> {
        let info = std::fs::read_to_string(self.root.join("proc/meminfo")).ok()?;
        let total = kib(&info, "MemTotal:")?;
        Some((total, total.saturating_sub(kib(&info, "MemAvailable:").unwrap_or(total))))
    }
}

impl Cgroup {
    fn read(&self, root: &Path, file: &str) -> Option<String> {
        let path = self.folder.join(file);
        std::fs::read_to_string(root.join(path.strip_prefix("/").unwrap_or(&path))).ok()
    }

    fn limit(&self, root: &Path) -> Option<Limit> {
        let file = if self.version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
        let bytes = self.read(root, file)?.trim().parse().ok()?;
        Some(Limit { bytes, from: LimitSource::Cgroup(self.folder.join(file)) })
    }

    /// Returns the bytes in use, including descendants. Excludes file cache, which the system reclaims before it kills
    /// a process.
    fn used(&self, root: &Path) -> Option<u64> {
        let (file, prefix) =
            if self.version == 2 { ("memory.current", "") } else { ("memory.usage_in_bytes", "total_") };
        let current: u64 = self.read(root, file)?.trim().parse().ok()?;
        let statistics = self.read(root, "memory.stat").unwrap_or_default();
        let value = |name: &str| {
            let line = statistics.lines().find_map(|l| l.strip_prefix(prefix)?.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Some(current.saturating_sub(value("active_file")).saturating_sub(value("inactive_file")))
    }
}

/// Returns the anonymous memory of this process in bytes, as `root` has it.
pub(crate) fn anonymous(root: &Path) -> Option<u64> {
    status(root, "RssAnon:")
}

/// Returns the largest number of bytes that this process had resident.
pub(crate) fn peak_resident() -> Option<u64> {
    status(Path::new("/"), "VmHWM:")
}

fn status(root: &Path, name: &str) -> Option<u64> {
    kib(&std::fs::read_to_string(root.join("proc/self/status")).ok()?, name)
}

/// Returns the value of a line such as `MemTotal:  1024 kB`, in bytes.
fn kib(lines: &str, name: &str) -> Option<u64> {
    let value = lines.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A mounted hierarchy of cgroups that counts memory.
struct Mount {
    /// The part of the hierarchy that is mounted.
    root: String,
    at: PathBuf,
    version: u8,
}

impl Mount {
    /// Parses a line of mountinfo: `36 35 98:0 /root /mount/point options… - type source super,options`.
    fn parse(line: &str) -> Option<Mount> {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (unescape(fields.next()?), unescape(fields.next()?));
        let mut system = system.split(' ');
        let kind = system.next()?;
        let options = system.nth(1).unwrap_or_default();
        let version = match kind {
            "cgroup2" => 2,
            "cgroup" if options.split(',').any(|o| o == "memory") => 1,
            _ => return None,
        };
        Some(Mount { root, at: at.into(), version })
    }

    /// Returns this process's cgroup and its mounted ancestors.
    fn cgroups(&self, cgroups: &str) -> Vec<Cgroup> {
        let folder = |folder| Cgroup { folder, version: self.version };
        self.folders(cgroups).unwrap_or_default().into_iter().map(folder).collect()
    }

    fn folders(&self, cgroups: &str) -> Option<Vec<PathBuf>> {
        // `hierarchy:controllers:path`; version 2 is hierarchy 0 without controllers.
        let path = cgroups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_hierarchy, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = match self.version {
                2 => controllers.is_empty(),
                _ => controllers.split(',').any(|c| c == "memory"),
            };
            ours.then_some(path)
        })?;
        // If a container mounts its own cgroup as the root, the path may lie outside the mount. The mount's root is
        // then the nearest visible ancestor.
        let inside = Path::new(path).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let inside: PathBuf = inside.components().filter(|c| matches!(c, std::path::Component::Normal(_))).collect();
        Some(inside.ancestors().map(|part| self.at.join(part)).collect())
    }
}

/// Decodes a path of mountinfo, where white space and backslashes are octal escapes such as `\040`.
fn unescape(path: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(path.to_owned(), |p, (from, to)| p.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_memory::SystemLimits;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       1000000 kB\n");
    const V2: &str = "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "40 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:36 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";

    fn found(files: &[(&str, &str)]) -> (u64, String) {
        let dir = tree(&[files, &[MEMINFO]].concat());
        let limit = SystemLimits::find(dir.path()).smallest().unwrap();
        (limit.bytes, limit.from.to_string())
    }

    const HOST: u64 = 1_000_000 * 1024;

    #[test]
    fn host_memory_is_the_limit_without_cgroups() {
        assert_eq!(found(&[]), (HOST, "host memory".to_owned()));
    }

    #[test]
    fn version_2_includes_ancestors() {
        let base = [("proc/self/cgroup", "0::/a/b\n"), ("proc/self/mountinfo", V2)];
        let own = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(found(&[&base[..], &[own]].concat()).0, HOST);
        let parent = ("sys/fs/cgroup/a/memory.max", "4096\n");
        let expected = (4096, "/sys/fs/cgroup/a/memory.max".to_owned());
        assert_eq!(found(&[&base[..], &[own, parent]].concat()), expected);
        let smaller = ("sys/fs/cgroup/a/b/memory.max", "1024\n");
        assert_eq!(found(&[&base[..], &[smaller, parent]].concat()).0, 1024);
        let above = ("sys/fs/cgroup/memory.max", "512\n");
        assert_eq!(found(&[&base[..], &[smaller, parent, above]].concat()).0, 512);
    }

    #[test]
    fn version_1_ignores_the_value_that_means_no_limit() {
        let base = [("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/c\n0::/\n"), ("proc/self/mountinfo", V1)];
        let unlimited = ("sys/fs/cgroup/memory/docker/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(found(&[&base[..], &[unlimited]].concat()).0, HOST);
        let set = ("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "268435456\n");
        assert_eq!(found(&[&base[..], &[unlimited, set]].concat()).0, 256 << 20);
    }

    #[test]
    fn finds_the_limit_of_a_cgroup_mounted_as_the_root() {
        let v1 = "40 31 0:35 /docker/c /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let limit = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "777\n");
        let whole = ("proc/self/cgroup", "4:memory:/docker/c\n");
        assert_eq!(found(&[whole, ("proc/self/mountinfo", v1), limit]).0, 777);
        // A path outside the mount, and one that leaves the cgroup namespace with `..`.
        for path in ["4:memory:/elsewhere\n", "4:memory:/../docker/c\n"] {
            assert_eq!(found(&[("proc/self/cgroup", path), ("proc/self/mountinfo", v1), limit]).0, 777, "{path}");
        }
    }

    #[test]
    fn reads_mount_points_with_spaces() {
        let mount = "31 23 0:27 / /my\\040groups rw - cgroup2 cgroup2 rw\n";
        let limit = ("my groups/a/memory.max", "99");
        assert_eq!(found(&[("proc/self/cgroup", "0::/a\n"), ("proc/self/mountinfo", mount), limit]).0, 99);
    }

    fn exceeded(files: &[(&str, &str)], bytes: u64) -> Option<(u64, u64, String)> {
        let usage = SystemLimits::find(tree(files).path()).exceeded_by(bytes)?;
        Some((usage.used, usage.limit.bytes, usage.limit.from.to_string()))
    }

    #[test]
    fn growth_stops_at_90_percent_of_the_host() {
        let info = ("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n");
        assert_eq!(exceeded(&[info], 299 << 10), None);
        assert_eq!(exceeded(&[info], 301 << 10), Some((600 << 10, 1000 << 10, "host memory".to_owned())));
    }

    #[test]
    fn growth_counts_the_usage_of_an_ancestor_without_file_cache() {
        let host = ("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 1000000 kB\n");
        let base = [host, ("proc/self/cgroup", "0::/a/b\n"), ("proc/self/mountinfo", V2)];
        let own = [("sys/fs/cgroup/a/b/memory.max", "max\n"), ("sys/fs/cgroup/a/b/memory.current", "10\n")];
        let parent = [
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/memory.current", "850\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 350\nfile 500\ninactive_file 300\nactive_file 200\nshmem 0\n"),
        ];
        let files = [&base[..], &own, &parent].concat();
        assert_eq!(exceeded(&files, 550), None);
        assert_eq!(exceeded(&files, 551), Some((350, 1000, "/sys/fs/cgroup/a/memory.max".to_owned())));
    }

    #[test]
    fn growth_reads_version_1_totals_of_the_hierarchy() {
        let host = ("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 1000000 kB\n");
        let files = [
            host,
            ("proc/self/cgroup", "4:memory:/docker/c\n"),
            ("proc/self/mountinfo", V1),
            ("sys/fs/cgroup/memory/docker/c/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/docker/c/memory.usage_in_bytes", "800\n"),
            (
                "sys/fs/cgroup/memory/docker/c/memory.stat",
                "active_file 1\ninactive_file 1\ntotal_inactive_file 100\ntotal_active_file 50\n",
            ),
        ];
        assert_eq!(exceeded(&files, 250), None);
        assert_eq!(exceeded(&files, 251).map(|e| e.0), Some(650));
    }

    #[test]
    fn reads_the_anonymous_memory_of_this_process() {
        assert!(anonymous(Path::new("/")) > Some(0));
        assert_eq!(anonymous(tree(&[("proc/self/status", "Name: x\nRssAnon:\t  12 kB\n")]).path()), Some(12 << 10));
    }
}
