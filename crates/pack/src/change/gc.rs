//! Removes the files that no kept version names: those of changes that were killed or refused, and those of versions that are no
//! longer kept. Only files whose names this format gives, and not those of a split whose pack is not finished.

use super::base;
use crate::Error;
use crate::commit::{Directory, Lock, final_name};
use crate::error::ShardError;
use crate::place::{self, Place};
use crate::split::files::{SplitFiles, grown_split, unfinished_among};
use shardtool_format::names;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Options of [`gc`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct GcOptions {
    /// How many versions are kept, the newest included; tagged ones are kept as well. Default: all.
    pub keep: Option<u64>,
    /// Whether the files are removed. Default: they are listed.
    pub remove: bool,
}

/// What can be removed, or was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Collected {
    /// Files, by their paths in the dataset.
    pub files: Vec<PathBuf>,
    /// Their bytes.
    pub bytes: u64,
    /// The versions that are no longer kept.
    pub versions: Vec<u64>,
}

/// Lists or removes the files of a dataset on a disk that no kept version names.
///
/// # Errors
/// [`ShardError::StoreGc`] for a dataset in a store; [`DestinationError::Locked`](crate::DestinationError) while another process
/// writes; [`Error::Io`].
pub fn gc(dataset: &Path, options: &GcOptions) -> Result<Collected, Error> {
    let dataset = base::open(dataset, &[])?;
    if shardtool_store::is_url(dataset.path()) {
        return Err(Error::Shard(ShardError::StoreGc { path: base::folder(&dataset) }));
    }
    if options.keep == Some(0) {
        return Err(Error::Option { option: "keep", expected: "at least one version: the newest" });
    }
    let directory = base::directory(&dataset)?;
    let _lock = Lock::own_dataset(&directory)?;
    collect(&directory, options)
}

/// Lists or removes the files of a dataset that no kept version names. The caller has the dataset's lock.
pub(super) fn collect(directory: &Directory, options: &GcOptions) -> Result<Collected, Error> {
    let newest = base::manifest(directory)?;
    let last = newest.version_number();
    let tagged: HashSet<u64> = newest.versions.iter().flat_map(|v| &v.tags).map(|tag| tag.number).collect();
    let oldest = options.keep.map_or(0, |keep| (last + 1).saturating_sub(keep));
    let mut collected = Collected::default();
    let mut named: HashSet<PathBuf> = place::files_of(Place::path(directory), &newest).collect();
    for (number, manifest) in place::kept_manifests(directory)? {
        if number >= oldest || tagged.contains(&number) {
            named.extend(place::files_of(Place::path(directory), &manifest));
            named.insert(names::version_path(number));
        } else {
            collected.versions.push(number);
        }
    }
    let root = Place::names(directory, Path::new(""))?;
    let unfinished = unfinished_among(root.iter().filter_map(|name| name.to_str())).into_iter();
    let packed: Vec<_> = unfinished
        .filter(|split| grown_split(split).is_none())
        .map(|split| SplitFiles::new(directory.clone(), &split))
        .collect();
    for folder in ["", names::INDEX_FOLDER, names::COLUMNS_FOLDER, names::VERSIONS_FOLDER] {
        for name in Place::names(directory, Path::new(folder))? {
            let path = Path::new(folder).join(&name);
            let is_packed =
                |name: &str| packed.iter().any(|split| split.is_written_name(final_name(name).unwrap_or(name)));
            let ours = name.to_str().is_some_and(|name| is_ours(folder, name) && !is_packed(name));
            if ours && !named.contains(&path) {
                collected.bytes += Place::length(directory, &path)?.unwrap_or(0);
                collected.files.push(path);
            }
        }
    }
    if options.remove {
        // Manifests first: a version whose files are gone must not be opened.
        let (versions, others): (Vec<_>, Vec<_>) =
            collected.files.iter().cloned().partition(|path| path.starts_with(names::VERSIONS_FOLDER));
        Place::remove_all(directory, &versions)?;
        Place::remove_all(directory, &others)?;
        Place::sync(directory, Path::new(""))?;
    }
    Ok(collected)
}

/// Returns whether this format gives a file of a folder its name: a shard, its index, a column, a bitmap, the manifest of a version, or
/// what a killed `append` leaves. Other files are the user's.
fn is_ours(folder: &str, name: &str) -> bool {
    // What a killed process has not finished.
    if let Some(whole) = final_name(name) {
        return is_ours(folder, whole);
    }
    let hex = |text: &str| text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let decimal = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let shard = |name: &str| {
        let Some((split, number)) = name.strip_suffix(".tfrecord").and_then(|stem| stem.rsplit_once('-')) else {
            return false;
        };
        !split.is_empty() && number.len() >= 5 && decimal(number)
    };
    // What a killed append leaves besides: its plan, its lock, the rejected inputs of its shards.
    let hidden = |name: &str| {
        let ends =
            |name: &str, start, end: &str| name.strip_prefix(start)?.strip_suffix(end).and_then(grown_split).map(drop);
        let plan = ends(name, ".pack-", ".json").or(ends(name, ".pack-", ".lock")).or(ends(name, ".packed-", ".json"));
        let rejects = || {
            let stem = name.strip_prefix('.')?.strip_suffix(".rejected.jsonl")?;
            stem.rsplit_once('-')
                .filter(|(_, number)| decimal(number))
                .and_then(|(split, _)| grown_split(split))
                .map(drop)
        };
        plan.or_else(rejects).is_some()
    };
    match folder {
        names::COLUMNS_FOLDER => {
            name.split_once('.').is_some_and(|(stem, end)| hex(stem) && matches!(end, "columns" | "deleted" | "purged"))
        }
        names::VERSIONS_FOLDER => name.strip_suffix(".json").is_some_and(|number| number.len() >= 6 && decimal(number)),
        names::INDEX_FOLDER => name.strip_suffix(".index").is_some_and(shard) || hidden(name),
        _ => shard(name) || hidden(name),
    }
}
