//! Why a record of a dataset does not become a file: because of what it holds or its name, or because the
//! system fails.

use crate::commit::Directory;
use crate::error::fault;
use crate::{Error, Reason};
use std::fs::File;
use std::path::Path;

/// Why a sample was not taken.
pub(crate) enum Refusal {
    /// For a reason that concerns only this record.
    Record(Reason),
    /// Nothing further can be written.
    All(Error),
}

/// Creates the file of a record, at a path relative to a folder, and the folders above it.
///
/// # Errors
/// [`Refusal::Record`] if the file exists or cannot have this name; [`Refusal::All`] otherwise.
pub(crate) fn create(folder: &Directory, path: &Path) -> Result<File, Refusal> {
    folder.create_file(path).map_err(|e| match fault::of_name(&e) {
        Some(_) => Refusal::All(Error::io("create", &folder.path().join(path))(e)),
        None => Refusal::Record(Reason::CreateFile(e)),
    })
}
