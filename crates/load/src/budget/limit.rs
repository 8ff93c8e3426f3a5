//! How much memory this process may have: the smallest of the host's and those of its cgroup and its ancestors.
//!
//! Sources: Linux, `Documentation/admin-guide/cgroup-v2.rst` (`memory.max`) and `cgroup-v1/memory.rst`
//! (`memory.limit_in_bytes`); `proc_pid_cgroup(5)`, `proc_pid_mountinfo(5)`.

use std::fmt;
use std::path::{Path, PathBuf};

/// A limit, and who sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Bytes.
    pub bytes: u64,
    /// The host, or the file of a cgroup.
    pub from: LimitSource,
}

/// Who sets a limit.
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
            LimitSource::Host => f.write_str("the host's memory"),
            LimitSource::Cgroup(file) => write!(f, "{}", file.display()),
        }
    }
}

/// The smallest limit on this process, read below `root` (`/` but in tests); `None` where the system does not tell.
pub(crate) fn limit(root: &Path) -> Option<Limit> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let host = read(&root.join("proc/meminfo")).and_then(|info| kib(&info, "MemTotal:"));
    let host = host.map(|bytes| Limit { bytes, from: LimitSource::Host });
    let cgroups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = read(&root.join("proc/self/mountinfo")).unwrap_or_default();
    let folders = mounts.lines().filter_map(Mount::parse).filter_map(|mount| mount.folders(&cgroups));
    let set = folders.flat_map(|(file, folders)| {
        folders.into_iter().filter_map(move |folder| {
            let path = folder.join(file);
            let bytes = read(&root.join(path.strip_prefix("/").unwrap_or(&path)))?.trim().parse().ok()?;
            Some(Limit { bytes, from: LimitSource::Cgroup(path) })
        })
    });
    // Version 1 says "no limit" by a number near 2⁶³, which is never the smallest.
    host.into_iter().chain(set).min_by_key(|limit| limit.bytes)
}

/// Anonymous memory of this process in bytes; 0 where the system does not tell.
pub(crate) fn anonymous(root: &Path) -> u64 {
    std::fs::read_to_string(root.join("proc/self/status")).ok().and_then(|s| kib(&s, "RssAnon:")).unwrap_or(0)
}

/// The value of a line such as `MemTotal:  1024 kB`, in bytes.
fn kib(lines: &str, name: &str) -> Option<u64> {
    let value = lines.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A mounted hierarchy of cgroups that counts memory.
struct Mount {
    /// Which part of the hierarchy is mounted.
    root: String,
    at: PathBuf,
    version: u8,
}

impl Mount {
    /// `36 35 98:0 /root /mount/point options… - type source super,options`
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

    /// The file that says the limit, and the folders of this process's cgroup and its ancestors, as far as mounted.
    fn folders(&self, cgroups: &str) -> Option<(&'static str, Vec<PathBuf>)> {
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
        // In a container that sees its own cgroup as the root of the mount, the path may begin above what is mounted:
        // then the mount's root is the nearest ancestor there is.
        let inside = Path::new(path).strip_prefix(&self.root).unwrap_or(Path::new(""));
        let inside: PathBuf = inside.components().filter(|c| matches!(c, std::path::Component::Normal(_))).collect();
        let file = if self.version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
        Some((file, inside.ancestors().map(|part| self.at.join(part)).collect()))
    }
}

/// mountinfo writes blanks in paths as octal: `\040`.
fn unescape(path: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(path.to_owned(), |p, (from, to)| p.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let limit = limit(dir.path()).unwrap();
        (limit.bytes, limit.from.to_string())
    }

    const HOST: u64 = 1_000_000 * 1024;

    #[test]
    fn without_cgroups_the_host_counts() {
        assert_eq!(found(&[]), (HOST, "the host's memory".to_owned()));
    }

    #[test]
    fn version_2_and_its_ancestors() {
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
    fn version_1_and_its_no_limit() {
        let base = [("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/c\n0::/\n"), ("proc/self/mountinfo", V1)];
        let none = ("sys/fs/cgroup/memory/docker/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(found(&[&base[..], &[none]].concat()).0, HOST);
        let set = ("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "268435456\n");
        assert_eq!(found(&[&base[..], &[none, set]].concat()).0, 256 << 20);
    }

    #[test]
    fn a_container_mounts_its_own_cgroup_as_the_root() {
        let v1 = "40 31 0:35 /docker/c /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let limit = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "777\n");
        let whole = ("proc/self/cgroup", "4:memory:/docker/c\n");
        assert_eq!(found(&[whole, ("proc/self/mountinfo", v1), limit]).0, 777);
        // A path that lies outside of what is mounted, and one with a namespace's `..`.
        for path in ["4:memory:/elsewhere\n", "4:memory:/../docker/c\n"] {
            assert_eq!(found(&[("proc/self/cgroup", path), ("proc/self/mountinfo", v1), limit]).0, 777, "{path}");
        }
    }

    #[test]
    fn blanks_in_a_mount_point() {
        let mount = "31 23 0:27 / /my\\040groups rw - cgroup2 cgroup2 rw\n";
        let limit = ("my groups/a/memory.max", "99");
        assert_eq!(found(&[("proc/self/cgroup", "0::/a\n"), ("proc/self/mountinfo", mount), limit]).0, 99);
    }

    #[test]
    fn anonymous_memory_of_this_process_is_told() {
        assert!(anonymous(Path::new("/")) > 0);
        assert_eq!(anonymous(tree(&[("proc/self/status", "Name: x\nRssAnon:\t  12 kB\n")]).path()), 12 << 10);
    }
}
