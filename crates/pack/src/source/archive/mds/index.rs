//! `index.json`: the shards of a folder, and their columns.

use super::encoding::Encoding;
use crate::error::ArchiveError;
use crate::error::MdsProblem;
use crate::input::open_list;
use crate::source::exists;
use crate::{Error, Reason};
use serde::Deserialize;
use shardtool_format::names;
use std::io::Read;
use std::path::Path;

/// The name of the index.
pub(in crate::source::archive) const NAME: &str = "index.json";

/// The columns of a shard, in the order of their values.
#[derive(Debug)]
pub(in crate::source::archive) struct Layout {
    pub(super) columns: Vec<Column>,
    /// Samples of the shard, if the index says it.
    pub(super) samples: Option<u64>,
    /// Bytes of the shard, decompressed, if the index says it.
    pub(super) bytes: Option<u64>,
}

impl Layout {
    /// Returns what determines how a sample is read, for checksums.
    pub(in crate::source::archive) fn describe(&self) -> String {
        format!("{:?}", self.columns)
    }
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) encoding: Encoding,
    /// Bytes of each value, if all have the same length.
    pub(super) size: Option<u64>,
    /// The encoding as written in the index.
    spelled: String,
}

impl Column {
    /// Returns the reason for a value that does not follow the index.
    pub(super) fn damaged(&self) -> Reason {
        Reason::Encoding { column: self.name.clone(), encoding: self.spelled.clone() }
    }
}

#[derive(Deserialize)]
struct Index {
    shards: Vec<Shard>,
}

#[derive(Deserialize)]
struct Shard {
    format: String,
    column_names: Vec<String>,
    column_encodings: Vec<String>,
    column_sizes: Vec<Option<u64>>,
    compression: Option<String>,
    raw_data: File,
    zip_data: Option<File>,
    samples: Option<u64>,
}

#[derive(Deserialize)]
struct File {
    basename: String,
    bytes: Option<u64>,
}

/// Returns the file names of a folder's shards, and their columns. If a shard exists both compressed and decompressed,
/// returns the decompressed file.
///
/// # Errors
/// [`ArchiveError::MdsIndex`], [`Error::Io`].
pub(in crate::source::archive) fn index(folder: &Path) -> Result<Vec<(String, Layout)>, Error> {
    let path = folder.join(NAME);
    let io = |e| Error::io("read", &path)(e);
    let mut json = vec![];
    open_list(&path).and_then(|mut file| file.read_to_end(&mut json)).map_err(io)?;
    let wrong = |problem| Error::Archive(ArchiveError::MdsIndex { path: path.clone(), problem });
    let index: Index = serde_json::from_slice(&json).map_err(|e| wrong(MdsProblem::Json(e.into())))?;
    let shards = index.shards.into_iter().map(|shard| {
        let raw = exists(&folder.join(&shard.raw_data.basename))?.is_some_and(|meta| meta.is_file());
        shard.checked(raw).map_err(&wrong)
    });
    shards.collect()
}

impl Shard {
    /// `raw` says whether the decompressed file exists.
    fn checked(self, raw: bool) -> Result<(String, Layout), MdsProblem> {
        if self.format != "mds" {
            return Err(MdsProblem::Format(self.format));
        }
        let columns = self.column_names.len();
        if columns != self.column_encodings.len() || columns != self.column_sizes.len() {
            return Err(MdsProblem::Columns);
        }
        let compression = self.compression.as_deref().map_or("", |c| c.split(':').next().unwrap_or(c));
        if !raw && !matches!(compression, "" | "zstd" | "gz") {
            return Err(MdsProblem::Compression(compression.to_owned()));
        }
        let (samples, bytes) = (self.samples, self.raw_data.bytes);
        let file = if raw { self.raw_data } else { self.zip_data.unwrap_or(self.raw_data) };
        names::check_plain_name("basename", &file.basename)?;
        let parsed = self.column_names.into_iter().zip(self.column_encodings).zip(self.column_sizes);
        let columns = parsed.map(|((name, spelled), size)| match Encoding::parse(&spelled) {
            // The library treats a size of 0 as no fixed size.
            Some(encoding) => Ok(Column { name, encoding, size: size.filter(|size| *size > 0), spelled }),
            None => Err(MdsProblem::Encoding { column: name, encoding: spelled }),
        });
        Ok((file.basename, Layout { columns: columns.collect::<Result<_, _>>()?, samples, bytes }))
    }
}
