//! Removes the files that no kept version names: those of changes that were killed or refused, and those of versions that are no
//! longer kept. Only files whose names this format gives, and not those of a split whose pack is not finished.

use super::base;
use crate::Error;
use crate::commit::{Lock, final_name};
use crate::place::{self, CHANGE_LOCK, Place, StoreFolder};
use crate::split::attempt;
use crate::split::files::{SplitFiles, grown_split, lock_file, unfinished_among};
use shardtool_format::names;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// Files in a store that no kept version names, and that stay because they were written less than 24 hours ago: a process may be
    /// about to name them.
    pub recent: u64,
}

/// How old a file in a store must be before it is removed.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);
/// The folders of a dataset that have files.
pub(super) const FOLDERS: [&str; 4] = ["", names::INDEX_FOLDER, names::COLUMNS_FOLDER, names::VERSIONS_FOLDER];

/// Lists or removes the files of a dataset that no kept version names.
///
/// On a disk, no other process writes meanwhile. In a store, no change is made meanwhile, but a pack of a further split may be: files
/// that were written less than 24 hours ago stay.
///
/// # Errors
/// [`DestinationError::Locked`](crate::DestinationError), in a store [`DestinationError::Claimed`](crate::DestinationError), while
/// another process writes; [`DestinationError::NoConditions`](crate::DestinationError) for a store without conditions; [`Error::Io`].
pub fn gc(dataset: &Path, options: &GcOptions) -> Result<Collected, Error> {
    let dataset = base::open(dataset, &[])?;
    if options.keep == Some(0) {
        return Err(Error::Option { option: "keep", expected: "at least one version: the newest" });
    }
    if shardtool_store::is_url(dataset.path()) {
        let folder = match options.remove {
            true => StoreFolder::alone(dataset.path(), CHANGE_LOCK, false)?,
            // A list needs no right to write.
            false => StoreFolder::open(dataset.path())?.ok_or_else(|| base::no_dataset(dataset.path()))?,
        };
        let old = folder.old(CHANGE_LOCK, &FOLDERS, RECENT)?;
        return collect(&folder, options, Some(&old));
    }
    let directory = base::directory(&dataset)?;
    let _lock = Lock::own_dataset(&directory)?;
    collect(&directory, options, None)
}

/// Returns the files in the folders of a dataset, by their paths in it.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn files<P: Place>(place: &P) -> Result<HashSet<PathBuf>, Error> {
    let mut files = HashSet::new();
    for folder in FOLDERS {
        files.extend(place.names(Path::new(folder))?.into_iter().map(|name| Path::new(folder).join(name)));
    }
    Ok(files)
}

/// Lists or removes the files of a dataset that no kept version names, of the `old` ones if they are given. No change is made meanwhile.
pub(super) fn collect<P: Place>(
    place: &P,
    options: &GcOptions,
    old: Option<&HashSet<PathBuf>>,
) -> Result<Collected, Error> {
    let is_recent = |path: &Path| old.is_some_and(|old| !old.contains(path));
    let kept = Kept::by(place, options)?;
    let mut collected = Collected { versions: kept.others.clone(), ..Collected::default() };
    let root = place.names(Path::new(""))?;
    let unfinished = unfinished_among(root.iter().filter_map(|name| name.to_str()));
    let (grown, others): (Vec<_>, Vec<_>) = unfinished.into_iter().partition(|split| grown_split(split).is_some());
    let packed: Vec<_> = others.iter().map(|split| SplitFiles::new(place.clone(), split)).collect();
    // Appends that are running write their locks again and again.
    let locks: HashSet<_> = root.iter().filter_map(|name| name.to_str()).collect();
    let is_running = |split: &&String| {
        let lock = lock_file(split);
        locks.contains(lock.as_str()) && is_recent(Path::new(&lock))
    };
    let running: Vec<_> = grown.iter().filter(is_running).collect();
    // So do writes of tasks, from their beginning to the commit that names shards.
    let is_written = |split: &str| {
        let lock = lock_file(split);
        locks.iter().any(|name| name.starts_with(&lock) && is_recent(Path::new(name)))
    };
    for folder in FOLDERS {
        for name in place.names(Path::new(folder))? {
            let path = Path::new(folder).join(&name);
            let is_packed = |name: &str| {
                attempt::of(final_name(name).unwrap_or(name)).is_some_and(|of| is_written(of.split))
                    || packed.iter().any(|split| split.is_written_name(final_name(name).unwrap_or(name)))
                    || running.iter().any(|split| name.contains(split.as_str()))
            };
            let ours = name.to_str().is_some_and(|name| is_ours(folder, name) && !is_packed(name));
            if !ours || kept.files.contains(&path) {
                continue;
            }
            if is_recent(&path) && folder != names::VERSIONS_FOLDER {
                collected.recent += 1;
                continue;
            }
            collected.files.push(path);
        }
    }
    for path in &collected.files {
        collected.bytes += place.length(path)?.unwrap_or(0);
    }
    if options.remove {
        // Manifests first: a version whose files are gone must not be opened.
        let (versions, others): (Vec<_>, Vec<_>) =
            collected.files.iter().cloned().partition(|path| path.starts_with(names::VERSIONS_FOLDER));
        place.remove_all(&versions)?;
        // A pack may have named some meanwhile.
        let named = Kept::by(place, options)?.files;
        let others: Vec<_> = others.into_iter().filter(|path| !named.contains(path)).collect();
        place.remove_all(&others)?;
        collected.files.retain(|path| !named.contains(path));
        place.sync(Path::new(""))?;
    }
    Ok(collected)
}

/// What the kept versions name.
struct Kept {
    /// Files, by their paths in the dataset.
    files: HashSet<PathBuf>,
    /// The other versions.
    others: Vec<u64>,
}

impl Kept {
    fn by<P: Place>(place: &P, options: &GcOptions) -> Result<Self, Error> {
        let newest = base::manifest(place)?;
        let last = newest.version_number();
        let tagged: HashSet<u64> = newest.versions.iter().flat_map(|v| &v.tags).map(|tag| tag.number).collect();
        let oldest = options.keep.map_or(0, |keep| (last + 1).saturating_sub(keep));
        let mut kept = Kept { files: place::files_of(place.path(), &newest).collect(), others: vec![] };
        for (number, manifest) in place::kept_manifests(place)? {
            if number >= oldest || tagged.contains(&number) {
                kept.files.extend(place::files_of(place.path(), &manifest));
                kept.files.insert(names::version_path(number));
            } else {
                kept.others.push(number);
            }
        }
        Ok(kept)
    }
}

/// Returns whether this format gives a file of a folder its name: a shard, its index, a column, a bitmap, the manifest of a version, or
/// what a killed `append` or write of tasks leaves. Other files are the user's.
pub(super) fn is_ours(folder: &str, name: &str) -> bool {
    // What a killed process has not finished.
    if let Some(whole) = final_name(name) {
        return is_ours(folder, whole);
    }
    if attempt::of(name).is_some() {
        return matches!(folder, "" | names::INDEX_FOLDER);
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
