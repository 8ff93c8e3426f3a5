//! Sources: makes a [`Listing`] of inputs from a folder of class folders, a flat folder or a list. Opens only lists and
//! folders; sizes and times come from one `stat` per entry. Files with many samples each are in [`archive`].

pub(crate) mod archive;
pub(crate) mod clips;
mod coco;
mod detect;
mod folder;
mod infer;
mod list;
mod listing;
pub(crate) mod nested;
pub(crate) mod objects;

use crate::class_ids::ClassIds;
use crate::error::SourceError;
use crate::input::Found;
use crate::progress::Progress;
use crate::{Error, Options};
use archive::Archives;
use detect::DetectedSource;
pub(crate) use listing::{Entry, Listing};
use shardtool_read::metadata_if_exists;
use shardtool_store::{is_url, local_path};
use std::io;
use std::path::Path;

/// The inputs of a pack.
pub(crate) enum Source {
    /// One image or row per entry.
    Files(Listing),
    /// Many samples per file.
    Archives(Box<Archives>),
}

impl Source {
    /// Lists the source of `options`. Archives are read once, without their images.
    ///
    /// # Errors
    /// [`SourceError::NotFound`], [`SourceError::Empty`], [`SourceError::UnknownFormat`], those of lists and archives,
    /// [`Error::Stopped`], and [`Error::Io`].
    pub(crate) fn new(options: &Options, progress: &dyn Progress) -> Result<Self, Error> {
        let source = &*local_path(&options.source);
        let classes = options.classes.as_deref().map(ClassIds::read).transpose()?;
        let found = detect::detect(source, options.from)?;
        if exists(source)?.is_some_and(|metadata| metadata.is_dir()) {
            inside(&options.destination, source)?;
        }
        let listing = match found {
            _ if !options.frames.is_empty() && !matches!(found, DetectedSource::List) => {
                return Err(Error::Option { option: "column", expected: "a list as the source of a column of frames" });
            }
            DetectedSource::Archives(files) => {
                return Archives::new(files, classes, options, progress).map(|all| Source::Archives(Box::new(all)));
            }
            _ if !options.map.is_empty() => {
                return Err(Error::Option { option: "map", expected: "a source whose samples have named fields" });
            }
            _ if options.images.is_some() && !matches!(found, DetectedSource::Coco) => {
                return Err(Error::Option { option: "images", expected: "a COCO annotation file as the source" });
            }
            _ if !options.arrays.is_empty() && !matches!(found, DetectedSource::List) => {
                return Err(Error::Option { option: "array", expected: "a list (CSV or JSON Lines) as the source" });
            }
            DetectedSource::Coco => coco::list(source, options)?,
            DetectedSource::Clips => clips::list(source, classes, options)?,
            DetectedSource::Folder => folder::list(source, classes, options)?,
            DetectedSource::List => list::list(source, classes, options)?,
        };
        if listing.entries.is_empty() {
            let rejected = listing.rejected.into_iter().next().map(Box::new);
            return Err(Error::Source(SourceError::Empty { path: source.to_owned(), rejected }));
        }
        Ok(Source::Files(listing))
    }
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

/// Refuses a destination inside the source folder: its shards would be inputs of the next run.
fn inside(destination: &Path, source: &Path) -> Result<(), Error> {
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
    match full.starts_with(&source_full) {
        true => Err(Error::Source(SourceError::ContainsDestination {
            destination: destination.to_owned(),
            source_folder: source.to_owned(),
        })),
        false => Ok(()),
    }
}
