//! The export of one split, shard by shard and sample by sample.

use super::destination::{Folder, NewFile};
use super::file_names::FileNames;
use super::sample::Sample;
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::selection::Selection;
use crate::{Error, Reason, Rejection};
use shardtool_read::{Record, Shard, Split};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of one shard.
#[derive(Default)]
pub(super) struct ShardExport {
    pub(super) records: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) left_out: u64,
    pub(super) refused: Vec<Rejection>,
    /// Damage that is exported as well.
    pub(super) damaged: Vec<Rejection>,
}

/// The export of one split.
pub(super) struct Run<'a> {
    pub(super) split: &'a Split,
    pub(super) folder: &'a Folder,
    pub(super) file_names: FileNames,
    pub(super) selection: Option<Selection>,
}

impl<'a> Run<'a> {
    /// Returns the file name of a shard, without `.tfrecord`.
    pub(super) fn stem(&self, shard: usize) -> String {
        let entry = &self.split.entry().shards[shard];
        let name = Path::new(&entry.file).file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(".tfrecord").unwrap_or(&name).to_owned()
    }

    /// Creates the file of a shard. Returns it with its path, for messages.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn create(&self, name: &Path) -> Result<(NewFile, PathBuf), Error> {
        let path = self.folder.path().join(name);
        let file = self.folder.create(name).map_err(Error::io("create", &path))?;
        Ok((file, path))
    }

    /// Opens a shard.
    ///
    /// # Errors
    /// [`Error::Read`] if it cannot be opened, or is shorter than the manifest says: an error of the whole export.
    pub(super) fn open(&self, shard: usize) -> Result<Arc<Shard>, Error> {
        let opened = self.split.shard(shard)?;
        let (expected, found) = (self.split.entry().shards[shard].bytes, opened.bytes().len());
        if found < expected {
            return Err(shardtool_read::Error::ShardLength { path: opened.path().into(), expected, found }.into());
        }
        Ok(opened)
    }

    /// Calls `take` for each sample of a shard, and collects the samples that cannot be exported.
    pub(super) fn each(
        &self,
        shard: usize,
        progress: &dyn Progress,
        mut take: impl FnMut(&Sample<'_>) -> Result<(), Refusal>,
    ) -> Result<ShardExport, Error> {
        self.each_record(shard, progress, |id, key, record| {
            let sample = Sample::new(self.split, id, record).map_err(Refusal::Record)?;
            key.clone_from(&sample.key);
            take(&sample)
        })
    }

    /// Calls `take` for each record of a shard that can be read, with its id and the key for a refusal, which `take` sets
    /// when it knows it. Collects the records that cannot be exported.
    pub(super) fn each_record(
        &self,
        shard: usize,
        progress: &dyn Progress,
        mut take: impl FnMut(u64, &mut String, &Record) -> Result<(), Refusal>,
    ) -> Result<ShardExport, Error> {
        let mut done = ShardExport::default();
        let (first, end) = (self.split.starts()[shard], self.split.starts()[shard + 1]);
        self.open(shard)?;
        let mut buffer = vec![];
        for id in first..end {
            let mut key = format!("#{id}");
            match self.selection.as_ref().map_or(Ok(true), |selection| selection.takes(self.split, id)) {
                Ok(true) => {}
                Ok(false) => {
                    done.left_out += 1;
                    progress.done(1, 0);
                    continue;
                }
                // It says which records are exported.
                Err(error @ shardtool_read::Error::Condition { .. }) => return Err(error.into()),
                Err(error) => {
                    done.refused.push(Rejection::new(key, error.into())?);
                    continue;
                }
            }
            let record = self.split.get_with(id, std::mem::take(&mut buffer)).map_err(Reason::from);
            let taken = record.map_err(Refusal::Record).and_then(|record| {
                let taken = take(id, &mut key, &record);
                // What was written may be wrong, and cannot be taken back.
                record.check_readable().map_err(|error| Refusal::All(error.into()))?;
                progress.done(1, record.data().len() as u64);
                buffer = record.into_buffer();
                taken
            });
            match taken {
                Ok(()) => done.records += 1,
                Err(Refusal::Record(reason)) => done.refused.push(Rejection::new(key, reason)?),
                Err(Refusal::All(error)) => return Err(error),
            }
        }
        Ok(done)
    }
}
