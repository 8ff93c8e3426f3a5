//! What a dataset is opened with, and where it lies.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a dataset is opened with, also in another process.
#[derive(Clone)]
pub(crate) struct Opening {
    pub(crate) path: PathBuf,
    /// Folder and size in bytes.
    pub(crate) cache: Option<(PathBuf, u64)>,
    /// The version that is open, so that a process that opens it again has the same; `None` for bare files.
    pub(crate) version: Option<String>,
    /// Where source files of virtual shards may lie.
    pub(crate) sources: Vec<String>,
}

impl Opening {
    /// The arguments of `Dataset` and, after a name, of `_open_split`.
    pub(crate) fn arguments(&self) -> OpeningArguments {
        let (folder, size) = self.cache.clone().unzip();
        // As text: `pathlib` removes a slash of a URL.
        (self.path.clone().into_os_string(), folder, size, self.version.clone(), self.sources.clone())
    }
}

/// Where a dataset or shard lies: a path is a `pathlib.Path` in Python, and a URL, of whose slashes that keeps one, a `str`.
#[derive(IntoPyObject)]
pub(crate) enum Location {
    Path(PathBuf),
    Url(OsString),
}

impl Location {
    pub(crate) fn new(path: &Path) -> Self {
        match shardtool_store::is_url(path) {
            true => Location::Url(path.as_os_str().to_owned()),
            false => Location::Path(path.to_owned()),
        }
    }
}

/// A version, as users name it.
#[derive(FromPyObject)]
pub(crate) enum Version {
    Number(u64),
    Name(String),
}

impl Version {
    pub(crate) fn text(self) -> String {
        match self {
            Version::Number(number) => number.to_string(),
            Version::Name(name) => name,
        }
    }
}

/// The argument `source`: one folder or URL, or several.
#[derive(FromPyObject)]
pub(crate) enum Sources {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl Sources {
    pub(crate) fn texts(self) -> Vec<String> {
        let all = match self {
            Sources::One(source) => vec![source],
            Sources::Several(sources) => sources,
        };
        all.into_iter().map(|source| source.to_string_lossy().into_owned()).collect()
    }
}

/// The arguments that open a dataset again.
pub(crate) type OpeningArguments = (OsString, Option<PathBuf>, Option<u64>, Option<String>, Vec<String>);
