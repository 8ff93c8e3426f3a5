//! Looks at paths so that a failure is never taken for absence, and opens regular files only, without waiting for the other
//! end of a FIFO.

use rustix::fs::{Mode, OFlags};
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Opens a regular file for reading.
///
/// # Errors
/// `IsADirectory` for a folder and `InvalidInput` for a FIFO, a socket or a device; those of opening.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without `NONBLOCK`, opening a FIFO waits for a writer. It has no effect on reading regular files.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        // The errors of opening a socket, and a device without a driver.
        rustix::io::Errno::NXIO | rustix::io::Errno::NODEV => match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => not_regular(metadata.file_type()),
            _ => error.into(),
        },
        _ => error.into(),
    })?);
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(not_regular(kind)) }
}

/// Returns the error of a path that is not a regular file.
pub fn not_regular(kind: FileType) -> io::Error {
    let what = match kind {
        kind if kind.is_dir() => return io::Error::from(io::ErrorKind::IsADirectory),
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file"))
}

/// Returns the metadata of a file or folder, following links; `None` if there is nothing of that name.
///
/// # Errors
/// Those of the system, also for a link whose target does not exist.
pub fn metadata_if_exists(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_absence(&error) => match std::fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => {
                Err(io::Error::new(error.kind(), "it is a symbolic link without a target"))
            }
            // Created in the meantime.
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Returns the regular files that match a glob, in byte order of their paths. Folders that match are skipped. In a store, only
/// the last component of the URL may have wildcards; they do not match a leading dot.
///
/// # Errors
/// `None` if the pattern is not a glob; otherwise the path and the error of a folder that cannot be listed, and of a match
/// that is neither a file nor a folder or cannot be examined, such as a link without a target.
pub fn glob_files(pattern: &str) -> Result<Vec<PathBuf>, Option<(PathBuf, io::Error)>> {
    let mut files = vec![];
    if shardtool_store::is_url(Path::new(pattern)) {
        let (folder, name) = pattern.rsplit_once('/').ok_or(None)?;
        let pattern = glob::Pattern::new(name).map_err(|_| None)?;
        let folder = Path::new(folder);
        let names = shardtool_store::list(folder).map_err(|error| Some((folder.to_owned(), error)))?;
        let matches = |name: &String| pattern.matches_with(name, NO_LEADING_DOT);
        files.extend(names.into_iter().filter(matches).map(|name| folder.join(name)));
        files.sort();
        return Ok(files);
    }
    for found in glob::glob(&listed(pattern)).map_err(|_| None)? {
        let path = found.map_err(|error| Some((error.path().to_owned(), error.into())))?;
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => files.push(path),
            Ok(metadata) if metadata.is_dir() => {}
            Ok(metadata) => return Err(Some((path, not_regular(metadata.file_type())))),
            // A link without a target is in the listing, but `stat` reports `ENOENT`.
            Err(error) => {
                let error = metadata_if_exists(&path).err().unwrap_or(error);
                return Err(Some((path, error)));
            }
        }
    }
    files.sort();
    Ok(files)
}

const NO_LEADING_DOT: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Rewrites components behind a wildcard so that the glob lists their folder: `*/a` as `*/[a]`. For a plain name it would
/// ask whether the path exists, and take any failure for a no.
fn listed(pattern: &str) -> String {
    const SPECIAL: [char; 4] = ['*', '?', '[', ']'];
    let mut wild = false;
    let component = |component: &str| {
        wild |= component.contains(SPECIAL);
        match component.chars().next() {
            Some(first) if wild && !component.contains(SPECIAL) && !matches!(first, '.' | '!') => {
                format!("[{first}]{}", &component[first.len_utf8()..])
            }
            _ => component.to_owned(),
        }
    };
    pattern.split('/').map(component).collect::<Vec<_>>().join("/")
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_nothing_counts_as_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), [1]).unwrap();
        symlink("file", path("link")).unwrap();
        symlink("nothing", path("dangling")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let is_file = |name: &str| metadata_if_exists(&path(name)).map(|found| found.map(|m| m.is_file()));
        assert_eq!(is_file("file").unwrap(), Some(true));
        assert_eq!(is_file("link").unwrap(), Some(true));
        assert_eq!(is_file("").unwrap(), Some(false));
        assert_eq!(is_file("nothing").unwrap(), None);
        assert_eq!(is_file("file/nothing").unwrap(), None);
        assert!(is_file("dangling").unwrap_err().to_string().contains("without a target"));
        is_file("loop").unwrap_err();
    }

    #[test]
    fn glob_reports_what_it_cannot_examine() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let found = |pattern: &str| glob_files(path(pattern).to_str().unwrap());
        for name in ["a/1.tar", "b/1.tar", "b/2.tar"] {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), [1]).unwrap();
        }
        std::fs::create_dir_all(path("a/folder.tar")).unwrap();
        assert_eq!(found("*/*.tar").unwrap(), ["a/1.tar", "b/1.tar", "b/2.tar"].map(path));
        assert_eq!(found("*/1.tar").unwrap(), ["a/1.tar", "b/1.tar"].map(path));
        assert_eq!(found("*/3.tar").unwrap(), [""; 0].map(path));
        symlink("nothing", path("a/2.tar")).unwrap();
        for pattern in ["*/*.tar", "*/2.tar"] {
            let (at, error) = found(pattern).unwrap_err().unwrap();
            assert_eq!(at, path("a/2.tar"));
            assert!(error.to_string().contains("without a target"), "{error}");
        }
        assert_eq!(found("*/1.tar").unwrap(), ["a/1.tar", "b/1.tar"].map(path));
        rustix::fs::mknodat(rustix::fs::CWD, path("b/4.tar"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(found("b/*").unwrap_err().unwrap().0, path("b/4.tar"));
    }

    #[test]
    fn opens_regular_files_only_and_never_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), [1]).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        assert_eq!(open_regular(&path("file")).unwrap().metadata().unwrap().len(), 1);
        assert_eq!(open_regular(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        for (name, what) in [("fifo", "a FIFO"), ("socket", "a socket")] {
            let error = open_regular(&path(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(what), "{error}");
        }
        let error = open_regular(Path::new("/dev/null")).unwrap_err();
        assert!(error.to_string().contains("a device"), "{error}");
    }
}
