//! Where a dataset is copied to: a folder, or one of a store.

use crate::Error;
use crate::Progress;
use crate::commit::{Directory, Lock, Temporary, publish, remove_abandoned};
use crate::error::DestinationError;
use crate::place::check_writable;
use shardtool_format::checksum::{Crc32c, crc32c};
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use shardtool_read::{Access, FileBytes, parse_manifest};
use shardtool_store::{Existing, Object, PART_BYTES, REFETCHES, Upload, is_url};
use std::io;
use std::path::{Path, PathBuf};

/// Where a dataset is copied to.
pub(super) enum Target {
    Folder { directory: Directory, _lock: Lock },
    Store { folder: PathBuf, manifest: Existing },
}

impl Target {
    /// Returns `None` if the destination has the same manifest already.
    pub(super) fn open(destination: &Path, json: &[u8], single_writer: bool) -> Result<Option<Self>, Error> {
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
                    let manifest = if single_writer { Existing::Replace } else { Existing::Keep };
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
        for folder in ["", names::INDEX_FOLDER, names::COLUMNS_FOLDER, names::VERSIONS_FOLDER] {
            remove_abandoned(&directory, folder, |_| true)?;
        }
        Ok(Some(Target::Folder { directory, _lock: lock }))
    }

    /// Returns whether an earlier run has copied the shard to a store: its index, which is copied after it, is whole.
    pub(super) fn has(&self, shard: &Shard) -> Result<bool, Error> {
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
    pub(super) fn receive(
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
    pub(super) fn publish(&self, relative: &Path, bytes: &[u8]) -> Result<(), Error> {
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
    pub(super) fn finish(&self, json: &[u8]) -> Result<(), Error> {
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
