//! What a purge asks of the place of a dataset: what lies there, and what stays there although it is removed.

use super::base;
use super::chosen::Chosen;
use crate::Error;
use crate::commit::Directory;
use crate::place::{self, Place, StoreFolder};
use shardtool_format::names;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// A place whose records can be purged.
pub(super) trait Reach: Place {
    /// Returns all files in the folder, and in folders in it, by their paths in it, ascending. Links are left out.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn all_files(&self) -> Result<Vec<PathBuf>, Error>;

    /// Returns the names of the files and folders in the folder, ascending.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn all_names(&self) -> Result<Vec<PathBuf>, Error>;

    /// Returns whether the bytes of a file stay when it is removed, since it is a link, or has another name.
    fn is_linked(&self, relative: &Path) -> bool;

    /// Returns whether the store names a version of each object that is written: it then keeps the bytes of objects that are replaced or
    /// removed.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn keeps_versions(&self) -> Result<bool, Error>;
}

impl Reach for Directory {
    fn all_files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut files = vec![];
        list(Place::path(self), Path::new(""), &mut files)?;
        files.sort();
        Ok(files)
    }

    fn all_names(&self) -> Result<Vec<PathBuf>, Error> {
        Ok(Place::names(self, Path::new(""))?.into_iter().map(PathBuf::from).collect())
    }

    fn is_linked(&self, relative: &Path) -> bool {
        let found = fs::symlink_metadata(Place::path(self).join(relative));
        found.is_ok_and(|found| found.is_symlink() || found.nlink() > 1)
    }

    fn keeps_versions(&self) -> Result<bool, Error> {
        Ok(false)
    }
}

impl Reach for StoreFolder {
    fn all_files(&self) -> Result<Vec<PathBuf>, Error> {
        let listed = shardtool_store::list_below(self.path()).map_err(Error::io("list", self.path()))?;
        let mut files: Vec<_> = listed.into_iter().map(PathBuf::from).collect();
        files.sort();
        Ok(files)
    }

    fn all_names(&self) -> Result<Vec<PathBuf>, Error> {
        let first = |path: &PathBuf| match path.components().next() {
            Some(Component::Normal(name)) => Some(PathBuf::from(name)),
            _ => None,
        };
        let names: BTreeSet<_> = self.all_files()?.iter().filter_map(first).collect();
        Ok(names.into_iter().collect())
    }

    fn is_linked(&self, _: &Path) -> bool {
        false
    }

    fn keeps_versions(&self) -> Result<bool, Error> {
        let manifest = self.path().join(names::MANIFEST);
        shardtool_store::keeps_versions(&manifest).map_err(Error::io("read", &manifest))
    }
}

/// Lists the files in a folder, and in folders in it, without following links.
fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let path = root.join(folder);
    for entry in fs::read_dir(&path).map_err(Error::io("list", &path))? {
        let entry = entry.map_err(Error::io("list", &path))?;
        let kind = entry.file_type().map_err(Error::io("list", &path))?;
        let relative = folder.join(entry.file_name());
        if kind.is_dir() {
            list(root, &relative, files)?;
        } else if kind.is_file() {
            files.push(relative);
        }
    }
    Ok(())
}

/// Returns those of these files, and of the shards with purged rows, whose bytes stay when they are removed.
pub(super) fn links<P: Reach>(place: &P, files: &[PathBuf], chosen: &Chosen) -> Vec<PathBuf> {
    let shards = chosen.affected().map(|(file, _)| PathBuf::from(file));
    let mut all: Vec<PathBuf> = files.iter().cloned().chain(shards).collect();
    all.sort();
    all.dedup();
    all.retain(|path| place.is_linked(path));
    all
}

/// Returns what lies in the dataset's folder and is not the dataset's.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn others<P: Reach>(place: &P) -> Result<Vec<PathBuf>, Error> {
    let newest = base::manifest(place)?;
    let mut named: Vec<PathBuf> = place::files_of(place.path(), &newest).collect();
    for (_, manifest) in place::kept_manifests(place)? {
        named.extend(place::files_of(place.path(), &manifest));
    }
    let folders = [names::INDEX_FOLDER, names::COLUMNS_FOLDER, names::VERSIONS_FOLDER].map(PathBuf::from);
    let known = |path: &PathBuf| {
        let name = path.to_string_lossy();
        named.contains(path)
            || folders.contains(path)
            || name == names::MANIFEST
            || name.starts_with(".pack")
            || name.ends_with(".lock")
            || (name.starts_with("rejected-") && name.ends_with(".jsonl"))
    };
    Ok(place.all_names()?.into_iter().filter(|path| !known(path)).collect())
}
