//! A dataset in other people's formats. Everything is written into a folder of its own beside the destination, and put
//! in place when it is complete.
//!
//! | module | its one job |
//! |---|---|
//! | `sample` | a record taken apart: image file, class, other fields |
//! | `places` | names made of keys: unique, and never outside the destination |
//! | `tfrecord`, `webdataset`, `parquet`, `folder` | one format each |

mod file_names;
mod folder;
#[cfg(feature = "parquet")]
mod parquet;
mod run;
mod sample;
mod tfrecord;
mod webdataset;

use crate::ordered::{Window, ordered};
use crate::progress::Progress;
use crate::staging::Staging;
use crate::{Error, Rejection};
use file_names::FileNames;
use run::{Done, Run};
use shardtool_read::Split;
use std::num::NonZeroUsize;
use std::path::Path;

/// What to export to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportKind {
    /// TFRecord files: the shards themselves, as hard links where the file system can.
    Tfrecord {
        /// Write DALI's text index, `<shard>.idx`: offset and bytes of each record.
        dali_index: bool,
    },
    /// A WebDataset tar for each shard.
    Webdataset,
    /// A Parquet file for each shard, as Hugging Face lays out images.
    Parquet,
    /// Image files in folders of classes.
    Folder,
}

/// How to export.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportOptions {
    /// What to.
    pub kind: ExportKind,
    /// Threads; each writes one shard's file. Never changes a byte of what is written.
    pub jobs: NonZeroUsize,
    /// Put files into a folder that is not empty, in place of those of the same names.
    pub force: bool,
}

impl ExportOptions {
    /// Returns the defaults for an export to this format.
    pub fn new(kind: ExportKind) -> Self {
        ExportOptions { kind, jobs: crate::options::default_jobs(), force: false }
    }
}

/// What an export did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Exported {
    /// Records written.
    pub records: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Records that could not be exported, and why, in their order.
    pub refused: Vec<Rejection>,
}

/// Exports splits of one dataset into a folder. A record that cannot be exported costs itself, and is reported.
///
/// # Errors
/// [`DestinationError::NotEmpty`](crate::DestinationError), [`DestinationError::Locked`](crate::DestinationError), [`Error::Read`] where a shard cannot be opened, [`Error::Io`]. Then
/// nothing is left at the destination that was not there before.
pub fn export(
    splits: &[Split],
    destination: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, Error> {
    let staging = Staging::new(destination, options.force)?;
    progress.total(splits.iter().map(Split::len).sum(), splits.iter().map(|split| split.entry().bytes()).sum());
    let mut exported = Exported::default();
    for split in splits {
        let folder = match options.kind {
            // Class folders of several splits would mix.
            ExportKind::Folder if splits.len() > 1 => staging.folder(split.name())?,
            _ => staging.path().to_owned(),
        };
        let export = SplitExport::new(split, &folder, options)?;
        let window = Window { pieces: 2 * options.jobs.get(), weight: u64::MAX };
        let shards = split.entry().shards.len();
        ordered(
            options.jobs,
            shards,
            window,
            |_| 0,
            || (),
            |(), shard| export.shard(shard, progress),
            |_, done| {
                let Done { records, files, bytes, refused } = done?;
                exported.records += records;
                exported.files += files;
                exported.bytes += bytes;
                exported.refused.extend(refused);
                Ok::<(), Error>(())
            },
        )?;
    }
    staging.publish()?;
    Ok(exported)
}

/// The export of one split to a format.
struct SplitExport<'a> {
    run: Run<'a>,
    kind: ExportKind,
    #[cfg(feature = "parquet")]
    schema: Option<parquet::Schema>,
}

impl<'a> SplitExport<'a> {
    fn new(split: &'a Split, folder: &'a Path, options: &ExportOptions) -> Result<Self, Error> {
        let kind = options.kind;
        let file_names = match kind {
            // A dot ends the key of a WebDataset sample.
            ExportKind::Webdataset | ExportKind::Folder => FileNames::new(split, kind == ExportKind::Webdataset)?,
            ExportKind::Tfrecord { .. } | ExportKind::Parquet => FileNames::default(),
        };
        #[cfg(feature = "parquet")]
        let schema = if kind == ExportKind::Parquet { Some(parquet::Schema::new(split, options.jobs)?) } else { None };
        Ok(SplitExport {
            run: Run { split, folder, file_names },
            kind,
            #[cfg(feature = "parquet")]
            schema,
        })
    }

    fn shard(&self, shard: usize, progress: &dyn Progress) -> Result<Done, Error> {
        let run = &self.run;
        match self.kind {
            ExportKind::Tfrecord { dali_index } => tfrecord::write(run, shard, dali_index, progress),
            ExportKind::Webdataset => webdataset::write(run, shard, progress),
            ExportKind::Folder => folder::write(run, shard, progress),
            #[cfg(feature = "parquet")]
            ExportKind::Parquet => {
                parquet::write(run, self.schema.as_ref().expect("made for Parquet"), shard, progress)
            }
            #[cfg(not(feature = "parquet"))]
            ExportKind::Parquet => Err(Error::WithoutParquet { path: run.folder.to_owned() }),
        }
    }
}
