//! Where a dataset is written: a folder, or a folder of a store. Packing uses only these operations, so that both have the
//! same files with the same bytes, written in the same order.
//!
//! | module | responsibility |
//! |---|---|
//! | `folder` | a folder: files are renamed to their names when they are durable; locks are locked files |
//! | `nowhere` | keeps nothing: to compare what would be written |
//! | `store` | a folder of a store: objects exist when they are whole; a lock is an object |
//! | `claim` | the object that says which process writes a split |
//! | `owner` | which process that is, and whether it has ended |
//! | `probe` | finds out what a store does with conditions |

mod claim;
mod folder;
mod nowhere;
mod owner;
mod probe;
mod store;

pub(crate) use folder::{parse_manifest, read_manifest, replace_manifest};
pub(crate) use nowhere::Nowhere;
pub(crate) use store::StoreFolder;

use crate::Error;
use crate::copy::is_own_folder;
use shardtool_format::manifest::{self, Manifest, Shard};
use shardtool_format::names;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The lock that processes share which change a dataset.
pub(crate) const CHANGE_LOCK: &str = ".change.lock";

/// Refuses a web server or the Hugging Face Hub as the destination. Sends no request.
///
/// # Errors
/// [`Error::Io`] of the kind `Unsupported`, and of URLs that are wrong.
pub(crate) fn check_writable(destination: &Path) -> Result<(), Error> {
    let written = || match shardtool_store::is_url(destination) && !shardtool_store::is_writable(destination)? {
        true if shardtool_store::is_listed(destination)? => {
            Err(io::Error::new(ErrorKind::Unsupported, "the Hugging Face Hub is only read"))
        }
        true => Err(io::Error::new(ErrorKind::Unsupported, "web servers are only read")),
        false => Ok(()),
    };
    written().map_err(Error::io("write", destination))
}

/// A folder of a dataset. Paths are relative to it. Clones refer to the same folder.
pub(crate) trait Place: Clone + Send + Sync + Sized {
    /// A file that is being written.
    type File: NewFile;
    /// Held while a split is written.
    type Lock: Send + Sync;
    /// How many files are looked at, or removed, at once.
    const AT_ONCE: NonZeroUsize;

    /// Opens a folder for reading; `None` if it does not exist. (In stores, folders always exist.)
    ///
    /// # Errors
    /// [`Error::Io`].
    fn open(path: &Path) -> Result<Option<Self>, Error>;

    /// Creates the folder if it does not exist, and takes the lock of this name for a process that writes a part of the
    /// dataset.
    ///
    /// # Errors
    /// [`DestinationError`](crate::DestinationError) if another process has the lock or the whole dataset;
    /// [`Error::Io`].
    fn begin(path: &Path, lock: &str, single_writer: bool) -> Result<(Self, Self::Lock), Error>;

    /// As [`Place::begin`], for one of several processes that write shards of the same split: they do not keep each other
    /// away, only processes that write the whole split.
    ///
    /// # Errors
    /// As [`Place::begin`].
    fn join(path: &Path, lock: &str, single_writer: bool) -> Result<(Self, Self::Lock), Error>;

    /// Removes what processes left that had joined with this lock and were killed. Returns how many are still running, in
    /// stores. The caller has the lock.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn remove_joined(&self, lock: &str) -> Result<usize, Error>;

    /// Returns the folder's path or URL.
    fn path(&self) -> &Path;

    /// Returns the bytes of a small file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`DestinationError::Link`](crate::DestinationError), [`Error::Io`].
    fn read(&self, relative: &Path) -> Result<Option<Vec<u8>>, Error>;

    /// Passes the bytes of a file to `take`, part by part. Returns whether it exists.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn read_parts(&self, relative: &Path, take: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;

    /// Returns the length of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn length(&self, relative: &Path) -> Result<Option<u64>, Error>;

    /// Returns the names in a folder inside, in byte order; none if it does not exist.
    ///
    /// # Errors
    /// [`DestinationError::Link`](crate::DestinationError), [`Error::Io`].
    fn names(&self, folder: &Path) -> Result<Vec<OsString>, Error>;

    /// As [`Place::names`], if asking for all names at once is faster than asking for each.
    ///
    /// # Errors
    /// As [`Place::names`].
    fn names_at_once(&self, folder: &Path) -> Result<Option<HashSet<OsString>>, Error>;

    /// Begins a file. It exists under its name when it is published.
    ///
    /// # Errors
    /// [`DestinationError::Link`](crate::DestinationError), [`Error::Io`].
    fn create(&self, relative: &Path) -> Result<Self::File, Error>;

    /// Writes a small file. It exists whole or not at all.
    ///
    /// # Errors
    /// As [`Place::create`].
    fn publish(&self, relative: &Path, bytes: &[u8]) -> Result<(), Error>;

    /// Writes a small file, whole, unless a file of this name exists. Returns whether it was written.
    ///
    /// # Errors
    /// As [`Place::create`].
    fn publish_new(&self, relative: &Path, bytes: &[u8]) -> Result<bool, Error>;

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// [`DestinationError::Link`](crate::DestinationError), [`Error::Io`].
    fn remove(&self, relative: &Path) -> Result<(), Error>;

    /// Removes files that exist, in this order as far as one is removed at a time.
    ///
    /// # Errors
    /// As [`Place::remove`].
    fn remove_all(&self, relative: &[PathBuf]) -> Result<(), Error> {
        relative.iter().try_for_each(|path| self.remove(path))
    }

    /// Creates a folder inside, if it does not exist.
    ///
    /// # Errors
    /// As [`Place::create`].
    fn create_folder(&self, relative: &Path) -> Result<(), Error>;

    /// Removes a folder inside, if it exists and is empty.
    ///
    /// # Errors
    /// As [`Place::remove`].
    fn remove_folder(&self, relative: &Path) -> Result<(), Error>;

    /// Makes the names in a folder durable: this one, or one inside.
    ///
    /// # Errors
    /// As [`Place::create`].
    fn sync(&self, folder: &Path) -> Result<(), Error>;

    /// Removes the unfinished files that killed processes left in a folder, for files whose names are `ours`.
    ///
    /// # Errors
    /// As [`Place::remove`].
    fn remove_abandoned(&self, folder: &Path, ours: &dyn Fn(&str) -> bool) -> Result<(), Error>;

    /// Returns the manifest; `None` if it does not exist.
    ///
    /// # Errors
    /// [`DestinationError::Manifest`](crate::DestinationError), [`Error::Io`].
    fn manifest(&self) -> Result<Option<Manifest>, Error>;

    /// Replaces the manifest with the result of `edit`, unless that is `None`. No edit of another process is lost:
    /// `edit` is called again if another one came first. If one of both has versions, the manifest before is kept, and the new one is
    /// the version after it ([`succeed`]), made by `command`.
    ///
    /// # Errors
    /// Those of `edit`, of reading and of writing.
    fn edit_manifest(&self, command: &str, edit: Edit<'_>) -> Result<(), Error>;
}

/// Writes the manifest of a version that is about to be replaced to its place among the earlier ones. Returns the manifest that
/// replaces it: the next version. Without versions in one of both, returns `after`.
///
/// # Errors
/// [`DestinationError`](crate::DestinationError), [`Error::Io`].
pub(crate) fn succeed<P: Place>(
    place: &P,
    (json, before): (&[u8], &Manifest),
    after: Manifest,
    command: &str,
) -> Result<Manifest, Error> {
    if before.versions.is_none() && after.versions.is_none() {
        return Ok(after);
    }
    let relative = names::version_path(before.version_number());
    place.create_folder(Path::new(names::VERSIONS_FOLDER))?;
    // The same bytes, if a killed process, or one that was faster, has written them.
    place.publish(&relative, json)?;
    place.sync(Path::new(names::VERSIONS_FOLDER))?;
    place.sync(Path::new(""))?;
    let next = before.next_version(json, command);
    let versions = next.versions.map(|next| match after.versions {
        // A command that knows of no versions.
        None => manifest::Versions { stored: after.features.clone(), columns: vec![], dropped: vec![], ..*next },
        versions if versions == before.versions => *next,
        Some(own) => manifest::Versions { number: next.number, parent: next.parent, command: next.command, ..*own },
    });
    Ok(Manifest { requires: next.requires, versions: versions.map(Box::new), ..after })
}

/// Returns the manifests of the earlier versions that are kept, with their numbers.
///
/// # Errors
/// [`DestinationError::Manifest`](crate::DestinationError) for a damaged one: what it names is then unknown; [`Error::Io`].
pub(crate) fn kept_manifests<P: Place>(place: &P) -> Result<Vec<(u64, Manifest)>, Error> {
    let mut kept = vec![];
    for name in place.names(Path::new(names::VERSIONS_FOLDER))? {
        let number = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<u64>().ok());
        let Some(number) = number.filter(|number| names::version_path(*number).file_name() == Some(&name)) else {
            continue;
        };
        let relative = names::version_path(number);
        let Some(json) = place.read(&relative)? else { continue };
        let manifest = Manifest::parse(&json).map_err(|source| {
            let path = place.path().join(&relative);
            Error::Destination(crate::DestinationError::Manifest { path, source })
        })?;
        kept.push((number, manifest));
    }
    Ok(kept)
}

/// Returns the files that a manifest names, by their paths in the dataset: of virtual shards only the index, and none of shards that lie
/// in another dataset.
///
/// A clone may be put where the dataset was that it names: its shards are then its own.
pub(crate) fn files_of<'m>(folder: &Path, manifest: &'m Manifest) -> impl Iterator<Item = PathBuf> + use<'m> {
    let others = manifest.sources().into_iter().filter(|source| !is_own_folder(source, folder));
    let others: Vec<String> = others.map(str::to_owned).collect();
    let shards = manifest.splits.iter().flat_map(|split| &split.shards);
    let is_own = move |shard: &&Shard| {
        shard.foreign.dataset().is_none_or(|dataset| !others.iter().any(|other| other == dataset))
    };
    shards
        .filter(is_own)
        .flat_map(files_of_shard)
        .chain(manifest.parts().map(|part| Path::new(names::COLUMNS_FOLDER).join(&part.file)))
}

/// Returns the files of a shard of the dataset: of a virtual one only the index.
pub(crate) fn files_of_shard(shard: &Shard) -> impl Iterator<Item = PathBuf> + use<> {
    let file = (!shard.foreign.is_virtual).then(|| PathBuf::from(&shard.file));
    file.into_iter().chain([names::index_path(Path::new(&shard.file))])
}

/// Makes a new manifest of the present one.
pub(crate) type Edit<'a> = &'a mut dyn FnMut(Option<Manifest>) -> Result<Option<Manifest>, Error>;

/// A file that is being written. If it is dropped before it is published, it is removed.
pub(crate) trait NewFile: Send {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Passes the bytes written so far on, as far as that can be done without waiting.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn flush(&mut self) -> Result<(), Error>;

    /// Returns where the bytes can be read that were written so far, which are all.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn readable(&mut self) -> Result<PathBuf, Error>;

    /// Makes the bytes durable and gives the file its name, which is durable after [`Place::sync`].
    ///
    /// # Errors
    /// [`DestinationError::Link`](crate::DestinationError), [`Error::Io`].
    fn publish(self) -> Result<(), Error>;
}
