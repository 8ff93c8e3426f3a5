//! Describes a source in virtual shards, and leaves it where it is: a pack that writes only indexes.

use super::{Summary, pack_splits};
use crate::error::{DestinationError, SourceError};
use crate::plan::{Work, stoppable_plans};
use crate::progress::Progress;
use crate::source::{self, archive::Archives};
use crate::virtual_source::{VirtualSource, folder_of};
use crate::{Error, JpegLayout, Options, PixelStore, SourceKind};
use shardtool_store::{is_url, local_path};
use std::path::{Path, PathBuf};

/// What [`index_source`] made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct IndexedSource {
    /// Folder or URL of the dataset.
    pub dataset: PathBuf,
    /// Each split.
    pub splits: Vec<Summary>,
}

/// How the files of a source become a dataset without a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexedAs {
    /// They are shards: TFRecord files, for [`crate::adopt`].
    Shards(Vec<PathBuf>),
    /// In virtual shards, by [`index_source`].
    VirtualShards,
}

/// Returns how a source of the given kind, or of the one that its content says, becomes a dataset without a copy.
///
/// # Errors
/// Those of finding out what the source is.
pub fn indexed_as(source: &Path, from: Option<SourceKind>) -> Result<IndexedAs, Error> {
    match source::tfrecord_files(&local_path(source), from) {
        Ok(Some(files)) => Ok(IndexedAs::Shards(files)),
        Ok(None) => Ok(IndexedAs::VirtualShards),
        // A TFRecord file whose records are no Examples, or a damaged one: what is wrong with it is said when it is read.
        Err(Error::Source(SourceError::UnknownFormat { .. })) => Ok(IndexedAs::Shards(vec![source.to_owned()])),
        Err(error) => Err(error),
    }
}

/// Returns what a source is, by its content; `None` if it is none.
///
/// # Errors
/// [`Error::Io`].
pub fn source_kind(source: &Path) -> Result<Option<SourceKind>, Error> {
    match source::kind(&local_path(source)) {
        Ok(kind) => Ok(Some(kind)),
        Err(error @ Error::Io { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Makes a dataset of a source without copying it: folders of images, lists, COCO files, tars that are not compressed, and MDS. Reads
/// the source once, and writes a manifest, and an index for each shard that [`crate::pack()`] would write with the same options; the
/// index says where the bytes lie. Records, keys, labels, order and fingerprint are those of the packed source. `sources` are
/// folders and URLs, besides the source's folder, in which files may lie to which links lead.
///
/// `options.destination` is where the dataset is written. If it is empty, that is the folder of the source. Anywhere else, readers
/// need the user's word for the source ([`shardtool_read::Options::sources`]).
///
/// A second call writes nothing if the source has the same contents; otherwise it describes the source again.
///
/// # Errors
/// As [`crate::pack_splits()`]; [`SourceError::Virtual`] for a source that cannot stay where it is; [`Error::Option`] for options that
/// make other images.
pub fn index_source(options: &Options, sources: &[String], progress: &dyn Progress) -> Result<IndexedSource, Error> {
    let mut options = options.clone();
    let changed = [
        ("pixels", options.pixels != PixelStore::Encoded),
        ("resize", options.resize.is_some()),
        ("jpeg", options.jpeg != JpegLayout::Keep),
        ("strip metadata", options.strip_metadata),
        ("sha256", options.sha256),
    ];
    if let Some((option, _)) = changed.into_iter().find(|(_, given)| *given) {
        return Err(Error::Option {
            option,
            expected: "none: an index leaves images as they are (`pack` changes them)",
        });
    }
    if options.destination.as_os_str().is_empty() {
        options.destination = match (&options.images, folder_of(&local_path(&options.source))?) {
            (Some(images), _) if !is_url(images) => images.clone(),
            (_, folder) => folder,
        };
    }
    let source = options.images.clone().unwrap_or_else(|| options.source.clone());
    options.virtual_source = Some(VirtualSource::new(&source, &options.destination, sources)?);
    for plan in stoppable_plans(&options, progress)? {
        if let Work::Archives(plan) = &plan.work {
            check(&plan.archives)?;
        }
    }
    let dataset = options.destination.clone();
    let splits = match pack_splits(&options, progress) {
        Err(Error::Destination(
            DestinationError::PackedOtherwise { .. }
            | DestinationError::OtherPlan { .. }
            | DestinationError::ChangedSince { .. }
            | DestinationError::SplitExists { .. },
        )) if is_virtual(&options)? => pack_splits(&Options { force: true, ..options }, progress),
        packed => packed,
    }?;
    Ok(IndexedSource { dataset, splits })
}

/// Returns whether all shards at the destination are virtual: replacing them loses nothing.
fn is_virtual(options: &Options) -> Result<bool, Error> {
    let manifest = match shardtool_read::parse_manifest(&options.destination.join(shardtool_format::names::MANIFEST)) {
        Ok((_, manifest)) => manifest,
        // An interrupted run.
        Err(shardtool_read::Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(true);
        }
        Err(error) => return Err(error.into()),
    };
    let mut shards = manifest.splits.iter().flat_map(|split| &split.shards);
    Ok(shards.all(|shard| shard.foreign.is_virtual))
}

/// Refuses archives whose samples cannot be read where they lie.
///
/// # Errors
/// [`SourceError::Virtual`], [`Error::Io`].
fn check(archives: &Archives) -> Result<(), Error> {
    let refused = |(path, problem): (PathBuf, String)| Error::Source(SourceError::Virtual { path, problem });
    archives.why_not_in_place()?.map_or(Ok(()), |found| Err(refused(found)))
}
