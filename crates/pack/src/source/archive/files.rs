//! The files of a source of archives, and their kind.

use super::mds::index;
use crate::Error;
use crate::error::fault;
use crate::input::{self, Found, Times};
use crate::source::exists;
use serde::{Deserialize, Serialize};
use shardtool_format::frame;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::source) enum ArchiveKind {
    Tfrecord,
    Webdataset,
    Parquet,
    Mds,
}

/// Files of one kind, in byte order of their paths.
pub(in crate::source) struct ArchiveFiles {
    pub(in crate::source) kind: ArchiveKind,
    pub(in crate::source) files: Vec<ArchiveFile>,
    /// What lies next to them, and is not packed.
    pub(in crate::source) left_out: Vec<String>,
}

/// One archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArchiveFile {
    pub(crate) path: PathBuf,
    /// File name, lossily converted to UTF-8.
    pub(crate) name: String,
    /// Length in bytes at the time of listing.
    pub(crate) size: u64,
    /// What [`Found::version`] was at the time of listing.
    pub(super) version: i64,
    /// The columns of an MDS shard, from its index.
    #[serde(skip)]
    pub(super) mds: Option<Arc<index::Layout>>,
}

impl ArchiveFile {
    /// # Errors
    /// [`Error::Io`].
    pub(in crate::source) fn new(path: &Path) -> Result<Self, Error> {
        let found = Found::at(path).map_err(Error::io("read", path))?;
        Ok(ArchiveFile {
            path: path.to_owned(),
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            size: found.len(),
            version: found.version(Times::Compared),
            mds: None,
        })
    }
}

/// Samples of one shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SampleCount {
    /// Number of samples, rejected ones included.
    pub(crate) images: u64,
    /// Uncompressed bytes of the samples.
    pub(crate) bytes: u64,
}

impl ArchiveFile {
    /// Returns what [`Found::version`] was at the time of listing.
    pub(crate) fn version(&self) -> i64 {
        self.version
    }

    /// Returns what an index says of the columns of an MDS shard, for checksums; `None` for other archives.
    pub(super) fn layout(&self) -> Option<String> {
        self.mds.as_ref().map(|layout| layout.describe())
    }

    /// Returns which of the file's shards a sample at uncompressed byte `at` goes to. Each shard covers `shard_size`
    /// bytes; the last one covers the rest.
    pub(crate) fn shard(&self, at: u64, shard_size: u64) -> usize {
        (at / shard_size).min(self.shards(shard_size) - 1) as usize
    }

    /// Returns the number of shards that the file becomes.
    pub(crate) fn shards(&self, shard_size: u64) -> u64 {
        self.size.div_ceil(shard_size).max(1)
    }
}

impl ArchiveFiles {
    /// Returns whether a folder has a valid MDS `index.json`.
    ///
    /// # Errors
    /// [`Error::Io`], except for a missing file.
    pub(in crate::source) fn is_mds(folder: &Path) -> Result<bool, Error> {
        match exists(&folder.join(index::NAME))?.map(|_| index::index(folder)) {
            Some(Err(error @ Error::Io { .. })) => Err(error),
            read => Ok(read.is_some_and(|read| read.is_ok())),
        }
    }

    /// Lists the shards of a folder's `index.json`.
    ///
    /// # Errors
    /// [`ArchiveError::MdsIndex`](crate::ArchiveError), [`Error::Io`].
    pub(in crate::source) fn mds(folder: &Path) -> Result<Self, Error> {
        let mut files = vec![];
        for (name, layout) in index::index(folder)? {
            files.push(ArchiveFile { mds: Some(Arc::new(layout)), ..ArchiveFile::new(&folder.join(name))? });
        }
        Ok(ArchiveFiles { kind: ArchiveKind::Mds, files, left_out: vec![] })
    }
}

impl ArchiveKind {
    pub(in crate::source) fn name(self) -> &'static str {
        match self {
            ArchiveKind::Tfrecord => "tfrecord",
            ArchiveKind::Webdataset => "webdataset",
            ArchiveKind::Parquet => "parquet",
            ArchiveKind::Mds => "mds",
        }
    }

    /// Detects the kind of a file from its content; `None` if it is not an archive.
    ///
    /// # Errors
    /// Those of [`start_of`].
    pub(in crate::source) fn of(path: &Path) -> Result<Option<Self>, Error> {
        let start = start_of(path, tar_header::END)?;
        if start.starts_with(b"PAR1") {
            return Ok(Some(ArchiveKind::Parquet));
        }
        if let Some(kind) = Self::of_plain(&start) {
            return Ok(Some(kind));
        }
        if super::stream::compression(&start) == super::stream::Compression::None {
            return Ok(None);
        }
        let mut inside = vec![];
        // A truncated stream still gives its first bytes.
        let read = super::stream::open(path).and_then(|stream| stream.take(tar_header::END).read_to_end(&mut inside));
        readable(path, read.map(drop))?;
        Ok(Self::of_plain(&inside))
    }

    fn of_plain(start: &[u8]) -> Option<Self> {
        if start.get(tar_header::MAGIC..).is_some_and(|rest| rest.starts_with(b"ustar")) {
            return Some(ArchiveKind::Webdataset);
        }
        let header = start.first_chunk::<{ frame::HEADER_BYTES }>()?;
        frame::data_length(header, 0).is_ok().then_some(ArchiveKind::Tfrecord)
    }
}

/// Returns the first bytes of a file, at most `length`; none if the file itself cannot be read, which packing it
/// reports.
///
/// # Errors
/// [`Error::Io`] if the system is at fault.
pub(in crate::source) fn start_of(path: &Path, length: u64) -> Result<Vec<u8>, Error> {
    match input::start_of(path, length) {
        Ok(start) => Ok(start),
        Err(error) => readable(path, Err(error)).map(|()| vec![]),
    }
}

fn readable(path: &Path, read: io::Result<()>) -> Result<(), Error> {
    match read {
        Err(error) if fault::of_file(&error).is_some() => Err(Error::io("read", path)(error)),
        _ => Ok(()),
    }
}

/// The tar header's magic (POSIX.1, `pax`).
mod tar_header {
    pub(super) const MAGIC: usize = 257;
    pub(super) const END: u64 = 512;
}
