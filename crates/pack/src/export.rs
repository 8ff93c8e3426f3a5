//! A dataset in other people's formats. Everything is written into a folder of its own beside the destination, and put
//! in place when it is complete.
//!
//! | module | its one job |
//! |---|---|
//! | `sample` | a record taken apart: image file, class, other fields |
//! | `places` | names made of keys: unique, and never outside the destination |
//! | `tfrecord`, `webdataset`, `parquet`, `folder` | one format each |

mod folder;
#[cfg(feature = "parquet")]
mod parquet;
mod places;
mod sample;
mod tfrecord;
mod webdataset;

use crate::ordered::{Window, ordered};
use crate::pack::Progress;
use crate::staging::Staging;
use crate::{Error, Reason, Rejection};
use places::Places;
use sample::Sample;
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

/// What became of one shard.
#[derive(Default)]
struct Done {
    records: u64,
    files: u64,
    bytes: u64,
    refused: Vec<Rejection>,
}

/// Exports splits of one dataset into a folder. A record that cannot be exported costs itself, and is reported.
///
/// # Errors
/// [`Error::ExportInTheWay`], [`Error::Locked`], [`Error::Read`] where a shard cannot be opened, [`Error::Io`]. Then
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
        let run = Run::new(split, &folder, options)?;
        let window = Window { pieces: 2 * options.jobs.get(), weight: u64::MAX };
        let shards = split.entry().shards.len();
        ordered(
            options.jobs,
            shards,
            window,
            |_| 0,
            || (),
            |(), shard| run.shard(shard, progress),
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

/// One split on its way.
struct Run<'a> {
    split: &'a Split,
    folder: &'a Path,
    kind: ExportKind,
    places: Places,
    #[cfg(feature = "parquet")]
    schema: Option<parquet::Schema>,
}

impl<'a> Run<'a> {
    fn new(split: &'a Split, folder: &'a Path, options: &ExportOptions) -> Result<Self, Error> {
        let kind = options.kind;
        let places = match kind {
            // A dot ends the key of a WebDataset sample.
            ExportKind::Webdataset | ExportKind::Folder => Places::new(split, kind == ExportKind::Webdataset)?,
            ExportKind::Tfrecord { .. } | ExportKind::Parquet => Places::default(),
        };
        #[cfg(feature = "parquet")]
        let schema = if kind == ExportKind::Parquet { Some(parquet::Schema::new(split, options.jobs)?) } else { None };
        Ok(Run {
            split,
            folder,
            kind,
            places,
            #[cfg(feature = "parquet")]
            schema,
        })
    }

    fn shard(&self, shard: usize, progress: &dyn Progress) -> Result<Done, Error> {
        match self.kind {
            ExportKind::Tfrecord { dali_index } => tfrecord::write(self, shard, dali_index, progress),
            ExportKind::Webdataset => webdataset::write(self, shard, progress),
            ExportKind::Folder => folder::write(self, shard, progress),
            #[cfg(feature = "parquet")]
            ExportKind::Parquet => {
                parquet::write(self, self.schema.as_ref().expect("made for Parquet"), shard, progress)
            }
            #[cfg(not(feature = "parquet"))]
            ExportKind::Parquet => Err(Error::WithoutParquet { path: self.folder.to_owned() }),
        }
    }

    /// Plain name of a shard's file, without `.tfrecord`.
    fn stem(&self, shard: usize) -> String {
        let entry = &self.split.entry().shards[shard];
        let name = Path::new(&entry.file).file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(".tfrecord").unwrap_or(&name).to_owned()
    }

    /// Hands each sample of a shard to `take`; what cannot be taken is refused and counted.
    fn each(
        &self,
        shard: usize,
        progress: &dyn Progress,
        mut take: impl FnMut(&Sample<'_>) -> Result<(), Refused>,
    ) -> Result<Done, Error> {
        let mut done = Done::default();
        let (first, end) = (self.split.starts()[shard], self.split.starts()[shard + 1]);
        // A shard that cannot be opened is no matter of one record.
        self.split.shard(shard)?;
        let mut buffer = vec![];
        for id in first..end {
            let mut key = format!("#{id}");
            let record = self.split.get_with(id, std::mem::take(&mut buffer)).map_err(Reason::from);
            let taken = record.map_err(Refused::Record).and_then(|record| {
                let sample = Sample::new(self.split, id, &record);
                let sample = sample.inspect(|sample| key.clone_from(&sample.key)).map_err(Refused::Record);
                let taken = sample.and_then(|sample| take(&sample));
                progress.done(1, record.data().len() as u64);
                buffer = record.into_buffer();
                taken
            });
            match taken {
                Ok(()) => done.records += 1,
                Err(Refused::Record(reason)) => done.refused.push(Rejection { input: key, reason }),
                Err(Refused::All(error)) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// Why a sample was not taken.
enum Refused {
    /// For a reason of its own.
    Record(Reason),
    /// Nothing further can be taken.
    All(Error),
}
