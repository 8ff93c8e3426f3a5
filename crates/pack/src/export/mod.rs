//! Exports a dataset to another format. Files appear in a folder when all are complete, and in a store one by one.
//!
//! | module | responsibility |
//! |---|---|
//! | `destination` | where the files go: a folder, or a folder of a store |
//! | `run` | the export of one split, shard by shard |
//! | `report` | what is kept of an export's result |
//! | `sample` | the parts of a record: image file, class, other fields |
//! | `file_names` | converts keys to file names: unique, and inside the destination |
//! | `tfrecord`, `webdataset`, `parquet`, `folder` | one format each |

mod destination;
mod file_names;
mod folder;
#[cfg(feature = "parquet")]
mod parquet;
mod report;
mod run;
mod sample;
mod tfrecord;
mod webdataset;

use crate::commit::Request;
use crate::ordered::ordered;
use crate::progress::{self, Progress};
use crate::selection::Selection;
use crate::{Error, Rejection};
use destination::{Destination, Folder, Start};
use file_names::FileNames;
use report::Report;
use run::{Run, ShardExport};
use serde_json::json;
use shardtool_read::Split;
use std::num::NonZeroUsize;
use std::path::Path;

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportKind {
    /// TFRecord files: the shards themselves, as hard links if the file system supports them. Each shard is verified; of
    /// a damaged one the good records are written to a new file.
    Tfrecord {
        /// Writes DALI's text index, `<shard>.idx`: offset and length of each record.
        dali_index: bool,
        /// Exports damaged shards as they are, unless they are symbolic links.
        allow_damage: bool,
    },
    /// A WebDataset tar per shard.
    Webdataset,
    /// A Parquet file per shard, in Hugging Face's image layout.
    Parquet,
    /// Image files in folders of classes.
    Folder,
}

/// Options of [`export`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The format.
    pub kind: ExportKind,
    /// Number of threads; each writes one shard's file. Does not change any written byte.
    pub jobs: NonZeroUsize,
    /// Adds files to a folder that is not empty, replacing those of the same names. In a store, a failed export then removes none.
    pub force: bool,
    /// To a store: no other process writes there, so the store need not compare versions.
    pub single_writer: bool,
    /// Takes only these records. TFRecord files are then new files without damaged records. Default: all.
    pub selection: Option<Selection>,
}

impl ExportOptions {
    /// Returns the defaults for an export to this format.
    pub fn new(kind: ExportKind) -> Self {
        ExportOptions {
            kind,
            jobs: crate::options::default_jobs(),
            force: false,
            single_writer: false,
            selection: None,
        }
    }
}

/// The result of an export.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Exported {
    /// Records written.
    pub records: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Records that the selection does not take.
    pub left_out: u64,
    /// Records that could not be exported, in their order; for [`ExportKind::Tfrecord`] all damage that was found.
    pub refused: Vec<Rejection>,
    /// Damage that was exported because [`ExportKind::Tfrecord`] allows it.
    pub damaged: Vec<Rejection>,
    /// The same export had completed the folder before. No file is written; the other fields are those of that run.
    pub already_complete: bool,
}

/// Exports splits of one dataset into a folder, or a folder of a store. Records that cannot be exported are left out and
/// reported. If the same export has completed the folder, returns its result and writes nothing, except with `force` and in a
/// store.
///
/// # Errors
/// [`Error::Destination`], [`Error::Read`] if a shard cannot be opened, [`Error::Stopped`], [`Error::Io`]. On an error,
/// the destination is as it was before, unless it occurs while files replace others, or a store refuses to remove objects.
pub fn export(
    splits: &[Split],
    destination: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, Error> {
    splits.iter().try_for_each(Split::check_counts)?;
    let output = match Destination::begin::<Report>(destination, request(splits, options), options)? {
        Start::Destination(output) => output,
        Start::Complete(report) => return Ok(report.into()),
    };
    progress.total(splits.iter().map(Split::len).sum(), splits.iter().map(|split| split.entry().bytes()).sum());
    let mut exported = Exported::default();
    for split in splits {
        let folder = match options.kind {
            // Class folders of several splits would be mixed.
            ExportKind::Folder if splits.len() > 1 => output.files().folder(split.name())?,
            _ => output.files().clone(),
        };
        let export = SplitExport::new(split, &folder, options)?;
        let shards = split.entry().shards.len();
        ordered(
            options.jobs,
            shards,
            2 * options.jobs.get(),
            |shard| export.shard(shard, progress),
            |_, done| {
                let ShardExport { records, files, bytes, left_out, refused, damaged } = done?;
                progress::check(progress)?;
                exported.records += records;
                exported.files += files;
                exported.bytes += bytes;
                exported.left_out += left_out;
                exported.refused.extend(refused);
                exported.damaged.extend(damaged);
                Ok::<(), Error>(())
            },
        )?;
    }
    output.publish(Report::from(&exported), progress)?;
    Ok(exported)
}

/// Returns exactly what determines the written bytes; `None` if that is not known in advance.
fn request(splits: &[Split], options: &ExportOptions) -> Option<Request> {
    let ExportOptions { kind, selection, jobs: _, force: _, single_writer: _ } = options;
    let (name, dali_index, allow_damage) = match *kind {
        ExportKind::Tfrecord { dali_index, allow_damage } => ("tfrecord", dali_index, allow_damage),
        ExportKind::Webdataset => ("webdataset", false, false),
        ExportKind::Parquet => ("parquet", false, false),
        ExportKind::Folder => ("folder", false, false),
    };
    let options = [("kind", json!(name)), ("dali_index", json!(dali_index)), ("allow_damage", json!(allow_damage))];
    Request::new("export", splits, options.into_iter().chain(Selection::describe(selection.as_ref())))
}

/// The export of one split to a format.
struct SplitExport<'a> {
    run: Run<'a>,
    kind: ExportKind,
    #[cfg(feature = "parquet")]
    schema: Option<parquet::Schema>,
}

impl<'a> SplitExport<'a> {
    fn new(split: &'a Split, folder: &'a Folder, options: &ExportOptions) -> Result<Self, Error> {
        let kind = options.kind;
        let file_names = match kind {
            // A dot ends the key of a WebDataset sample.
            ExportKind::Webdataset | ExportKind::Folder => FileNames::new(split, kind == ExportKind::Webdataset)?,
            ExportKind::Tfrecord { .. } | ExportKind::Parquet => FileNames::default(),
        };
        #[cfg(feature = "parquet")]
        let schema = if kind == ExportKind::Parquet { Some(parquet::Schema::new(split, options.jobs)?) } else { None };
        Ok(SplitExport {
            run: Run { split, folder, file_names, selection: options.selection.clone() },
            kind,
            #[cfg(feature = "parquet")]
            schema,
        })
    }

    fn shard(&self, shard: usize, progress: &dyn Progress) -> Result<ShardExport, Error> {
        let run = &self.run;
        match self.kind {
            ExportKind::Tfrecord { dali_index, allow_damage } => {
                tfrecord::write(run, shard, (dali_index, allow_damage), progress)
            }
            ExportKind::Webdataset => webdataset::write(run, shard, progress),
            ExportKind::Folder => folder::write(run, shard, progress),
            #[cfg(feature = "parquet")]
            ExportKind::Parquet => {
                parquet::write(run, self.schema.as_ref().expect("made for Parquet"), shard, progress)
            }
            #[cfg(not(feature = "parquet"))]
            ExportKind::Parquet => Err(Error::WithoutParquet { path: run.folder.path().to_owned() }),
        }
    }
}
