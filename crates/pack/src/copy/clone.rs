//! Clones a dataset: another one with its own columns, deletions and views, whose shards stay where they are.

use super::target::Target;
use super::{companions, copy_companions, manifest_at, with_own_tags};
use crate::error::DestinationError;
use crate::{Error, Progress};
use shardtool_format::manifest::Manifest;
use shardtool_format::names;
use shardtool_read::named_version;
use shardtool_store::{is_url, local_path};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Options of [`clone()`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CloneOptions {
    /// Whether to write to a store that cannot refuse to replace a manifest: of two clones at once, the later one then wins.
    pub single_writer: bool,
    /// The version: its number, a tag or a checksum; by default that of the path, or the newest one.
    pub version: Option<String>,
}

/// What a clone is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cloned {
    /// Shards of the dataset.
    pub shards: u64,
    /// Bytes copied: columns, bitmaps, and the indexes of virtual shards.
    pub bytes: u64,
    /// The folders and URLs in which the shards lie. Readers need the user's word for them
    /// ([`shardtool_read::Options::sources`]).
    pub sources: Vec<String>,
}

/// Makes a dataset in the folder `destination` whose shards and indexes are those of the dataset `source`, or of one of its versions
/// (`DATASET@VERSION`), and stay where they are. Either may be a URL. Columns and bitmaps are copied, and so are the indexes of
/// virtual shards. Records, order and fingerprint are those of the source; what is changed in one of the two is not changed in the
/// other. A source that is moved, or whose shards `gc` removes, is missing in the clone; [`crate::copy()`] of a clone has all shards.
///
/// # Errors
/// [`Error::Read`] for damage of the source; [`Error::Io`], also for a source whose path cannot be in a manifest; [`DestinationError`]
/// if the destination has another dataset, files of a pack, or a file with the name of a shard. The same call continues after errors.
pub fn clone(
    source: &Path,
    destination: &Path,
    options: &CloneOptions,
    progress: &dyn Progress,
) -> Result<Cloned, Error> {
    let (source, version) = named_version(&local_path(source))?;
    let destination = local_path(destination);
    let (json, manifest) = manifest_at(&source, options.version.as_deref().or(version.as_deref()))?;
    let (_, mut manifest) = with_own_tags(json, manifest);
    let folder = match is_url(&source) {
        true => source.clone(),
        false => source.canonicalize().map_err(Error::io("read", &source))?,
    };
    let folder = match folder.to_str() {
        Some(folder) => folder.trim_end_matches('/').to_owned(),
        None => {
            let error = std::io::Error::new(ErrorKind::InvalidInput, "its path is not UTF-8");
            return Err(Error::io("clone", &source)(error));
        }
    };
    for shard in manifest.splits.iter_mut().flat_map(|split| &mut split.shards) {
        shard.foreign.source.get_or_insert_with(|| folder.clone());
    }
    if manifest.sources().into_iter().any(|source| is_own_folder(source, &destination)) {
        return Err(DestinationError::OtherDataset { path: destination }.into());
    }
    let json = manifest.to_json().into_bytes();
    Manifest::parse(&json).map_err(|error| {
        let text = format!("its path cannot be in a manifest: {error}");
        Error::io("clone", &source)(std::io::Error::new(ErrorKind::InvalidInput, text))
    })?;
    check_free(&destination, &manifest)?;
    let shards: Vec<_> = manifest.splits.iter().flat_map(|split| &split.shards).collect();
    let sources = manifest.sources().into_iter().map(str::to_owned).collect();
    let mut cloned = Cloned { shards: shards.len() as u64, bytes: 0, sources };
    let Some(target) = Target::open(&destination, &json, options.single_writer)? else { return Ok(cloned) };
    progress.total(0, shards.iter().filter(|shard| shard.foreign.is_virtual).map(|shard| shard.index_bytes).sum());
    for shard in shards.iter().filter(|shard| shard.foreign.is_virtual) {
        let index = names::index_path(Path::new(&shard.file));
        let there = target.receive(&source.join(&index), &index, (shard.index_bytes, shard.index_crc32c), progress)?;
        cloned.bytes += if there { 0 } else { shard.index_bytes };
    }
    cloned.bytes += copy_companions(&source, &companions([&manifest].into_iter()), &target)?;
    target.finish(&json)?;
    Ok(cloned)
}

/// Returns whether the folder that a shard names is this one.
pub(crate) fn is_own_folder(source: &str, folder: &Path) -> bool {
    let full = |path: &Path| match is_url(path) {
        true => path.to_str().map(|text| PathBuf::from(text.trim_end_matches('/'))),
        false => path.canonicalize().ok(),
    };
    full(Path::new(source)).is_some_and(|source| Some(source) == full(folder))
}

/// Checks that a folder has nothing of a pack, and no file with the name of a shard: what is in the way of a copy would become part of
/// the clone.
///
/// # Errors
/// [`DestinationError::InTheWay`], [`Error::Io`].
fn check_free(destination: &Path, manifest: &Manifest) -> Result<(), Error> {
    let listed = |folder: PathBuf| -> Result<Vec<String>, Error> {
        if is_url(&folder) {
            return shardtool_store::list(&folder).map_err(Error::io("list", &folder));
        }
        let found = match std::fs::read_dir(&folder) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(vec![]),
            found => found.map_err(Error::io("read", &folder))?,
        };
        let name = |entry: std::io::Result<std::fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        found.map(name).collect::<std::io::Result<_>>().map_err(Error::io("read", &folder))
    };
    let shards: HashSet<_> = manifest.splits.iter().flat_map(|split| &split.shards).map(|shard| &shard.file).collect();
    for name in listed(destination.to_owned())? {
        let of_a_pack = [".pack-", ".packed-", ".write-"].iter().any(|start| name.starts_with(start));
        if of_a_pack || shards.contains(&name) {
            return Err(DestinationError::InTheWay { path: destination.join(name) }.into());
        }
    }
    Ok(())
}
