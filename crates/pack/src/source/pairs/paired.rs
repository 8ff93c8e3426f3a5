//! The files that belong to images.

use std::collections::HashMap;

/// The files of each image, one for each feature.
pub(super) type FilesOfImages = HashMap<String, Vec<PairedFile>>;

/// A file that belongs to an image.
pub(super) enum PairedFile {
    One(String),
    /// A file of this name was expected, and does not exist.
    Missing(String),
    /// There are several.
    Several(Vec<String>),
}

impl PairedFile {
    /// Returns the files that exist.
    pub(super) fn existing(&self) -> &[String] {
        match self {
            PairedFile::One(file) => std::slice::from_ref(file),
            PairedFile::Missing(_) => &[],
            PairedFile::Several(files) => files,
        }
    }
}
