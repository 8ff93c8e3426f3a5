//! Copies a dataset to another place: from or to a folder or an object store. Every byte is compared with the manifest on
//! its way, and the manifest is written last, so that the copy exists when it is whole.
//!
//! Shards are copied before their indexes, which are the sign that a shard is whole: a second run of the same copy skips
//! them.

use crate::commit::{Directory, Lock, Temporary, publish, remove_abandoned};
use crate::error::{DestinationError, ShardError};
use crate::ordered::ordered;
use crate::place::check_writable;
use crate::{Error, Progress};
use shardtool_format::checksum::{Crc32c, crc32c};
use shardtool_format::manifest::{Manifest, Shard};
use shardtool_format::names;
use shardtool_read::{Access, FileBytes, kept_versions, manifest_of, named_version, parse_manifest};
use shardtool_store::{Existing, Object, PART_BYTES, REFETCHES, Upload, is_url, local_path};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

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
}

impl Default for CopyOptions {
    fn default() -> Self {
        CopyOptions { jobs: const { NonZeroUsize::new(2).unwrap() }, single_writer: false, all_versions: false }
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
/// manifest says; [`DestinationError`] if the destination has another dataset. The same call continues after errors.
pub fn copy(
    source: &Path,
    destination: &Path,
    options: &CopyOptions,
    progress: &dyn Progress,
) -> Result<Copied, Error> {
    let (source, destination) = (local_path(source), local_path(destination));
    let (source, version) = named_version(&source)?;
    let newest = parse_manifest(&source.join(names::MANIFEST)).map_err(Error::Read)?;
    let (json, manifest) = match &version {
        Some(version) => manifest_of(&source, newest, version)?,
        None => newest,
    };
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
    let mut parts = BTreeMap::<&str, BTreeSet<(u64, u64, u32)>>::new();
    for part in all().flat_map(|manifest| manifest.parts()) {
        parts.entry(&part.file).or_default().insert((part.offset, part.bytes, part.crc32c));
    }
    let records = shards.iter().map(|shard| shard.records).sum();
    progress.total(records, shards.iter().map(|shard| shard.bytes + shard.index_bytes).sum());
    let target = Target::open(&destination, &json, options)?;
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
        let file = |relative: &Path, expected: (u64, u32)| {
            let done = target.receive(&source.join(relative), relative, expected, progress)?;
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
    for (file, parts) in &parts {
        let relative = Path::new(names::COLUMNS_FOLDER).join(file);
        let whole = companion_bytes(&source.join(&relative), parts)?;
        target.publish(&relative, &whole)?;
        bytes.fetch_add(whole.len() as u64, Ordering::Relaxed);
    }
    for (number, json, _) in &earlier {
        target.publish(&names::version_path(*number), json)?;
    }
    target.finish(&json)?;
    Ok(Copied { shards: shards.len() as u64, skipped: skipped.into_inner(), bytes: bytes.into_inner() })
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

/// Where a dataset is copied to.
enum Target {
    Folder { directory: Directory, _lock: Lock },
    Store { folder: PathBuf, manifest: Existing },
}

impl Target {
    /// Returns `None` if the destination has the same manifest already.
    fn open(destination: &Path, json: &[u8], options: &CopyOptions) -> Result<Option<Self>, Error> {
        if is_url(destination) {
            check_writable(destination)?;
            return match parse_manifest(&destination.join(names::MANIFEST)) {
                Ok((found, _)) => same(&found, json, destination).map(|()| None),
                Err(shardtool_read::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    let names = shardtool_store::list(destination).map_err(Error::io("list", destination))?;
                    if let Some(name) = names.iter().find(|name| name.starts_with(".pack-")) {
                        let problem = format!("a split is being packed here, or its pack was interrupted (see {name})");
                        let problem = io::Error::new(io::ErrorKind::AlreadyExists, problem);
                        return Err(Error::io("write", destination)(problem));
                    }
                    let manifest = if options.single_writer { Existing::Replace } else { Existing::Keep };
                    claim(destination, json, manifest)?;
                    Ok(Some(Target::Store { folder: destination.to_owned(), manifest }))
                }
                Err(error) => Err(Error::of_file(error)),
            };
        }
        let directory = Directory::create(destination)?;
        let lock = Lock::own_dataset(&directory)?;
        if let Some(found) = directory.read(names::MANIFEST)? {
            return same(&found, json, destination).map(|()| None);
        }
        directory.create_folder(names::INDEX_FOLDER)?;
        for folder in ["", names::INDEX_FOLDER] {
            remove_abandoned(&directory, folder, |_| true)?;
        }
        Ok(Some(Target::Folder { directory, _lock: lock }))
    }

    /// Returns whether an earlier run has copied the shard to a store: its index, which is copied after it, is whole.
    fn has(&self, shard: &Shard) -> Result<bool, Error> {
        let index = names::index_path(Path::new(&shard.file));
        match self {
            // Compared one by one.
            Target::Folder { .. } => Ok(false),
            Target::Store { folder, .. } => {
                let path = folder.join(&index);
                let found = match shardtool_store::read_whole(&path, shard.index_bytes) {
                    Ok(found) => found,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                    Err(error) => return Err(Error::io("read", &path)(error)),
                };
                if found.is_none_or(|bytes| crc32c(&bytes) != shard.index_crc32c) {
                    return Ok(false);
                }
                let path = folder.join(&shard.file);
                match Object::open(&path) {
                    Ok(object) => Ok(object.len() == shard.bytes),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                    Err(error) => Err(Error::io("read", &path)(error)),
                }
            }
        }
    }

    /// Copies one file. Returns whether an earlier run had done so.
    fn receive(
        &self,
        from: &Path,
        relative: &Path,
        expected: (u64, u32),
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        match self {
            Target::Folder { directory, .. } => {
                if directory.exists(relative)? {
                    // Files get their names when they are whole, so another one is not from a copy.
                    let path = directory.path().join(relative);
                    let whole = transfer(&path, expected, |_| Ok(())).is_ok();
                    progress.done(0, expected.0);
                    return if whole { Ok(true) } else { Err(DestinationError::InTheWay { path }.into()) };
                }
                let attempt = || {
                    let mut file = Temporary::new(directory, relative)?;
                    transfer(from, expected, |part| {
                        progress.done(0, part.len() as u64);
                        file.write(part)
                    })?;
                    file.publish()
                };
                repeatedly(from, attempt)?;
                Ok(false)
            }
            Target::Store { folder, .. } => {
                let path = folder.join(relative);
                match Object::open(&path) {
                    // Uploaded by an earlier run, or by another program.
                    Ok(_) => {
                        let whole = transfer(&path, expected, |_| Ok(())).is_ok();
                        progress.done(0, expected.0);
                        return if whole { Ok(true) } else { Err(DestinationError::InTheWay { path }.into()) };
                    }
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Error::io("read", &path)(error));
                    }
                    Err(_) => {}
                }
                let attempt = || {
                    let mut upload = Upload::new(&path).map_err(Error::io("write", &path))?;
                    transfer(from, expected, |part| {
                        progress.done(0, part.len() as u64);
                        upload.write(part).map_err(Error::io("write", &path))
                    })?;
                    upload.finish().map_err(Error::io("write", &path))
                };
                repeatedly(from, attempt)?;
                Ok(false)
            }
        }
    }

    /// Writes a small file.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn publish(&self, relative: &Path, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Target::Folder { directory, .. } => {
                let folder = relative.parent().unwrap_or(Path::new(""));
                let folder = directory.create_folder(folder)?;
                publish(directory, relative, bytes)?;
                folder.sync()
            }
            Target::Store { folder, .. } => {
                let path = folder.join(relative);
                shardtool_store::put(&path, bytes.to_vec(), Existing::Replace).map_err(Error::io("write", &path))
            }
        }
    }

    /// Puts the manifest in place, which makes the copy a dataset.
    fn finish(&self, json: &[u8]) -> Result<(), Error> {
        match self {
            Target::Folder { directory, .. } => {
                directory.folder(names::INDEX_FOLDER)?.sync()?;
                directory.sync()?;
                publish(directory, Path::new(names::MANIFEST), json)?;
                directory.sync()
            }
            Target::Store { folder, manifest } => {
                let path = folder.join(names::MANIFEST);
                if let Err(error) = shardtool_store::put(&path, json.to_vec(), *manifest) {
                    // Another copy may have won; and after a lost answer, this one may have.
                    match parse_manifest(&path) {
                        Ok((found, _)) => same(&found, json, folder)?,
                        Err(_) => return Err(Error::io("write", &path)(error)),
                    }
                }
                let claim = folder.join(CLAIM);
                shardtool_store::remove(&claim).map_err(Error::io("remove", &claim))
            }
        }
    }
}

/// The object that says which dataset is being copied to a folder of a store: the CRC of its manifest.
pub(crate) const CLAIM: &str = "_copy.json";

/// Claims a folder of a store for a dataset, before anything else is written: another copy of the same dataset may continue,
/// one of another dataset is refused. Also finds out whether the store refuses to replace an object.
fn claim(folder: &Path, json: &[u8], existing: Existing) -> Result<(), Error> {
    let path = folder.join(CLAIM);
    let own = format!("{{\"manifest_crc32c\": \"{:08x}\"}}\n", crc32c(json)).into_bytes();
    let put = || shardtool_store::put(&path, own.clone(), existing);
    let exists = |result: &io::Result<()>| result.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::AlreadyExists);
    let ignored = |result: &io::Result<()>| match result {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::Unsupported,
    };
    let first = put();
    if existing == Existing::Keep && !exists(&first) && (first.is_ok() || ignored(&first)) && ignored(&put()) {
        let _ = shardtool_store::remove(&path);
        return Err(Error::io("write", folder)(io::Error::other(
            "the store does not refuse to replace an object, so two writers could both win; add --single-writer if nothing \
             else writes here",
        )));
    }
    if !exists(&first) {
        return first.map_err(Error::io("write", &path));
    }
    let found = shardtool_store::read_whole(&path, 1 << 10).map_err(Error::io("read", &path))?;
    if found.is_some_and(|found| found == own) {
        return Ok(());
    }
    let problem = format!(
        "another dataset is being copied here; if that copy was given up, remove {} and what it left",
        path.display()
    );
    Err(Error::io("write", folder)(io::Error::new(io::ErrorKind::AlreadyExists, problem)))
}

/// Makes further attempts if the bytes of a store differed from the manifest: the network may have changed a bit.
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

fn repeatedly(from: &Path, mut attempt: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    for _ in 0..REFETCHES {
        match attempt() {
            Err(Error::Io { source, .. }) if is_url(from) && source.kind() == io::ErrorKind::InvalidData => {}
            result => return result,
        }
    }
    attempt()
}

/// Returns an error if a destination has another manifest.
fn same(found: &[u8], expected: &[u8], destination: &Path) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(DestinationError::OtherDataset { path: destination.to_owned() }.into()) }
}

/// Reads a file in parts, and compares its length and CRC with those in the manifest.
fn transfer(
    from: &Path,
    (length, crc): (u64, u32),
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let bytes = FileBytes::open(from, Access::Pread).map_err(Error::of_file)?;
    let differs = |what: &str, expected: String, found: String| {
        let text =
            format!("{what} {expected} expected by the manifest, {found} found (`shardtool verify` lists the damage)");
        Err(Error::io("copy", from)(io::Error::new(io::ErrorKind::InvalidData, text)))
    };
    if bytes.len() != length {
        return differs("length", length.to_string(), bytes.len().to_string());
    }
    let (mut at, mut found, mut buffer) = (0, Crc32c::new(), vec![]);
    while at < length {
        let end = length.min(at + PART_BYTES as u64);
        bytes.read_into(at..end, &mut buffer).map_err(Error::of_file)?;
        found.update(&buffer);
        take(&buffer)?;
        at = end;
    }
    let found = found.value();
    if found == crc { Ok(()) } else { differs("CRC", format!("{crc:08x}"), format!("{found:08x}")) }
}
