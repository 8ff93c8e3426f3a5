//! Turns existing TFRecord files into a dataset: an index for each file, and a manifest next to them. No shard is
//! rewritten.

use crate::class_ids::ClassNames;
use crate::commit;
use crate::conventions::{Conventions, RecordSummary, payload};
use crate::error::{DestinationError, ShardError};
use crate::frames::{FrameAt, Frames};
use crate::index_writer::{IndexOptions, IndexWriter, Indexed, Payload};
use crate::ordered::{Window, ordered};
use crate::progress::{Progress, Step, after};
use crate::split::manifest_store;
use crate::{Error, Problem};
use shardtool_format as format;
use shardtool_format::manifest::Split;
use shardtool_format::names;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Options of [`adopt`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AdoptOptions {
    /// Folder to fill with links to the files, indexes and the manifest. Default: the files' own folder.
    pub out: Option<PathBuf>,
    /// The split of all files. Default: the part of each name before `-NNNNN`, otherwise `train`.
    pub split: Option<String>,
    /// Which features hold the image and the label.
    pub conventions: Conventions,
    /// Number of threads; each reads one file.
    pub jobs: NonZeroUsize,
    /// Writes JPEG entry points into the index (column `jpeg_entries`), so that a crop is decoded without the rows
    /// above it. Default: yes.
    pub entry_points: bool,
    /// Computes the SHA-256 of each shard for the manifest. Default: no.
    pub sha256: bool,
}

impl Default for AdoptOptions {
    fn default() -> Self {
        AdoptOptions {
            out: None,
            split: None,
            conventions: Conventions::default(),
            jobs: crate::options::default_jobs(),
            entry_points: true,
            sha256: false,
        }
    }
}

impl AdoptOptions {
    /// Returns what is written about each shard.
    pub(crate) fn index(&self) -> IndexOptions {
        IndexOptions { entry_points: self.entry_points, sha256: self.sha256 }
    }
}

/// Makes a dataset of TFRecord files. Checks both CRCs of every record. Returns the added splits.
///
/// If the first record is not an Example, all records are opaque bytes; otherwise every record must be an Example.
///
/// # Errors
/// [`Error::Shard`], [`Error::Destination`], [`Error::Name`], [`Error::Io`].
pub fn adopt(files: &[PathBuf], options: &AdoptOptions, progress: &dyn Progress) -> Result<Vec<Split>, Error> {
    let (folder, splits) = arrange(files, options)?;
    not_there_yet(&folder, &splits)?;
    let mut written = vec![];
    let added = index_all(&folder, &splits, options, progress, &mut written);
    if added.is_err() {
        written.iter().try_for_each(|path| commit::remove(path))?;
        // Removes the folder only if it is empty.
        let _ = std::fs::remove_dir(folder.join(names::INDEX_FOLDER));
    }
    added
}

/// Refuses files and splits that the folder's manifest already names: their indexes are valid and must stay.
fn not_there_yet(folder: &Path, splits: &BTreeMap<String, Vec<PathBuf>>) -> Result<(), Error> {
    for there in manifest_store::read(folder)?.iter().flat_map(|manifest| &manifest.splits) {
        if splits.contains_key(&there.name) {
            return Err(Error::Destination(DestinationError::SplitExists {
                destination: folder.to_owned(),
                split: there.name.clone(),
            }));
        }
        let named = |file: &&PathBuf| file.file_name().is_some_and(|f| there.shards.iter().any(|s| *s.file == *f));
        if let Some(file) = splits.values().flatten().find(named) {
            return Err(Error::Destination(DestinationError::InTheWay { path: file.clone() }));
        }
    }
    Ok(())
}

/// Writes an index for each file, then the manifest. `written` receives the files created before an error.
fn index_all(
    folder: &Path,
    splits: &BTreeMap<String, Vec<PathBuf>>,
    options: &AdoptOptions,
    progress: &dyn Progress,
    written: &mut Vec<PathBuf>,
) -> Result<Vec<Split>, Error> {
    let files: Vec<_> = splits.values().flatten().collect();
    let payload = payload(&files, &options.conventions.image)?;
    let sizes = files.iter().map(|file| Ok(Frames::open(file)?.bytes())).collect::<Result<Vec<_>, Error>>()?;
    progress.total(files.len() as u64, sizes.iter().sum());
    commit::create_folder(folder)?;
    let index_folder = folder.join(names::INDEX_FOLDER);
    commit::create_folder(&index_folder)?;
    let mut summary = RecordSummary::new(&options.conventions);
    let mut shards = vec![];
    let window = Window { pieces: options.jobs.get(), weight: u64::MAX };
    let scan = |_: &mut (), i: usize| scan(files[i], payload.clone(), options, &mut |bytes| progress.done(0, bytes));
    ordered(
        options.jobs,
        files.len(),
        window,
        |_| 0,
        || (),
        scan,
        |i, scanned: Result<ScannedFile, Error>| {
            let ScannedFile { indexed, classes } = scanned?;
            summary.join(&indexed, classes)?;
            if options.out.is_some() {
                written.extend(link(files[i], &folder.join(&indexed.shard.file))?);
            }
            let index = names::index_path(&folder.join(&indexed.shard.file));
            commit::publish(index.clone(), &indexed.index)?;
            written.push(index);
            shards.push(indexed.shard);
            progress.done(1, 0);
            after(progress, Step::Index)
        },
    )?;
    let schema = summary.manifest(&payload, &options.conventions);
    for split in splits.keys() {
        manifest_store::joined(folder, &schema, split, false)?;
    }
    commit::sync_folder(&index_folder)?;
    commit::sync_folder(folder)?;
    let mut shards = shards.into_iter();
    let mut added = vec![];
    for (name, files) in splits {
        let split = Split { name: name.clone(), shards: shards.by_ref().take(files.len()).collect() };
        manifest_store::add_split(folder, &schema, split.clone())?;
        written.clear();
        after(progress, Step::Manifest)?;
        added.push(split);
    }
    Ok(added)
}

/// Creates a symbolic link to a shard. Returns its path, or `None` if the same link exists.
fn link(file: &Path, path: &Path) -> Result<Option<PathBuf>, Error> {
    let target = file.canonicalize().map_err(Error::io("read", file))?;
    if std::fs::read_link(path).is_ok_and(|there| there == target) {
        return Ok(None);
    }
    std::os::unix::fs::symlink(&target, path).map_err(Error::io("create the link", path))?;
    Ok(Some(path.to_owned()))
}

/// Groups the files by split, in byte order of their names. Returns the folder of the dataset and the groups.
fn arrange(files: &[PathBuf], options: &AdoptOptions) -> Result<(PathBuf, BTreeMap<String, Vec<PathBuf>>), Error> {
    let mut splits = BTreeMap::<String, Vec<PathBuf>>::new();
    let parent = |file: &Path| match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let Some(first) = files.first() else {
        return Err(Error::Option { option: "files", expected: "at least one TFRecord file" });
    };
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(Error::Option { option: "files", expected: "TFRecord files with names in UTF-8" })?;
        names::check_file_name("shard file", name)?;
        if options.out.is_none() && parent(file) != parent(first) {
            return Err(Error::Shard(ShardError::Scattered { first: first.clone(), second: file.clone() }));
        }
        let split = options.split.as_deref().unwrap_or_else(|| names::split_of(name));
        names::check_split_name(split)?;
        splits.entry(split.to_owned()).or_default().push(file.clone());
    }
    for files in splits.values_mut() {
        files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        if let Some(twice) = files.windows(2).find(|w| w[0].file_name() == w[1].file_name()) {
            return Err(Error::Destination(DestinationError::InTheWay { path: twice[1].clone() }));
        }
    }
    Ok((options.out.clone().unwrap_or_else(|| parent(first)), splits))
}

/// The index and class names of one file.
struct ScannedFile {
    indexed: Indexed,
    classes: ClassNames,
}

/// Reads a whole file, checking every record.
fn scan(
    file: &Path,
    payload: Payload,
    options: &AdoptOptions,
    done: &mut dyn FnMut(u64),
) -> Result<ScannedFile, Error> {
    let mut frames = Frames::open(file)?;
    let mut classes = ClassNames::new(&options.conventions.label, options.conventions.label_offset);
    let mut index = IndexWriter::new(&frames.name(), payload, options.index());
    let mut offset = 0;
    while offset < frames.bytes() {
        let length = match frames.at(offset)? {
            FrameAt::Record(data, crc) => {
                if let Some(example) = index.push(data, crc)? {
                    classes.observe(&example);
                }
                data.len() as u64 + format::frame::OVERHEAD_BYTES as u64
            }
            FrameAt::Damaged(Problem::Unreadable(error), _) => return Err(Error::Read(error)),
            FrameAt::Damaged(Problem::Damage(source), _) => {
                if let (0, format::Error::LengthCrc { .. }, Some(kind)) = (offset, &source, frames.compression()?) {
                    return Err(Error::Shard(ShardError::Compressed { path: file.to_owned(), kind }));
                }
                return Err(Error::Shard(ShardError::Record {
                    shard: file.display().to_string(),
                    record: index.records(),
                    source,
                }));
            }
        };
        offset += length;
        done(length);
    }
    Ok(ScannedFile { indexed: index.finish(file)?, classes })
}
