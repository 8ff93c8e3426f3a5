//! Sources: makes a [`Listing`] of inputs from a folder of class folders, a flat folder or a list. Opens only lists and
//! folders; sizes and times come from one `stat` per entry. Files with many samples each are in [`archive`].

mod annotated;
pub(crate) mod archive;
mod archive_choice;
pub(crate) mod clips;
mod coco;
mod coco_annotation;
mod coco_captions;
mod coco_keypoints;
mod coco_members;
mod coco_panoptic;
pub(crate) mod coordinates;
mod detect;
mod doubtful_files;
mod first_file;
mod folder;
mod image_lists;
mod infer;
mod json_text;
pub(crate) mod keypoints;
pub(crate) mod known_types;
mod layouts;
mod list;
mod listing;
pub(crate) mod nested;
pub(crate) mod objects;
mod pairs;
mod split_marks;
pub(crate) mod split_names;
pub(crate) mod splits;
mod unknown_file;
mod unused_options;
mod voc;
mod yaml;
mod yolo;

use crate::class_ids::ClassIds;
use crate::error::{DestinationError, SourceError};
use crate::input::Found;
use crate::place::parse_manifest;
use crate::progress::Progress;
use crate::{Error, Options, SourceKind};
use archive::Archives;
use archive::files::ArchiveKind;
pub(crate) use coco::OBJECT_ID;
pub(crate) use coco_panoptic::PANOPTIC;
use detect::DetectedSource;
pub(crate) use list::list_table;
pub(crate) use listing::{Entry, Listing};
use shardtool_format::manifest::Manifest;
use shardtool_format::{frame, names};
use shardtool_read::metadata_if_exists;
use shardtool_store::{is_url, local_path};
use split_marks::NamedBy;
use split_names::NamedSplit;
use splits::{DividedSource, SplitSource};
use std::io;
use std::path::{Path, PathBuf};

/// The inputs of a pack.
pub(crate) enum Source {
    /// One image or row per entry.
    Files(Listing),
    /// Many samples per file.
    Archives(Box<Archives>),
}

/// A source, or the part of it that is one split.
pub(crate) struct NamedSource {
    pub(crate) split: String,
    pub(crate) source: Source,
    /// The folder of the split, or the names of its archives.
    pub(crate) inputs: Vec<String>,
    /// What is packed into no split.
    pub(crate) left_out: Vec<String>,
}

/// Lists the source of `options`: each of its splits, with class ids in common. Archives are read once, without their images.
///
/// # Errors
/// [`SourceError::NotFound`], [`SourceError::Empty`], [`SourceError::UnknownFormat`], [`SourceError::SplitNames`], those of
/// lists and archives, [`Error::Stopped`], and [`Error::Io`].
pub(crate) fn list_splits(options: &Options, progress: &dyn Progress) -> Result<Vec<NamedSource>, Error> {
    let source = &*local_path(&options.source);
    let dataset = if options.virtual_source.is_some() { None } else { dataset(source)? };
    let given = options.classes.as_deref().map(ClassIds::read).transpose()?;
    let DividedSource { splits, folders, left_out } = divide(source, options)?;
    if exists(source)?.is_some_and(|metadata| metadata.is_dir()) {
        inside(&options.destination, source, options.virtual_source.is_some())?;
    }
    for split in &splits {
        unused_options::check(&split.found, options)?;
    }
    let mut archives = vec![];
    let mut named = vec![];
    // Class ids are those of all folders, also of those that are not packed now.
    let classes = match &given {
        None if folders.len() > 1 => Some(classes_of(&folders, &splits)?),
        _ => given.clone(),
    };
    let (mut voc, mut root) = (vec![], PathBuf::new());
    let mut yolo: Option<(std::rc::Rc<yolo::Config>, Vec<_>)> = None;
    for SplitSource { split, path, found } in splits {
        let mut named_by = NamedBy::Nothing;
        let listing = match found {
            DetectedSource::Yolo(config, images) => {
                yolo.get_or_insert_with(|| (config, vec![])).1.push((split, images));
                continue;
            }
            DetectedSource::Voc(images) => {
                voc.push((split, images));
                root = path;
                continue;
            }
            DetectedSource::Archives(files) => {
                archives.push((split, files));
                continue;
            }
            DetectedSource::Coco => coco::list(&path, given.as_ref(), options)?,
            DetectedSource::Pairs(paired, images) => pairs::list(&paired, (&split, images), given.clone(), options)?,
            DetectedSource::Clips => clips::list(&path, classes.clone(), options)?,
            DetectedSource::Folder => {
                let listing = folder::list(&path, classes.clone(), options)?;
                // The top folders are classes.
                named_by = if listing.schema.labelled { NamedBy::Nothing } else { NamedBy::Path };
                listing
            }
            DetectedSource::List => {
                // A list that is named for a split says so itself.
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                named_by = match NamedSplit::of(&stem) {
                    NamedSplit::None => NamedBy::Path,
                    _ => NamedBy::Nothing,
                };
                list::list(&path, classes.clone(), options)?
            }
        };
        split_marks::check(&listing, named_by, &split, options)?;
        unused_options::check_classes(&listing, options)?;
        named.push(of_files(split, path, listing, &left_out)?);
    }
    if !voc.is_empty() {
        for (split, listing) in voc::list(&root, voc, given.clone(), options)? {
            named.push(of_files(split, root.clone(), listing, &left_out)?);
        }
    }
    if let Some((config, splits)) = yolo {
        for (split, listing) in yolo::list(&config, splits, given.clone(), options)? {
            named.push(of_files(split, config.base.clone(), listing, &left_out)?);
        }
    }
    if !archives.is_empty() && !named.is_empty() {
        return Err(differing(source, "some of the splits are archives, and others are not"));
    }
    // A dataset knows the names of all its classes; its records know those that occur.
    let points = dataset.as_ref().and_then(|dataset| dataset.keypoints.clone());
    let known = dataset.filter(|dataset| !dataset.classes.is_empty() && dataset.label_offset == 0);
    let given = given.or(known.map(|dataset| ClassIds::in_order(dataset.classes, Some(source.join(names::MANIFEST)))));
    for (split, mut archives) in Archives::of_splits(archives, given, options, progress)? {
        archives.schema.keypoints.known = points.clone().filter(|_| keypoints::has(&archives.schema.columns));
        let inputs = archives.files.iter().map(|file| file.file.name.clone()).collect();
        let source = Source::Archives(Box::new(archives));
        named.push(NamedSource { split, source, inputs, left_out: left_out.clone() });
    }
    let labelled = |named: &NamedSource| match &named.source {
        Source::Files(listing) => listing.schema.labelled,
        Source::Archives(archives) => archives.schema.labelled,
    };
    if named.windows(2).any(|pair| labelled(&pair[0]) != labelled(&pair[1])) {
        return Err(differing(source, "some of the splits have class folders, and others have none"));
    }
    Ok(named)
}

/// Divides the source into splits: by the lists of a layout of annotated images, or by names.
///
/// # Errors
/// [`SourceError::Annotations`], and those of [`splits::divide`].
fn divide(source: &Path, options: &Options) -> Result<DividedSource, Error> {
    match (voc::find(source, options.from)?, yolo::find(source, options.from)?) {
        (Some(root), Some(config)) => {
            let problem = format!(
                "{} is Pascal VOC, and {} YOLO: which are the data? Name one of them with --from voc or --from yolo",
                root.display(),
                config.base.display()
            );
            Err(annotated::wrong(source, problem))
        }
        (Some(root), None) => voc::divide(source, &root, options),
        (None, Some(config)) => yolo::divide(source, config, options),
        (None, None) => match pairs::find(source, options)? {
            Some(pairs) => pairs::divide(source, pairs, options),
            None => splits::divide(source, options),
        },
    }
}

/// Returns a split of files.
///
/// # Errors
/// [`SourceError::Empty`].
fn of_files(split: String, path: PathBuf, listing: Listing, left_out: &[String]) -> Result<NamedSource, Error> {
    if listing.entries.is_empty() {
        let rejected = listing.rejected.into_iter().next().map(Box::new);
        return Err(Error::Source(SourceError::Empty { path, rejected }));
    }
    let mut columns: Vec<&str> = listing.schema.columns.iter().map(|(name, _)| name.as_str()).collect();
    columns.sort_unstable();
    if let Some(twice) = columns.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!("two members become the feature `{}`; rename one of them", twice[0]);
        return Err(Error::Source(SourceError::Annotations { path, problem }));
    }
    let left_out = [left_out, &listing.left_out].concat();
    let inputs = vec![path.to_string_lossy().into_owned()];
    Ok(NamedSource { split, source: Source::Files(listing), inputs, left_out })
}

/// Returns the kind of a source.
///
/// # Errors
/// Those of [`splits::divide`].
pub(crate) fn kind(source: &Path) -> Result<SourceKind, Error> {
    if !is_url(source) && source.is_dir() && detect::is_empty(source) {
        return Err(Error::Source(SourceError::Empty { path: source.to_owned(), rejected: None }));
    }
    let options = Options::new(source, "");
    let divided = divide(source, &options)?;
    let found = divided.splits.first().map(|split| &split.found);
    Ok(match found {
        Some(DetectedSource::Archives(files)) => match files.kind {
            ArchiveKind::Tfrecord => SourceKind::Tfrecord,
            ArchiveKind::Webdataset => SourceKind::Webdataset,
            ArchiveKind::Parquet => SourceKind::Parquet,
            ArchiveKind::Mds => SourceKind::Mds,
        },
        Some(DetectedSource::Clips) => SourceKind::Clips,
        Some(DetectedSource::List) => SourceKind::List,
        Some(DetectedSource::Coco) => SourceKind::Coco,
        Some(DetectedSource::Voc(_)) => SourceKind::Voc,
        Some(DetectedSource::Yolo(..)) => SourceKind::Yolo,
        Some(DetectedSource::Pairs(..)) => SourceKind::Pairs,
        Some(DetectedSource::Folder) | None => SourceKind::Folder,
    })
}

/// Returns the files of a source of TFRecord files; `None` for another one.
///
/// # Errors
/// Those of [`detect::detect`].
pub(crate) fn tfrecord_files(source: &Path, from: Option<SourceKind>) -> Result<Option<Vec<PathBuf>>, Error> {
    if voc::find(source, from)?.is_some() || yolo::find(source, from)?.is_some() {
        return Ok(None);
    }
    let options = Options { from, ..Options::new(source, "") };
    if pairs::find(source, &options)?.is_some() {
        return Ok(None);
    }
    Ok(match detect::detect(source, from)? {
        DetectedSource::Archives(archives) if archives.kind == ArchiveKind::Tfrecord => {
            Some(archives.files.into_iter().map(|file| file.path).collect())
        }
        _ => None,
    })
}

/// Returns whether a file begins with the length of a TFRecord frame.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn begins_with_frame(path: &Path) -> Result<bool, Error> {
    Ok(frame::begins(&archive::files::start_of(path, frame::HEADER_BYTES as u64)?))
}

/// Returns the names of the splits of the source, without listing it.
///
/// # Errors
/// As [`list_splits`].
pub(crate) fn names_of_splits(options: &Options) -> Result<Vec<String>, Error> {
    let divided = divide(&local_path(&options.source), options)?;
    Ok(divided.splits.into_iter().map(|split| split.split).collect())
}

fn differing(source: &Path, problem: &str) -> Error {
    Error::Source(SourceError::Splits { path: source.to_owned(), problem: problem.to_owned() })
}

/// Returns the ids of the classes of several folders of class folders; of clips, those of folders of clips.
fn classes_of(folders: &[PathBuf], splits: &[SplitSource]) -> Result<ClassIds, Error> {
    let clips = splits.iter().any(|split| matches!(split.found, DetectedSource::Clips));
    let mut names = vec![];
    for folder in folders {
        for name in detect::subfolders(folder)? {
            if !clips || detect::content(&folder.join(&name))?.folders {
                names.push(name);
            }
        }
    }
    ClassIds::sorted(names)
}

/// Returns what a path or URL names; `None` if there is nothing of that name.
///
/// # Errors
/// [`Error::Io`], also for a link without a target.
fn exists(path: &Path) -> Result<Option<Found>, Error> {
    let found = match is_url(path) {
        false => metadata_if_exists(path).map(|meta| meta.map(Found::Local)),
        true => match Found::at(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        },
    };
    found.map_err(Error::io("read", path))
}

/// Refuses a destination inside the source folder: its shards would be inputs of the next run. A dataset that describes the source may
/// lie in its folder itself, where its files are known, and in hidden folders.
fn inside(destination: &Path, source: &Path, describes: bool) -> Result<(), Error> {
    let source_full = source.canonicalize().map_err(Error::io("read", source))?;
    let mut existing = destination;
    let full = loop {
        let here = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
        match (here.canonicalize(), existing.parent()) {
            (Ok(full), _) => break full,
            (Err(_), Some(parent)) => existing = parent,
            (Err(_), None) => return Ok(()),
        }
    };
    let hidden = |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    let within = full.strip_prefix(&source_full).ok().map(|within| {
        let rest = destination.strip_prefix(existing).unwrap_or(Path::new(""));
        within.join(rest)
    });
    let is_known = |within: &Path| describes && (within.as_os_str().is_empty() || within.components().any(hidden));
    match within.is_some_and(|within| !is_known(&within)) {
        true => Err(Error::Source(SourceError::ContainsDestination {
            destination: destination.to_owned(),
            source_folder: source.to_owned(),
        })),
        false => Ok(()),
    }
}

/// Returns the manifest of a source that is a dataset; `None` for other sources.
///
/// # Errors
/// [`SourceError::ChangedDataset`]: its shards have the records as they were before; [`DestinationError::Manifest`] for a damaged
/// manifest of a dataset that keeps earlier versions, and was therefore changed.
fn dataset(source: &Path) -> Result<Option<Manifest>, Error> {
    let manifest = match parse_manifest(source) {
        Err(error @ Error::Destination(DestinationError::Manifest { .. }))
            if exists(&source.join(names::VERSIONS_FOLDER))?.is_some() =>
        {
            return Err(error);
        }
        manifest => manifest.ok().flatten(),
    };
    match manifest.as_ref().and_then(|manifest| manifest.versions.as_ref()) {
        Some(versions) => {
            let (path, version) = (source.to_owned(), versions.number);
            Err(Error::Source(SourceError::ChangedDataset { path, version }))
        }
        None if manifest.as_ref().is_some_and(Manifest::has_cloned_shards) => {
            Err(Error::Source(SourceError::ClonedDataset { path: source.to_owned() }))
        }
        // One that describes what else is in the folder: that is the source.
        None => Ok(manifest.filter(|manifest| !manifest.has_virtual_shards())),
    }
}
