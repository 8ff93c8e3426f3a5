//! Describes a source in virtual shards, and leaves it where it is: a pack that writes only indexes.

use super::{Summary, pack_some};
use crate::error::{DestinationError, SourceError};
use crate::known_images::KnownImages;
use crate::plan::{Plan, Work};
use crate::progress::Progress;
use crate::source;
use crate::virtual_source::{VirtualSource, folder_of};
use crate::{Error, JpegLayout, Options, PixelStore, SourceKind};
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::{Foreign, Manifest};
use shardtool_format::names;
use shardtool_store::{is_url, local_path};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        // A TFRecord file whose records are not Examples.
        Err(Error::Source(SourceError::UnknownFormat { .. })) if source::begins_with_frame(source)? => {
            Ok(IndexedAs::Shards(vec![source.to_owned()]))
        }
        Err(error) => Err(error),
    }
}

/// Returns the kind of a source, by its content; `None` if it is not a source.
///
/// # Errors
/// [`Error::Io`].
pub fn source_kind(source: &Path) -> Result<Option<SourceKind>, Error> {
    match source::kind(&local_path(source)) {
        Ok(kind) => Ok(Some(kind)),
        // It is several, and the error says which.
        Err(error @ (Error::Io { .. } | Error::Source(SourceError::Mixed { .. } | SourceError::Nested { .. }))) => {
            Err(error)
        }
        Err(_) => Ok(None),
    }
}

/// Makes a dataset of a source without copying it: folders of images, lists, COCO files, tars and MDS that are not
/// compressed, and Parquet of whose images four fifths of the bytes lie in the file as they are. Reads
/// the source once, and writes a manifest, and an index for each shard that [`crate::pack()`] would write with the same options; the
/// index says where the bytes lie. Records, keys, labels, order and fingerprint are those of the packed source. `sources` are
/// folders and URLs, besides the source's folder, in which files may lie to which links lead.
///
/// `options.destination` is where the dataset is written. If it is empty, that is the folder of the source. Anywhere else, readers
/// need the user's word for the source ([`shardtool_read::Options::sources`]).
///
/// Writes nothing if an index exists and the source still has the contents it describes. Otherwise describes the source again, and reads
/// the images and archives whose length or time is another than before.
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
    // What is described is that of one commit.
    let pinned = |path: &Path| shardtool_store::pinned(path).map_err(Error::io("read", path));
    options.source = pinned(&options.source)?;
    options.images = options.images.as_deref().map(pinned).transpose()?;
    if options.destination.as_os_str().is_empty() {
        options.destination = match (&options.images, folder_of(&local_path(&options.source))?) {
            (Some(images), _) if !is_url(images) => images.clone(),
            (_, folder) => folder,
        };
        let place = &options.destination;
        if is_url(place) && !shardtool_store::is_writable(place).map_err(Error::io("write", place))? {
            let problem = "nothing can be written there; name a folder for the dataset: --out DIR".to_owned();
            return Err(Error::Source(SourceError::Virtual { path: place.clone(), problem }));
        }
    }
    let source = options.images.clone().unwrap_or_else(|| options.source.clone());
    let mut virtual_source = VirtualSource::new(&source, &options.destination, sources)?;
    let dataset = options.destination.clone();
    let there = there(&options)?;
    // What describes the same source is replaced: that loses nothing.
    let replaceable = there.as_ref().is_none_or(|manifest| {
        let mut shards = manifest.splits.iter().flat_map(|split| &split.shards);
        shards.all(|shard| shard.foreign.is_virtual && is_same(&shard.foreign, &virtual_source.foreign))
    });
    if let Some(manifest) = there.as_ref().filter(|_| replaceable) {
        virtual_source.known = Arc::new(KnownImages::of(&dataset, manifest, &virtual_source.foreign, &options));
    }
    options.virtual_source = Some(virtual_source);
    options.force = replaceable && there.as_ref().is_some_and(|manifest| has_damaged_index(&dataset, manifest));
    let run = |options: &Options| {
        pack_some(options, progress, |plans| {
            plans.iter().try_for_each(check)?;
            Ok(plans)
        })
    };
    let again = Options { force: true, ..options.clone() };
    let splits = match run(&options) {
        // Inputs that were rejected may have been repaired, or allowed.
        Ok(splits) if splits.iter().any(|split| split.already_complete && split.rejected > 0) => run(&again),
        Err(Error::Destination(
            DestinationError::PackedOtherwise { .. }
            | DestinationError::OtherPlan { .. }
            | DestinationError::ChangedSince { .. }
            | DestinationError::SplitExists { .. },
        )) if replaceable => run(&again),
        indexed => indexed,
    };
    match splits {
        Err(Error::Destination(DestinationError::HasVersions { versions, .. })) => {
            let problem = format!(
                "it has {versions} versions, which name the indexes that would be replaced; `shardtool index SOURCE --out \
                 DIR` describes the source from another place"
            );
            Err(Error::Source(SourceError::Virtual { path: dataset, problem }))
        }
        Err(Error::Destination(DestinationError::InTheWay { path }))
            if path.starts_with(dataset.join(names::INDEX_FOLDER)) =>
        {
            let problem = format!("an index that no manifest names; {WAY_OUT}");
            Err(Error::Source(SourceError::Virtual { path, problem }))
        }
        splits => Ok(IndexedSource { dataset, splits: splits? }),
    }
}

/// Returns whether two sources are the same, or commits of the same dataset on the Hugging Face Hub.
fn is_same(one: &Foreign, other: &Foreign) -> bool {
    let plain = |foreign: &Foreign| {
        let source = foreign.source.clone()?;
        let Some((dataset, rest)) = source.split_once('@').filter(|_| source.starts_with("hf://")) else {
            return Some(source);
        };
        Some(format!("{dataset}/{}", rest.split_once('/').map_or("", |(_, path)| path)))
    };
    one.is_virtual == other.is_virtual && plain(one) == plain(other)
}

/// Returns the manifest at the destination; `None` if the destination has no manifest.
fn there(options: &Options) -> Result<Option<Manifest>, Error> {
    match shardtool_read::parse_manifest(&options.destination.join(names::MANIFEST)) {
        Ok((_, manifest)) => Ok(Some(manifest)),
        Err(shardtool_read::Error::Io { source, .. })
            if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(shardtool_read::Error::Manifest { path, source }) => {
            let problem = format!("{source}; {WAY_OUT}");
            Err(Error::Source(SourceError::Virtual { path, problem }))
        }
        Err(error) => Err(error.into()),
    }
}

/// What helps if a manifest is lost.
const WAY_OUT: &str = "remove dataset.json and the folder _index, and run the same command again; the files of the source are not changed";

/// Returns whether an index of a dataset is not as its manifest says.
fn has_damaged_index(dataset: &Path, manifest: &Manifest) -> bool {
    let mut shards = manifest.splits.iter().flat_map(|split| &split.shards);
    shards.any(|shard| {
        let index = shardtool_read::read_index(&names::index_path(&dataset.join(&shard.file)));
        index.map_or(true, |index| (index.len() as u64, crc32c(&index)) != (shard.index_bytes, shard.index_crc32c))
    })
}

/// Refuses archives whose samples cannot be read where they lie.
///
/// # Errors
/// [`SourceError::Virtual`], [`Error::Io`].
fn check(plan: &Plan) -> Result<(), Error> {
    let Work::Archives(plan) = &plan.work else { return Ok(()) };
    let refused = |(path, problem): (PathBuf, String)| Error::Source(SourceError::Virtual { path, problem });
    plan.archives.why_not_in_place()?.map_or(Ok(()), |found| Err(refused(found)))
}
