//! Class names and their ids.

use crate::error::SourceError;
use crate::{Error, Reason};
use shardtool_format::example::Example;
use shardtool_format::names;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Class names, numbered from 0.
pub(crate) struct ClassIds {
    names: Vec<String>,
    ids: HashMap<String, i64>,
    /// The file that gives the names; without one, names are the source's own.
    file: Option<PathBuf>,
}

impl ClassIds {
    /// The names in a file, one a line, in the file's order.
    ///
    /// # Errors
    /// [`Error::Io`], [`SourceError::ClassesFile`].
    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(Error::io("read", file))?;
        let names: Vec<_> = text.lines().map(str::to_owned).collect();
        let problem = |line: usize, problem| {
            Error::Source(SourceError::ClassesFile { path: file.to_owned(), line: line + 1, problem })
        };
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
        Ok(ClassIds { names, ids, file: Some(file.to_owned()) })
    }

    /// The names that a source uses: ids follow their byte order.
    pub(crate) fn sorted(names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        let ids = names.iter().enumerate().map(|(id, name)| (name.clone(), id as i64)).collect();
        ClassIds { names, ids, file: None }
    }

    /// The id of a class that a source uses.
    ///
    /// # Errors
    /// [`SourceError::UnknownClass`] if the file of class names lacks it.
    pub(crate) fn id(&self, name: &str) -> Result<i64, Error> {
        self.ids.get(name).copied().ok_or_else(|| self.unknown(name))
    }

    /// Checks that an id that a source uses has a name.
    ///
    /// # Errors
    /// [`SourceError::UnknownClass`].
    pub(crate) fn check(&self, id: i64) -> Result<(), Error> {
        let known = usize::try_from(id).is_ok_and(|id| id < self.names.len());
        if known { Ok(()) } else { Err(self.unknown(&id.to_string())) }
    }

    fn unknown(&self, class: &str) -> Error {
        let file = self.file.clone().unwrap_or_default();
        Error::Source(SourceError::UnknownClass { class: class.to_owned(), classes: self.names.len(), file })
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

/// Ids beyond this are no class ids: they would make a list of mostly invented names.
const MOST: i64 = 1 << 20;

/// Collects pairs of label and class name.
pub(crate) struct ClassNames {
    label: String,
    offset: i64,
    names: BTreeMap<i64, String>,
    /// One label with two names, or an id out of range: then records name no classes.
    contradiction: bool,
}

impl ClassNames {
    /// ClassIds told by the feature `label`, whose value minus `offset` is the class id.
    pub(crate) fn new(label: &str, offset: i64) -> Self {
        ClassNames { label: label.to_owned(), offset, names: BTreeMap::new(), contradiction: false }
    }

    /// Takes what a record tells.
    pub(crate) fn see(&mut self, example: &Example<'_>) {
        let text = example.bytes(names::CLASS_TEXT).and_then(|text| std::str::from_utf8(text).ok());
        if let (Some(label), Some(text)) = (example.int64(&self.label), text) {
            self.put(label.saturating_sub(self.offset), text);
        }
    }

    /// Takes a class id and its name.
    pub(crate) fn put(&mut self, id: i64, name: &str) {
        match self.names.get(&id) {
            Some(known) => self.contradiction |= known != name,
            None if (0..MOST).contains(&id) => drop(self.names.insert(id, name.to_owned())),
            None => self.contradiction = true,
        }
    }

    /// Takes what the records of another shard told.
    pub(crate) fn join(&mut self, other: ClassNames) {
        self.contradiction |= other.contradiction;
        other.names.iter().for_each(|(id, name)| self.put(*id, name));
    }

    /// The names by id; none where records contradict each other. A class without records between others has the name
    /// `class-<id>`, since only its name is lost.
    pub(crate) fn into_names(self) -> Vec<String> {
        let last = self.names.last_key_value().map_or(-1, |(id, _)| *id);
        let named: Vec<_> =
            (0..=last).map(|id| self.names.get(&id).cloned().unwrap_or(format!("class-{id}"))).collect();
        let mut unique: Vec<_> = named.iter().collect();
        unique.sort_unstable();
        let twice = unique.windows(2).any(|w| w[0] == w[1]);
        if self.contradiction || twice { vec![] } else { named }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_names_and_contradictions_none() {
        let mut names = ClassNames::new("label", 1);
        names.put(2, "cat");
        names.put(0, "dog");
        names.put(2, "cat");
        let mut more = ClassNames::new("label", 1);
        more.put(3, "emu");
        names.join(more);
        assert_eq!(names.into_names(), ["dog", "class-1", "cat", "emu"]);
        let mut names = ClassNames::new("label", 0);
        names.put(0, "dog");
        names.put(0, "cat");
        assert!(names.into_names().is_empty());
        let mut names = ClassNames::new("label", 0);
        names.put(i64::MAX, "dog");
        assert!(names.into_names().is_empty());
    }
}
