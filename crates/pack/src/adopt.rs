//! Turns existing TFRecord files into a dataset: an index for each file, and a manifest next to them. No shard is
//! rewritten.

use crate::class_ids::ClassNames;
use crate::commit::{self, Directory, Lock};
use crate::conventions::{Conventions, RecordSummary, payload};
use crate::error::{DestinationError, ShardError};
use crate::frames::{FrameAt, Frames};
use crate::index_writer::{IndexOptions, IndexWriter, Indexed, Payload};
use crate::ordered::ordered;
use crate::place::{Place, StoreFolder};
use crate::progress::{Progress, Step, after};
use crate::source::split_names::NamedSplit;
use crate::source::splits::{Named, group};
use crate::split::manifest_store;
use crate::{Error, Options, Problem, SplitNames};
use shardtool_format::manifest::{Shard, Split};
use shardtool_format::names;
use shardtool_format::{self as format, BoxFormat};
use shardtool_read::glob_files;
use shardtool_store::{Object, is_url};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The claim of a process that adopts files in a store.
const STORE_LOCK: &str = ".index.lock";

/// Options of [`adopt`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AdoptOptions {
    /// Folder to fill with links to the files, indexes and the manifest. Default: the files' own folder.
    pub out: Option<PathBuf>,
    /// The split: of the files that are named for it, or of all if none is named for a split. Default: the split in each
    /// name, else the part before `-NNNNN`, else `train`.
    pub split: Option<String>,
    /// Whether names of files are those of splits. Default: refused where some are and others are not.
    pub split_names: SplitNames,
    /// Which features hold the image and the label.
    pub conventions: Conventions,
    /// Number of threads; each reads one file.
    pub jobs: NonZeroUsize,
    /// Writes JPEG entry points into the index (column `jpeg_entries`), so that a crop is decoded without the rows
    /// above it. Default: yes.
    pub entry_points: bool,
    /// Computes the SHA-256 of each shard for the manifest. Default: no.
    pub sha256: bool,
    /// Files in a store: no other process writes this dataset, so the store need not compare versions. Default: no.
    pub single_writer: bool,
}

impl Default for AdoptOptions {
    fn default() -> Self {
        AdoptOptions {
            out: None,
            split: None,
            split_names: SplitNames::default(),
            conventions: Conventions::default(),
            jobs: crate::options::default_jobs(),
            entry_points: true,
            sha256: false,
            single_writer: false,
        }
    }
}

impl AdoptOptions {
    /// Takes what concerns TFRecord files from the options of a source.
    ///
    /// # Errors
    /// [`Error::Option`] for an option that would change records.
    pub fn of(options: &Options) -> Result<Self, Error> {
        let unused = [
            ("classes", options.classes.is_some()),
            ("map", !options.map.is_empty()),
            ("columns", !(options.columns.is_empty() && options.files.is_empty() && options.frames.is_empty())),
            ("array", !options.arrays.is_empty()),
            ("fps", options.fps.is_some()),
            ("images", options.images.is_some()),
            ("keypoints", options.keypoints.is_some()),
            ("boxes", options.boxes != BoxFormat::Xywh),
            ("first pixel", options.first_pixel != 1),
            ("box unit", options.box_unit.is_some()),
            ("annotated", options.annotated.is_some()),
            ("member key", options.member_key.is_some()),
        ];
        if let Some((option, _)) = unused.into_iter().find(|(_, given)| *given) {
            let expected = "none: TFRecord files are indexed with the records that they have (`pack` writes others)";
            return Err(Error::Option { option, expected });
        }
        let conventions = Conventions { label_offset: options.label_offset, ..Conventions::default() };
        Ok(AdoptOptions {
            out: Some(options.destination.clone()).filter(|out| !out.as_os_str().is_empty()),
            split: options.split.clone(),
            split_names: options.split_names,
            conventions,
            jobs: options.jobs,
            entry_points: options.entry_points,
            sha256: options.sha256,
            single_writer: options.single_writer,
        })
    }

    /// Returns what is written about each shard.
    pub(crate) fn index(&self) -> IndexOptions {
        IndexOptions { entry_points: self.entry_points, sha256: self.sha256 }
    }
}

/// Makes a dataset of TFRecord files. Checks both CRCs of every record. Returns the added splits. If the folder already is
/// this dataset, because an earlier run was killed or ended, completes it and returns the same splits.
///
/// If the first record is not an Example, all records are opaque bytes; otherwise every record must be an Example.
///
/// # Errors
/// [`Error::Shard`], [`Error::Destination`], [`Error::Name`], [`Error::Stopped`], [`Error::Io`].
pub fn adopt(files: &[PathBuf], options: &AdoptOptions, progress: &dyn Progress) -> Result<Vec<Split>, Error> {
    let (folder, splits) = arrange(&matching(files)?, options)?;
    if is_url(&folder) {
        if options.out.is_some() || splits.values().flatten().any(|file| !is_url(file)) {
            return Err(Error::Option { option: "out", expected: "a folder on a disk, with links to files on disks" });
        }
        let (folder, ()) = StoreFolder::begin(&folder, STORE_LOCK, options.single_writer)?;
        let indexes: Vec<_> = splits.values().flatten().map(|file| names::index_path(file)).collect();
        let ours = |name: &str| indexes.iter().any(|index| index.file_name().is_some_and(|index| index == name));
        folder.remove_abandoned(Path::new(names::INDEX_FOLDER), &ours)?;
        return adopt_into(folder, &splits, options, &|_, _, _| Ok(false), progress);
    }
    if let Some(file) = splits.values().flatten().find(|file| is_url(file)) {
        let problem =
            "a folder cannot have links to a store; without --out, the dataset lies in the folder of the files";
        return Err(Error::io("link", file)(std::io::Error::new(ErrorKind::Unsupported, problem)));
    }
    let directory = Directory::create(&folder)?;
    // Two runs would otherwise remove each other's indexes.
    let _lock = Lock::own_dataset(&directory)?;
    let link = if options.out.is_some() { link } else { |_: &_, _: &_, _: &_| Ok(false) };
    commit::remove_abandoned(&directory, names::INDEX_FOLDER, |_| true)?;
    let added = adopt_into(directory.clone(), &splits, options, &link, progress);
    if added.is_err() {
        // Only if it is empty.
        let _ = directory.remove_folder(names::INDEX_FOLDER);
    }
    added
}

/// Returns the files, and those that match globs of URLs, which no shell expands.
fn matching(files: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut all = vec![];
    for file in files {
        let glob = file.to_str().filter(|text| is_url(file) && text.contains(['*', '?', '[']));
        // An object may have such a name.
        let glob = glob.filter(|_| Object::open(file).is_err_and(|error| error.kind() == ErrorKind::NotFound));
        match glob.map(glob_files) {
            None | Some(Err(None)) => all.push(file.clone()),
            Some(Err(Some((path, error)))) => return Err(Error::io("list", &path)(error)),
            Some(Ok(found)) if found.is_empty() => {
                return Err(Error::io("find", file)(ErrorKind::NotFound.into()));
            }
            Some(Ok(found)) => all.extend(found),
        }
    }
    Ok(all)
}

/// Adopts files into a folder that this process has alone.
fn adopt_into<P: Place>(
    place: P,
    splits: &BTreeMap<String, Vec<PathBuf>>,
    options: &AdoptOptions,
    link: Link<'_, P>,
    progress: &dyn Progress,
) -> Result<Vec<Split>, Error> {
    if let Some(manifest) = place.manifest()? {
        manifest_store::refuse_versions(place.path(), &manifest, "indexing files")?;
    }
    let known = already_named(&place, splits)?;
    let mut adoption = Adoption { place, known, options, link, created: vec![] };
    let added = adoption.index_all(splits, progress);
    if added.is_err() {
        adoption.remove_created();
    }
    added
}

/// Makes a link to a shard in a folder, and returns whether it is new.
type Link<'a, P> = &'a dyn Fn(&P, &Path, &str) -> Result<bool, Error>;

/// Creates a symbolic link to a shard, unless it exists.
fn link(directory: &Directory, file: &Path, name: &str) -> Result<bool, Error> {
    let target = file.canonicalize().map_err(Error::io("read", file))?;
    let there = std::fs::read_link(directory.path().join(name)).is_ok_and(|there| there == target);
    if !there {
        directory.link(&target, name)?;
    }
    Ok(!there)
}

/// Returns the splits if the folder's manifest names all of them, with these files, and `None` if it names none of them.
///
/// # Errors
/// [`DestinationError::SplitExists`] and [`DestinationError::InTheWay`] otherwise: their indexes are valid and must stay.
fn already_named<P: Place>(place: &P, splits: &BTreeMap<String, Vec<PathBuf>>) -> Result<Option<Vec<Split>>, Error> {
    let there = manifest_store::read(place)?.map(|manifest| manifest.splits).unwrap_or_default();
    let same = |(name, files): (&String, &Vec<PathBuf>)| {
        let named = there.iter().find(|split| split.name == *name)?;
        let file_names = files.iter().map(|file| file.file_name().unwrap_or_default());
        file_names.eq(named.shards.iter().map(|shard| shard.file.as_str())).then(|| named.clone())
    };
    if let Some(known) = splits.iter().map(same).collect() {
        return Ok(Some(known));
    }
    for there in &there {
        if splits.contains_key(&there.name) {
            return Err(Error::Destination(DestinationError::AlreadyIndexed {
                destination: place.path().to_owned(),
                split: there.name.clone(),
            }));
        }
        let named = |file: &&PathBuf| file.file_name().is_some_and(|f| there.shards.iter().any(|s| *s.file == *f));
        if let Some(file) = splits.values().flatten().find(named) {
            return Err(Error::Destination(DestinationError::InTheWay { path: file.clone() }));
        }
    }
    Ok(None)
}

/// The adoption of files into a folder, whose lock is held.
struct Adoption<'a, P: Place> {
    place: P,
    /// The splits, if the manifest already names them.
    known: Option<Vec<Split>>,
    options: &'a AdoptOptions,
    link: Link<'a, P>,
    /// Files that this run made, and that nothing names yet.
    created: Vec<PathBuf>,
}

impl<P: Place> Adoption<'_, P> {
    /// Writes an index for each file, then the manifest.
    fn index_all(
        &mut self,
        splits: &BTreeMap<String, Vec<PathBuf>>,
        progress: &dyn Progress,
    ) -> Result<Vec<Split>, Error> {
        let options = self.options;
        let files: Vec<_> = splits.values().flatten().collect();
        let payload = payload(&files, &options.conventions.image)?;
        let sizes = files.iter().map(|file| Ok(Frames::open(file)?.bytes())).collect::<Result<Vec<_>, Error>>()?;
        progress.total(files.len() as u64, sizes.iter().sum());
        self.place.create_folder(Path::new(names::INDEX_FOLDER))?;
        let mut summary = RecordSummary::new(&options.conventions);
        let mut shards = vec![];
        let scan = |i: usize| scan(files[i], payload.clone(), options, &mut |bytes| progress.done(0, bytes));
        ordered(options.jobs, files.len(), options.jobs.get(), scan, |i, scanned: Result<ScannedFile, Error>| {
            let ScannedFile { indexed, classes } = scanned?;
            summary.join(&indexed, classes)?;
            self.check_known(splits, i, &indexed.shard)?;
            if (self.link)(&self.place, files[i], &indexed.shard.file)? {
                self.created.push(PathBuf::from(&indexed.shard.file));
            }
            self.put_index(&indexed)?;
            shards.push(indexed.shard);
            progress.done(1, 0);
            after(progress, Step::Index)
        })?;
        let mut shards = shards.into_iter();
        let split = |(name, files): (&String, &Vec<PathBuf>)| Split {
            name: name.clone(),
            shards: shards.by_ref().take(files.len()).collect(),
        };
        let added: Vec<_> = splits.iter().map(split).collect();
        self.place.sync(Path::new(names::INDEX_FOLDER))?;
        self.place.sync(Path::new(""))?;
        if self.known.is_none() {
            let schema = summary.manifest(&payload, &options.conventions);
            for split in &added {
                manifest_store::joined(&self.place, &schema, &split.name, false)?;
            }
            // From here on the manifest may name the files, even if writing it fails.
            self.created.clear();
            manifest_store::add_splits(&self.place, &schema, &added)?;
            after(progress, Step::Manifest)?;
        }
        Ok(added)
    }

    /// Checks that the i-th file is as the manifest says, if it names the file.
    fn check_known(&self, splits: &BTreeMap<String, Vec<PathBuf>>, i: usize, found: &Shard) -> Result<(), Error> {
        let Some(known) = &self.known else { return Ok(()) };
        match known.iter().flat_map(|split| &split.shards).nth(i) {
            Some(listed) if listed == found => Ok(()),
            _ => Err(Error::Destination(DestinationError::AlreadyIndexed {
                destination: self.place.path().to_owned(),
                split: splits
                    .iter()
                    .flat_map(|(name, files)| files.iter().map(move |_| name))
                    .nth(i)
                    .cloned()
                    .unwrap_or_default(),
            })),
        }
    }

    /// Writes the index of a shard, unless it exists.
    fn put_index(&mut self, indexed: &Indexed) -> Result<(), Error> {
        let path = names::index_path(Path::new(&indexed.shard.file));
        match self.place.read(&path)? {
            Some(there) if there == indexed.index => return Ok(()),
            Some(_) => {}
            None => self.created.push(path.clone()),
        }
        self.place.publish(&path, &indexed.index)
    }

    /// Removes the files that this run made. Files that cannot be removed stay:
    /// they are complete, and the next run replaces them.
    fn remove_created(&self) {
        for path in &self.created {
            let _ = self.place.remove(path);
        }
    }
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
    if options.split_names == SplitNames::Lists {
        return Err(Error::Option {
            option: "splits",
            expected: "auto, names or none, since no list names TFRecord files",
        });
    }
    let mut named = vec![];
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(Error::Option { option: "files", expected: "TFRecord files with names in UTF-8" })?;
        names::check_file_name("shard file", name)?;
        if options.out.is_none() && parent(file) != parent(first) {
            return Err(Error::Shard(ShardError::Scattered { first: first.clone(), second: file.clone() }));
        }
        let says = if options.split_names == SplitNames::Ignored { Ok(None) } else { split_in(name) };
        named.push(Named { name, says });
    }
    for (split, taken) in group(&parent(first), &named, options.split.as_deref())? {
        names::check_split_name(&split)?;
        splits.insert(split, taken.into_iter().map(|i| files[i].clone()).collect());
    }
    for files in splits.values_mut() {
        files.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        if let Some(twice) = files.windows(2).find(|w| w[0].file_name() == w[1].file_name()) {
            return Err(Error::Destination(DestinationError::InTheWay { path: twice[1].clone() }));
        }
    }
    Ok((options.out.clone().unwrap_or_else(|| parent(first)), splits))
}

/// Returns what the name of a shard says: the split that it is named for, else the part before its number.
fn split_in(name: &str) -> Result<Option<String>, Vec<String>> {
    let numbered = names::split_of(name);
    let numbered = name.strip_prefix(numbered).is_some_and(|rest| rest.starts_with('-')).then(|| numbered.to_owned());
    match (NamedSplit::of(name), numbered) {
        (NamedSplit::One(split), _) => Ok(Some(split)),
        (_, Some(split)) => Ok(Some(split)),
        (NamedSplit::Several(splits), None) => Err(splits),
        (NamedSplit::None, None) => Ok(None),
    }
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
                    let Conventions { label, label_offset, .. } = &options.conventions;
                    if *label_offset != 0 && example.int64(label).is_some_and(|label| label < *label_offset) {
                        let expected =
                            "at most the smallest label of the records: labels minus it are class ids, from 0";
                        return Err(Error::Option { option: "label offset", expected });
                    }
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
