//! What a folder holds, judged by its first file.

use super::detect::{other_files, subfolders};
use crate::Error;
use crate::array::EXTENSIONS;
use std::path::Path;

/// How deep the first file is searched.
const DEPTH: usize = 6;

/// Returns whether the first file in a folder is an array, such as a flow.
///
/// # Errors
/// [`Error::Io`] if a folder cannot be listed.
pub(super) fn has_arrays(folder: &Path) -> Result<bool, Error> {
    let first = first_extension(folder)?;
    Ok(EXTENSIONS.contains(&&*first))
}

/// Returns the extension of the first file in a folder, in lower case; empty if the folder has none.
///
/// # Errors
/// [`Error::Io`] if a folder cannot be listed.
pub(super) fn first_extension(folder: &Path) -> Result<String, Error> {
    let first = first_file(folder, DEPTH)?.unwrap_or_default();
    Ok(Path::new(&first).extension().unwrap_or_default().to_string_lossy().to_lowercase())
}

fn first_file(folder: &Path, depth: usize) -> Result<Option<String>, Error> {
    if let Some(first) = other_files(folder)?.into_iter().next() {
        return Ok(Some(first));
    }
    for inner in subfolders(folder)?.iter().filter(|_| depth > 0) {
        if let Some(first) = first_file(&folder.join(inner), depth - 1)? {
            return Ok(Some(first));
        }
    }
    Ok(None)
}
