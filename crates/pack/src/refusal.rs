//! Why a record of a dataset does not become a file: because of what it holds or its name, or because the
//! system fails.

use crate::error::fault;
use crate::{Error, Reason};
use std::io;
use std::path::Path;

/// Why a sample was not taken.
pub(crate) enum Refusal {
    /// For a reason that concerns only this record.
    Record(Reason),
    /// Nothing further can be written.
    All(Error),
}

impl Refusal {
    /// Wraps the error of creating the file of a record: of the record, if the file exists or cannot have this name.
    pub(crate) fn of_creation(path: &Path, error: io::Error) -> Self {
        match fault::of_name(&error) {
            Some(_) => Refusal::All(Error::io("create", path)(error)),
            None => Refusal::Record(Reason::CreateFile(error)),
        }
    }
}
