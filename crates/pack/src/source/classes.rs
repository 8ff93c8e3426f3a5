//! Class names and their ids.

use crate::{Error, Reason};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Class names, numbered from 0.
pub(crate) struct Classes {
    names: Vec<String>,
    ids: HashMap<String, i64>,
    /// The file that gives the names; without one, names are the source's own.
    file: Option<PathBuf>,
}

impl Classes {
    /// The names in a file, one a line, in the file's order.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::ClassesFile`].
    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(Error::io("read", file))?;
        let names: Vec<_> = text.lines().map(str::to_owned).collect();
        let problem = |line: usize, problem| Error::ClassesFile { path: file.to_owned(), line: line + 1, problem };
        let mut ids = HashMap::with_capacity(names.len());
        for (id, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(problem(id, "an empty class name"));
            }
            if ids.insert(name.clone(), id as i64).is_some() {
                return Err(problem(id, "a class that an earlier line names"));
            }
        }
        if names.is_empty() {
            return Err(problem(0, "no class names; write one a line"));
        }
        Ok(Classes { names, ids, file: Some(file.to_owned()) })
    }

    /// The names that a source uses: ids follow their byte order.
    pub(crate) fn sorted(names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        let ids = names.iter().enumerate().map(|(id, name)| (name.clone(), id as i64)).collect();
        Classes { names, ids, file: None }
    }

    /// The id of a class that a source uses.
    ///
    /// # Errors
    /// [`Error::UnknownClass`] if the file of class names lacks it.
    pub(crate) fn id(&self, name: &str) -> Result<i64, Error> {
        self.ids.get(name).copied().ok_or_else(|| self.unknown(name))
    }

    /// Checks that an id that a source uses has a name.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub(crate) fn check(&self, id: i64) -> Result<(), Error> {
        let known = usize::try_from(id).is_ok_and(|id| id < self.names.len());
        if known { Ok(()) } else { Err(self.unknown(&id.to_string())) }
    }

    fn unknown(&self, class: &str) -> Error {
        let file = self.file.clone().unwrap_or_default();
        Error::UnknownClass { class: class.to_owned(), classes: self.names.len(), file }
    }

    /// The id of a class of one sample.
    ///
    /// # Errors
    /// [`Reason::Class`] if there is none of that name.
    pub(crate) fn known(&self, name: &str) -> Result<i64, Reason> {
        self.ids.get(name).copied().ok_or_else(|| Reason::Class { class: name.to_owned() })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}
