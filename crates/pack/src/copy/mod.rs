//! Copies a dataset to another place: from or to a folder or an object store. Every byte is compared with the manifest on
//! its way, and the manifest is written last, so that the copy exists when it is whole.
//!
//! Shards are copied before their indexes, which are the sign that a shard is whole: a second run of the same copy skips
//! them.

mod clone;
mod target;

pub(crate) use clone::is_own_folder;
pub use clone::{CloneOptions, Cloned, clone};
pub(crate) use target::CLAIM;

use crate::error::ShardError;
use crate::ordered::ordered;
use crate::{Error, Progress};
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::{Foreign, Manifest};
use shardtool_format::names;
use shardtool_read::{Access, Dataset, FileBytes, Options, kept_versions, manifest_of, named_version, parse_manifest};
use shardtool_store::{REFETCHES, local_path};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use target::Target;

/// Options of [`copy()`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Shards that are copied at once. Each takes up to 48 MiB of memory between two stores.
    pub jobs: NonZeroUsize,
    /// Whether to write to a store that cannot refuse to replace a manifest: of two copies at once, the later one then wins.
    pub single_writer: bool,
    /// Whether the versions before are copied too.
    pub all_versions: bool,
    /// Folders and URLs in which shards may lie that the source has from another dataset.
    pub sources: Vec<String>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        CopyOptions {
            jobs: const { NonZeroUsize::new(2).unwrap() },
            single_writer: false,
            all_versions: false,
            sources: vec![],
        }
    }
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Shards of the dataset.
    pub shards: u64,
    /// Shards that an earlier run had copied.
    pub skipped: u64,
    /// Bytes copied by this run.
    pub bytes: u64,
}

/// Copies the dataset `source` to the folder `destination`. Either may be a URL. Files that the manifest does not name, such
/// as lists of rejected inputs, are not copied.
///
/// # Errors
/// [`Error::Read`] for damage of the source, which is not copied; [`Error::Io`], also if the source has other bytes than its
/// manifest says; [`DestinationError`](crate::DestinationError) if the destination has another dataset. The same call continues after errors.
pub fn copy(
    source: &Path,
    destination: &Path,
    options: &CopyOptions,
    progress: &dyn Progress,
) -> Result<Copied, Error> {
    let (source, version) = named_version(&local_path(source))?;
    let destination = local_path(destination);
    let (json, manifest) = manifest_at(&source, version.as_deref())?;
    let (json, manifest) = if options.all_versions { (json, manifest) } else { with_own_tags(json, manifest) };
    let earlier = if options.all_versions { earlier(&source, manifest.version_number())? } else { vec![] };
    let all = || [&manifest].into_iter().chain(earlier.iter().map(|(_, _, manifest)| manifest));
    if all().any(Manifest::has_virtual_shards) {
        let problem = "its shards are not stored, and the files that it describes are not copied; `shardtool reshard` writes its records \
            as shards, `shardtool index SOURCE --out DIR` describes the files from another place";
        return Err(Error::Shard(ShardError::VirtualShards { path: source, problem }));
    }
    let mut seen = HashSet::new();
    let shards: Vec<_> = all().flat_map(|manifest| &manifest.splits).flat_map(|split| &split.shards).collect();
    let shards: Vec<_> = shards.into_iter().filter(|shard| seen.insert(&shard.file)).collect();
    let parts = companions(all());
    let records = shards.iter().map(|shard| shard.records).sum();
    progress.total(records, shards.iter().map(|shard| shard.bytes + shard.index_bytes).sum());
    check_allowed(&source, all(), &options.sources)?;
    // What is copied is a file of the copy, whichever dataset has it here.
    let json = of_copy(json, &manifest);
    let target = Target::open(&destination, &json, options.single_writer)?;
    let Some(target) = target else {
        return Ok(Copied { shards: shards.len() as u64, skipped: shards.len() as u64, bytes: 0 });
    };
    let (skipped, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let one = |number: usize| -> Result<(), Error> {
        let shard = shards[number];
        if target.has(shard)? {
            skipped.fetch_add(1, Ordering::Relaxed);
            progress.done(shard.records, shard.bytes + shard.index_bytes);
            return Ok(());
        }
        let index = names::index_path(Path::new(&shard.file));
        let elsewhere = shard.foreign.dataset().map(Path::new);
        let file = |relative: &Path, expected: (u64, u32)| {
            let from = elsewhere.unwrap_or(&source).join(relative);
            let done = target.receive(&from, relative, expected, progress)?;
            bytes.fetch_add(if done { 0 } else { expected.0 }, Ordering::Relaxed);
            Ok::<bool, Error>(done)
        };
        let shard_done = file(Path::new(&shard.file), (shard.bytes, shard.crc32c))?;
        let index_done = file(&index, (shard.index_bytes, shard.index_crc32c))?;
        skipped.fetch_add(u64::from(shard_done && index_done), Ordering::Relaxed);
        progress.done(shard.records, 0);
        Ok(())
    };
    ordered(options.jobs, shards.len(), 2 * options.jobs.get(), one, |_, done| done)?;
    bytes.fetch_add(copy_companions(&source, &parts, &target)?, Ordering::Relaxed);
    for (number, json, manifest) in &earlier {
        target.publish(&names::version_path(*number), &of_copy(json.clone(), manifest))?;
    }
    target.finish(&json)?;
    Ok(Copied { shards: shards.len() as u64, skipped: skipped.into_inner(), bytes: bytes.into_inner() })
}

/// Reads the manifest of a dataset, or of one of its versions.
fn manifest_at(source: &Path, version: Option<&str>) -> Result<(Vec<u8>, Manifest), Error> {
    let newest = parse_manifest(&source.join(names::MANIFEST)).map_err(Error::Read)?;
    match version {
        Some(version) => Ok(manifest_of(source, newest, version)?),
        None => Ok(newest),
    }
}

/// Checks that the user allows the shards that lie in other datasets, of all manifests of a dataset.
///
/// # Errors
/// [`Error::Read`], for the first one that is refused or missing.
pub(crate) fn check_allowed<'m>(
    dataset: &Path,
    manifests: impl Iterator<Item = &'m Manifest>,
    sources: &[String],
) -> Result<(), Error> {
    for manifest in manifests.filter(|manifest| manifest.has_cloned_shards()) {
        let options = Options::default().with_sources(sources.iter().cloned());
        let opened = Dataset::of_manifest(dataset, manifest.clone(), options);
        for split in opened.splits() {
            (0..split.entry().shards.len()).try_for_each(|number| split.check_allowed(number))?;
        }
    }
    Ok(())
}

/// Returns the manifest of a copy, which has all shards.
fn of_copy(json: Vec<u8>, manifest: &Manifest) -> Vec<u8> {
    if !manifest.has_foreign_shards() {
        return json;
    }
    let mut manifest = manifest.clone();
    manifest.splits.iter_mut().flat_map(|split| &mut split.shards).for_each(|shard| shard.foreign = Foreign::default());
    manifest.to_json().into_bytes()
}

/// Leaves out the tags of versions that are not copied.
fn with_own_tags(json: Vec<u8>, mut manifest: Manifest) -> (Vec<u8>, Manifest) {
    let number = manifest.version_number();
    match &mut manifest.versions {
        Some(versions) if versions.tags.iter().any(|tag| tag.number != number) => {
            versions.tags.retain(|tag| tag.number == number);
            (manifest.to_json().into_bytes(), manifest)
        }
        _ => (json, manifest),
    }
}

/// The bytes and the manifest of an earlier version, after its number.
type Earlier = (u64, Vec<u8>, Manifest);

/// Returns the versions before one that are kept.
fn earlier(source: &Path, last: u64) -> Result<Vec<Earlier>, Error> {
    let mut versions = vec![];
    for number in kept_versions(source, last)? {
        match parse_manifest(&source.join(names::version_path(number))) {
            Ok((json, manifest)) => versions.push((number, json, manifest)),
            // A web server does not list what is kept.
            Err(shardtool_read::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
    Ok(versions)
}

/// The parts of files of columns and bitmaps: offset, length, CRC.
type Parts<'m> = BTreeMap<&'m str, BTreeSet<(u64, u64, u32)>>;

/// Returns the parts of files of columns and bitmaps that some manifests name, by file.
fn companions<'m>(manifests: impl Iterator<Item = &'m Manifest>) -> Parts<'m> {
    let mut parts = Parts::new();
    for part in manifests.flat_map(|manifest| manifest.parts()) {
        parts.entry(&part.file).or_default().insert((part.offset, part.bytes, part.crc32c));
    }
    parts
}

/// Copies files of columns and bitmaps. Returns their bytes.
fn copy_companions(source: &Path, parts: &Parts<'_>, target: &Target) -> Result<u64, Error> {
    let mut bytes = 0;
    for (file, parts) in parts {
        let relative = Path::new(names::COLUMNS_FOLDER).join(file);
        let whole = companion_bytes(&source.join(&relative), parts)?;
        target.publish(&relative, &whole)?;
        bytes += whole.len() as u64;
    }
    Ok(bytes)
}

/// Reads a file of columns or bitmaps up to the end of the last part that is needed, and checks these parts.
fn companion_bytes(path: &Path, parts: &BTreeSet<(u64, u64, u32)>) -> Result<Vec<u8>, Error> {
    let file = FileBytes::open(path, Access::Pread).map_err(Error::of_file)?;
    let end = parts.iter().map(|(offset, bytes, _)| offset.saturating_add(*bytes)).max().unwrap_or(0);
    let mut whole = vec![];
    for _ in 0..=REFETCHES {
        file.read_into(0..end, &mut whole).map_err(Error::of_file)?;
        let good =
            |(offset, bytes, crc): &(u64, u64, u32)| crc32c(&whole[*offset as usize..][..*bytes as usize]) == *crc;
        if parts.iter().all(good) {
            return Ok(whole);
        }
    }
    let text = "a column, a bitmap or a list in it has another CRC than the manifest says (`shardtool verify` lists the damage)";
    Err(Error::io("copy", path)(io::Error::new(io::ErrorKind::InvalidData, text)))
}
