//! Versions of a dataset: which one a path names, its manifest, and all that are kept.

use crate::whole_files::parse_manifest;
use crate::{Error, Result, metadata_if_exists};
use shardtool_format::manifest::{self, Manifest};
use shardtool_format::names;
use shardtool_store::{Object, is_url};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A version in the history of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedVersion {
    /// Its number, from 1.
    pub number: u64,
    /// The checksum of its manifest, by which it can be opened too.
    pub checksum: u32,
    /// What made it; `None` for a first version.
    pub command: Option<String>,
    /// The user's words about the change.
    pub message: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// Its tags in the newest version.
    pub tags: Vec<String>,
    /// Whether it was written again without records that were purged.
    pub purged: bool,
    /// Its splits.
    pub splits: Vec<LoggedSplit>,
}

/// A split of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedSplit {
    /// Its name.
    pub name: String,
    /// Its records, without deleted ones.
    pub records: u64,
    /// Its shards.
    pub shards: usize,
    /// Its fingerprint.
    pub fingerprint: u32,
}

/// Returns the dataset and the version that a path names: `PATH`, or `PATH@VERSION` if nothing of this whole name exists.
///
/// # Errors
/// [`Error::AmbiguousVersion`], [`Error::Io`].
pub fn named_version(path: &Path) -> Result<(PathBuf, Option<String>)> {
    let whole = || Ok((path.to_owned(), None));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((stem, version)) = name.rsplit_once('@').filter(|(stem, version)| !stem.is_empty() && is_version(version))
    else {
        return whole();
    };
    let (dataset, version) = (path.with_file_name(stem), version.to_owned());
    match (exists(path)?, has_manifest(&dataset)?) {
        (true, true) => Err(Error::AmbiguousVersion { path: path.to_owned(), dataset, version }),
        (true, false) => whole(),
        (false, _) => Ok((dataset, Some(version))),
    }
}

/// Returns whether a text can name a version: a number, a checksum, or a tag.
fn is_version(text: &str) -> bool {
    number(text).is_some() || checksum(text).is_some() || manifest::check_tag(text).is_ok()
}

/// Returns the number that a text is. Eight digits are a checksum.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() != 8 && !text.starts_with('0');
    text.parse().ok().filter(|_| digits)
}

fn checksum(text: &str) -> Option<u32> {
    shardtool_format::checksum::parse_hex(text.as_bytes())
}

fn exists(path: &Path) -> Result<bool> {
    if is_url(path) {
        return has_manifest(path);
    }
    let found = metadata_if_exists(path);
    Ok(found.map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?.is_some())
}

fn has_manifest(dataset: &Path) -> Result<bool> {
    let is_manifest = dataset.extension().is_some_and(|end| end == "json");
    let path = if is_manifest { dataset.to_owned() } else { dataset.join(names::MANIFEST) };
    if !is_url(&path) {
        let found = metadata_if_exists(&path);
        return Ok(found.map_err(|source| Error::Io { action: "read", path, source })?.is_some());
    }
    match Object::open(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Io { action: "open", path, source }),
    }
}

/// Returns the manifest of a version, and its bytes. `newest` are those of the newest one.
///
/// # Errors
/// [`Error::NoVersion`], [`Error::Manifest`], [`Error::Io`].
pub fn manifest_of(folder: &Path, newest: (Vec<u8>, Manifest), version: &str) -> Result<(Vec<u8>, Manifest)> {
    let last = newest.1.version_number();
    let tagged = || {
        let tags = newest.1.versions.as_ref().map_or(&[][..], |versions| &versions.tags);
        tags.iter().find(|tag| tag.name == version).map(|tag| tag.number)
    };
    let none = |newest: &Manifest| {
        let (path, version) = (folder.to_owned(), version.to_owned());
        Error::NoVersion { path, version, known: known(folder, newest) }
    };
    if let Some(crc) = checksum(version) {
        if manifest::own_crc(&newest.0) == Some(crc) {
            return Ok(newest);
        }
        for number in (1..last).rev() {
            match stored(folder, number)? {
                Some(found) if manifest::own_crc(&found.0) == Some(crc) => return Ok(found),
                _ => {}
            }
        }
        return Err(none(&newest.1));
    }
    let Some(number) = number(version).or_else(tagged).filter(|number| *number > 0 && *number <= last) else {
        return Err(none(&newest.1));
    };
    if number == last {
        return Ok(newest);
    }
    stored(folder, number)?.ok_or_else(|| none(&newest.1))
}

/// Returns the manifest of an earlier version, if it is kept.
///
/// # Errors
/// [`Error::Manifest`], [`Error::Io`].
fn stored(folder: &Path, number: u64) -> Result<Option<(Vec<u8>, Manifest)>> {
    let path = folder.join(names::version_path(number));
    match parse_manifest(&path) {
        Ok(found) if found.1.version_number() == number => Ok(Some(found)),
        Ok((_, found)) => {
            let (value, problem) = (found.version_number().to_string(), "not the version that its file name says");
            let source = shardtool_format::Error::ManifestValue { member: "dataset_version", value, problem };
            Err(Error::Manifest { path, source })
        }
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Describes the versions that a dataset keeps.
fn known(folder: &Path, newest: &Manifest) -> String {
    let last = newest.version_number();
    let earlier = kept(folder, last).unwrap_or_default();
    let numbers: Vec<_> = earlier.into_iter().chain([last]).map(|number| number.to_string()).collect();
    let tags = newest.versions.as_ref().map_or(&[][..], |versions| &versions.tags);
    let tags: String = tags.iter().map(|tag| format!(", {} (`{}`)", tag.number, tag.name)).collect();
    let shown = numbers.len().saturating_sub(10);
    let before = if shown > 0 { format!("{shown} earlier, ") } else { String::new() };
    format!("{before}{}{tags}", numbers[shown..].join(", "))
}

/// Returns the numbers of the earlier versions that a dataset keeps, ascending.
///
/// # Errors
/// [`Error::Io`].
pub fn kept(folder: &Path, last: u64) -> Result<Vec<u64>> {
    let folder = folder.join(names::VERSIONS_FOLDER);
    let io = |source| Error::Io { action: "list", path: folder.clone(), source };
    let names: Vec<String> = if is_url(&folder) {
        match shardtool_store::list(&folder) {
            // A web server does not list.
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok((1..last).collect()),
            listed => listed.map_err(io)?,
        }
    } else {
        match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => vec![],
            entries => {
                let entries = entries.map_err(io)?;
                let name =
                    |entry: std::io::Result<std::fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
                entries.map(name).collect::<std::io::Result<_>>().map_err(io)?
            }
        }
    };
    let number = |name: &String| {
        let number: u64 = name.strip_suffix(".json")?.parse().ok()?;
        (names::version_path(number).file_name()?.to_str()? == name && number < last).then_some(number)
    };
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns all versions that a dataset keeps, the newest first.
///
/// # Errors
/// [`Error::Manifest`], [`Error::Io`].
pub fn log(folder: &Path) -> Result<Vec<LoggedVersion>> {
    let newest = parse_manifest(&folder.join(names::MANIFEST))?;
    let tags = newest.1.versions.as_ref().map_or(vec![], |versions| versions.tags.clone());
    let purged = newest.1.versions.as_ref().and_then(|versions| versions.purged.clone()).unwrap_or_default();
    let logged = |(json, manifest): &(Vec<u8>, Manifest)| {
        let number = manifest.version_number();
        let versions = manifest.versions.as_ref();
        LoggedVersion {
            number,
            checksum: manifest::own_crc(json).unwrap_or_default(),
            command: versions.map(|versions| versions.command.clone()),
            message: versions.and_then(|versions| versions.message.clone()),
            author: versions.and_then(|versions| versions.author.clone()),
            tags: tags.iter().filter(|tag| tag.number == number).map(|tag| tag.name.clone()).collect(),
            purged: purged.versions.contains(&number),
            splits: manifest.splits.iter().map(LoggedSplit::of).collect(),
        }
    };
    let mut versions = vec![logged(&newest)];
    for number in kept(folder, newest.1.version_number())?.into_iter().rev() {
        versions.extend(stored(folder, number)?.as_ref().map(logged));
    }
    Ok(versions)
}

impl LoggedSplit {
    fn of(split: &manifest::Split) -> Self {
        let (name, records, shards) = (split.name.clone(), split.records(), split.shards.len());
        LoggedSplit { name, records, shards, fingerprint: split.fingerprint() }
    }
}
