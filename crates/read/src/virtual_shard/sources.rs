//! The files outside of a dataset, sources of virtual shards above all: which of them are opened, and those that are open.

use crate::{Error, Result, open_regular};
use shardtool_format::index::SourceFile;
use shardtool_store::is_url;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Prefixes of source files, in addition to the user's: separated by commas or, if it has a line break, by line breaks.
const VARIABLE: &str = "SHARDTOOL_SOURCES";
/// Source files that stay open. A tar is used again and again; an image is not.
const OPEN: usize = 64;
/// Links that are followed to what does not exist.
const LINKS: u32 = 40;

/// The source files of virtual shards of a dataset: which of them may be opened, and those that are open.
#[derive(Debug)]
pub struct SourceFiles {
    /// The folder of the dataset.
    folder: PathBuf,
    /// What the user allows: folders, and prefixes of URLs.
    allowed: Vec<String>,
    resolved: OnceLock<Vec<PathBuf>>,
    open: Mutex<OpenFiles>,
}

#[derive(Debug, Default)]
struct OpenFiles {
    files: HashMap<PathBuf, Arc<File>>,
    /// In the order in which they were opened.
    order: VecDeque<PathBuf>,
}

impl SourceFiles {
    /// Allows source files in the folder of a dataset, in folders and below URLs of the user, and in those of the environment variable
    /// `SHARDTOOL_SOURCES`.
    pub fn new(folder: &Path, allowed: &[String]) -> Self {
        let variable = std::env::var(VARIABLE).unwrap_or_default();
        let separator = if variable.contains('\n') { '\n' } else { ',' };
        let named = variable.split(separator).filter(|prefix| !prefix.is_empty()).map(str::to_owned);
        let allowed = allowed.iter().cloned().chain(named).collect();
        SourceFiles { folder: folder.to_owned(), allowed, resolved: OnceLock::new(), open: Mutex::default() }
    }

    /// Returns the path of a source file of the folder `source`, or of the dataset's.
    ///
    /// # Errors
    /// [`Error::ForeignSource`] for a name that may leave the folder, and for a URL that the user must allow.
    pub(super) fn path(&self, source: Option<&str>, file: &SourceFile<'_>) -> Result<PathBuf> {
        self.check_name(source, file)?;
        let path = source.map_or(&*self.folder, Path::new).join(file.name);
        if source.is_some() {
            check_readable(&path)?;
        }
        if is_url(&path) && !self.allows_url(&path) {
            return Err(self.refused(path, source));
        }
        Ok(path)
    }

    /// Checks the name of a source file.
    ///
    /// # Errors
    /// [`Error::ForeignSource`] for a name that may leave the folder.
    pub(super) fn check_name(&self, source: Option<&str>, file: &SourceFile<'_>) -> Result<()> {
        if file.has_plain_name() {
            return Ok(());
        }
        // A name may be as long as an index.
        let begin: String = file.name.chars().take(200).collect();
        Err(Error::ForeignSource { path: source.map_or(&*self.folder, Path::new).join(begin), allow: None })
    }

    /// Opens a source file on a disk.
    ///
    /// # Errors
    /// [`Error::ForeignSource`]; [`Error::MissingSource`], also for what is not a regular file; [`Error::SourceLength`];
    /// [`Error::Io`].
    pub(super) fn open(&self, source: Option<&str>, file: &SourceFile<'_>) -> Result<Arc<File>> {
        let path = self.path(source, file)?;
        if let Some(file) = self.lock().files.get(&path) {
            return Ok(file.clone());
        }
        let io = |error| Error::Io { action: "open", path: path.clone(), source: error };
        let resolved = self.resolve(&path, source)?;
        let opened = open_regular(&resolved).map_err(io)?;
        let found = opened.metadata().map_err(io)?.len();
        if found != file.length {
            return Err(Error::SourceLength { path, expected: file.length, found });
        }
        let opened = Arc::new(opened);
        let mut open = self.lock();
        if open.order.len() >= OPEN
            && let Some(oldest) = open.order.pop_front()
        {
            open.files.remove(&oldest);
        }
        if open.files.insert(path.clone(), opened.clone()).is_none() {
            open.order.push_back(path);
        }
        Ok(opened)
    }

    /// Checks that a file on a disk, or an object, may be opened as a source file.
    ///
    /// # Errors
    /// [`Error::ForeignSource`], [`Error::MissingSource`], [`Error::Io`].
    pub fn check(&self, path: &Path) -> Result<()> {
        self.check_below(None, path)
    }

    /// Checks that a file of another dataset may be opened. Sends no request.
    ///
    /// # Errors
    /// As [`SourceFiles::check`].
    pub(crate) fn check_in(&self, dataset: &str, path: &Path) -> Result<()> {
        check_readable(path)?;
        self.check_below(Some(dataset), path)
    }

    fn check_below(&self, source: Option<&str>, path: &Path) -> Result<()> {
        match is_url(path) {
            true if self.allows_url(path) => Ok(()),
            true => Err(self.refused(path.to_owned(), source)),
            false => self.resolve(path, source).map(drop),
        }
    }

    /// Checks that a source file may be opened. Sends no request.
    ///
    /// # Errors
    /// As [`SourceFiles::check`].
    pub(super) fn check_file(&self, source: Option<&str>, file: &SourceFile<'_>) -> Result<()> {
        let path = self.path(source, file)?;
        if is_url(&path) { Ok(()) } else { self.resolve(&path, source).map(drop) }
    }

    /// Returns whether the user allows the folder of a source.
    pub(crate) fn allows_source(&self, source: &str) -> bool {
        let path = Path::new(source);
        match is_url(path) {
            true => self.allows_url(&path.join("x")),
            false => self.allows(&without_links(path, LINKS)),
        }
    }

    /// Returns the error of the folder of a source that the user did not allow.
    pub(crate) fn refused_source(&self, source: &str) -> Error {
        Error::ForeignSource { path: source.into(), allow: Some(source.to_owned()) }
    }

    /// Returns the path of a regular file without links. What the user did not allow is neither opened nor examined.
    fn resolve(&self, path: &Path, source: Option<&str>) -> Result<PathBuf> {
        let io = |error| Error::Io { action: "open", path: path.to_owned(), source: error };
        let missing = |problem| Error::MissingSource { path: path.to_owned(), problem };
        let resolved = without_links(&std::path::absolute(path).map_err(io)?, LINKS);
        if !self.allows(&resolved) {
            return Err(self.refused(resolved, source));
        }
        // The kind is asked before the file is opened: opening a device may do something.
        match std::fs::symlink_metadata(&resolved) {
            Ok(found) if found.is_file() => Ok(resolved),
            Ok(_) => Err(missing("is not a regular file")),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
                    Err(missing("does not exist, or is a link without a target"))
                }
                _ => Err(io(error)),
            },
        }
    }

    /// Returns whether a path without links is in the dataset's folder, or in one that the user allows.
    fn allows(&self, resolved: &Path) -> bool {
        let folders = self.resolved.get_or_init(|| {
            let allowed = self.allowed.iter().map(Path::new).chain([&*self.folder]);
            let local = allowed.filter(|path| !is_url(path));
            let named = local.map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
            // Also one that does not exist: what it had is then missing, and not refused.
            named.filter_map(|path| Some(without_links(&std::path::absolute(path).ok()?, LINKS))).collect()
        });
        folders.iter().any(|folder| resolved.starts_with(folder))
    }

    fn allows_url(&self, path: &Path) -> bool {
        let Some(path) = path.to_str() else { return false };
        let below = |prefix: &str| {
            let rest = path.strip_prefix(prefix.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let own = self.folder.to_str().filter(|_| is_url(&self.folder));
        own.into_iter().chain(self.allowed.iter().map(String::as_str)).any(below)
    }

    fn refused(&self, path: PathBuf, source: Option<&str>) -> Error {
        let folder = || path.parent().unwrap_or(&path).to_string_lossy().into_owned();
        let allow = source.filter(|source| path.starts_with(source)).map_or_else(folder, str::to_owned);
        Error::ForeignSource { path, allow: Some(allow) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenFiles> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that a file of a source can be read: what begins with `file://` is neither a path nor read from a store.
///
/// # Errors
/// [`Error::ForeignSource`].
fn check_readable(path: &Path) -> Result<()> {
    match path.is_absolute() || is_url(path) {
        true => Ok(()),
        false => Err(Error::ForeignSource { path: path.to_owned(), allow: None }),
    }
}

/// Returns an absolute path without links, also of a file that does not exist or cannot be examined.
fn without_links(path: &Path, links: u32) -> PathBuf {
    let (mut path, mut left) = (path.to_owned(), links);
    loop {
        let ancestors =
            path.ancestors().find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)));
        let Some((resolved, rest)) = ancestors else { return path };
        let mut rest = rest.components();
        let Some(next) = rest.next() else { return resolved };
        // A link whose target does not exist.
        let next = resolved.join(next);
        match std::fs::read_link(&next) {
            Ok(target) if left > 0 => {
                left -= 1;
                path = resolved.join(target).join(rest.as_path());
            }
            _ => return next.join(rest.as_path()),
        }
    }
}
