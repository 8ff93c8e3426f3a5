//! Listings of images that are annotated in a file each, and reading such files.

use super::listing::Entry;
use crate::error::SourceError;
use crate::input::{Found, Times, place, read_into};
use crate::sample::{ListedFile, Values};
use crate::{Error, Options, Reason, Rejection};
use std::path::Path;

/// Bytes of a file of annotations, at most.
const LIMIT: u64 = 64 << 20;

/// Entries and rejections of one split.
pub(super) struct Images<'a> {
    root: &'a Path,
    options: &'a Options,
    pub(super) entries: Vec<Entry>,
    pub(super) rejected: Vec<Rejection>,
}

impl<'a> Images<'a> {
    /// `root` is the folder to which paths are relative.
    pub(super) fn new(root: &'a Path, options: &'a Options) -> Self {
        Images { root, options, entries: vec![], rejected: vec![] }
    }

    /// Adds the image at a path, with its values.
    ///
    /// # Errors
    /// Those of [`Rejection::new`].
    pub(super) fn add(
        &mut self,
        key: String,
        path: String,
        values: Result<Box<[Values]>, Reason>,
    ) -> Result<(), Error> {
        let added = values.and_then(|values| Ok((values, file(self.root, &path)?)));
        match added {
            Ok((values, found)) => {
                let found = (&found, Times::of(self.options));
                self.entries.push(Entry::new(key, Some(path), None, values, found));
                Ok(())
            }
            Err(reason) => self.reject(key, reason),
        }
    }

    /// Rejects an image.
    ///
    /// # Errors
    /// Those of [`Rejection::new`].
    pub(super) fn reject(&mut self, key: String, reason: Reason) -> Result<(), Error> {
        self.rejected.push(Rejection::new(key, reason)?);
        Ok(())
    }
}

fn file(root: &Path, path: &str) -> Result<Found, Reason> {
    let found = Found::at(&place(root, path)).map_err(Reason::of_stat)?;
    if found.is_file() { Ok(found) } else { Err(Reason::NotAFile) }
}

/// Returns the file at a path, whose bytes are a value.
///
/// # Errors
/// [`Reason::NotAFile`], and those of examining it.
pub(super) fn attached(root: &Path, path: String, options: &Options) -> Result<Values, Reason> {
    let found = file(root, &path)?;
    let (size, version) = (found.len(), found.version(Times::of(options)));
    Ok(Values::File(Box::new(ListedFile { path: path.into(), size, version })))
}

/// Reads a file of annotations, whose name from the root is `name`, as text. A byte-order mark is left out.
///
/// # Errors
/// [`Reason::Annotation`] if it is too long or not UTF-8, and those of opening it.
pub(super) fn text(root: &Path, name: &str) -> Result<String, Reason> {
    let mut bytes = vec![];
    read_into(&place(root, name), LIMIT + 1, &mut bytes).map_err(Reason::of_open)?;
    if bytes.len() as u64 > LIMIT {
        return Err(problem(name, None, format!("more than {} MiB", LIMIT >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        problem(name, Some(1 + valid.iter().filter(|byte| **byte == b'\n').count() as u64), "not UTF-8".to_owned())
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// Reads a list, or another file that describes a source, as [`text`] does.
///
/// # Errors
/// [`SourceError::Annotations`] for one that is not a regular file, too long, or not UTF-8.
pub(super) fn list_text(path: &Path) -> Result<String, Error> {
    let name = path.to_str().ok_or_else(|| wrong(path, "its name is not UTF-8; rename it"))?;
    text(Path::new(""), name).map_err(|reason| wrong(path, shardtool_format::Chain(&reason).to_string()))
}

/// Returns the reason for a problem in a file of annotations, at a line from 1.
pub(super) fn problem(file: &str, line: Option<u64>, problem: String) -> Reason {
    Reason::Annotation { file: file.to_owned(), line, problem }
}

/// Returns the error of a source, or of a file that describes it.
pub(super) fn wrong(path: &Path, problem: impl Into<String>) -> Error {
    Error::Source(SourceError::Annotations { path: path.to_owned(), problem: problem.into() })
}
