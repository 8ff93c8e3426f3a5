//! Finds the shards of a dataset, from its manifest or from the files in its folder.

use super::salvaged::{self, Records};
use crate::Error;
use crate::commit::Directory;
use crate::split::files::plan_file;
use shardtool_format::manifest::{Manifest, Shard};
use shardtool_format::names;
use std::io;
use std::path::Path;

/// A shard to check.
pub(super) struct ListedShard {
    pub(super) split: String,
    pub(super) file: String,
    /// Its line in a valid manifest.
    pub(super) line: Option<Shard>,
    /// The file of which it is a salvaged copy, if that exists and the manifest does not name it.
    pub(super) original: Option<String>,
}

/// Returns the shards that a manifest names.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn of_manifest(directory: &Directory, manifest: &Manifest) -> Result<Vec<ListedShard>, Error> {
    let mut listed = vec![];
    for split in &manifest.splits {
        for shard in &split.shards {
            let mut original = None;
            for name in salvaged::originals(&shard.file) {
                let named = manifest.splits.iter().flat_map(|split| &split.shards).any(|shard| shard.file == name);
                if !named && is_file(directory, &name)? {
                    original = Some(name);
                    break;
                }
            }
            let (split, file) = (split.name.clone(), shard.file.clone());
            listed.push(ListedShard { split, file, line: Some(shard.clone()), original });
        }
    }
    Ok(listed)
}

/// Returns the shards in a folder, which are files named `.tfrecord` and others that have an index, without salvaged
/// copies of others; and the splits that an interrupted pack left.
///
/// # Errors
/// [`Error::Name`] for a file that a manifest cannot name; [`Error::Io`].
pub(super) fn of_folder(directory: &Directory) -> Result<(Vec<ListedShard>, Vec<String>), Error> {
    let mut files = vec![];
    for entry in directory.entries()? {
        let Ok(name) = entry.name.into_string() else { continue };
        if name.starts_with('.') || entry.is_folder {
            continue;
        }
        let shard = name.ends_with(".tfrecord") || directory.exists(names::index_path(Path::new(&name)))?;
        if shard && is_file(directory, &name)? {
            files.push(name);
        }
    }
    let (mut known, mut left) = (vec![], vec![]);
    for file in &files {
        let split = names::split_of(file);
        if directory.exists(plan_file(split))? {
            left.push(split.to_owned());
        } else if !is_copy(directory, file, &files)? {
            names::check_file_name("shard file", file)?;
            names::check_split_name(split)?;
            known.push(ListedShard { split: split.to_owned(), file: file.clone(), line: None, original: None });
        }
    }
    left.dedup();
    // The manifest's order: splits by name, shards by name in each.
    known.sort_by(|a, b| (&a.split, &a.file).cmp(&(&b.split, &b.file)));
    Ok((known, left))
}

/// Returns whether a file is a salvaged copy of another one: it has records of that one, or that one lost some of its.
fn is_copy(directory: &Directory, file: &str, files: &[String]) -> Result<bool, Error> {
    for original in salvaged::originals(file).iter().filter(|name| files.contains(name)) {
        let read = |name: &str| Records::read(&directory.path().join(name));
        let (copy, original) = (read(file)?, read(original)?);
        if copy.are_among(&original) || original.are_among(&copy) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a name is that of a file, or of a link to one; `false` if it does not exist or is a folder.
///
/// # Errors
/// [`Error::Io`], also if it is something else, or a link to nothing.
fn is_file(directory: &Directory, name: &str) -> Result<bool, Error> {
    if !directory.exists(name)? {
        return Ok(false);
    }
    let path = directory.path().join(name);
    let meta = std::fs::metadata(&path).map_err(Error::io("read", &path))?;
    if !meta.is_file() && !meta.is_dir() {
        let special = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(Error::io("read", &path)(special));
    }
    Ok(meta.is_file())
}
