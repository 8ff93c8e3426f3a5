//! Options of a dataset.

use crate::access::Access;
use shardtool_format::frame::Check;
use shardtool_store::cache::Cache;

/// Options of [`Dataset::open_with`](crate::Dataset::open_with).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// How files are read. The default maps files on local file systems; [`Access`] states its contract.
    pub access: Access,
    /// Whether the CRC of a record's data is checked on each read. The default checks it. With a cache, it is always checked.
    pub check: Check,
    /// Keeps what is read from an object store on a local disk. Without effect on local files.
    pub cache: Option<Cache>,
    /// The version to open: its number, a tag, or the checksum of its manifest. Default: the newest, or the one that the path names
    /// (`PATH@VERSION`).
    pub version: Option<String>,
    /// Where source files of virtual shards may lie, besides the dataset's own folder: folders, and prefixes of URLs. The environment
    /// variable `SHARDTOOL_SOURCES` names more, separated by commas or, if it has a line break, by line breaks.
    pub sources: Vec<String>,
}

impl Options {
    /// Sets how files are read.
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets whether the CRC of a record's data is checked.
    pub fn with_check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Sets the version to open.
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets where source files of virtual shards may lie.
    pub fn with_sources(mut self, sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sources = sources.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the cache.
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }
}
