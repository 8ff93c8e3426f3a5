//! All rules that assign ids to classes.
//!
//! A file of class names (`--classes`) fixes the ids; without one, ids follow the byte order of the names, or the order
//! of COCO's category ids ([`ClassIds`]). Integer labels are ids after the offset is subtracted ([`id_of_stored`]). For
//! existing records, names come from the pairs of label and text in them ([`ClassNames`]).

use crate::error::SourceError;
use crate::{Error, Reason};
use icu_normalizer::ComposingNormalizerBorrowed;
use shardtool_format::example::Example;
use shardtool_format::names;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Class names and their ids, from 0.
#[derive(Clone)]
pub(crate) struct ClassIds {
    names: Vec<String>,
    ids: HashMap<String, i64>,
    /// The file of class names; without one, the names are those of the source.
    file: Option<PathBuf>,
}

impl ClassIds {
    /// Reads the names from a file, one per line; ids follow the order of lines.
    ///
    /// # Errors
    /// [`Error::Io`], [`SourceError::ClassesFile`].
    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(Error::io("read", file))?;
        let names: Vec<_> = text.strip_prefix('\u{feff}').unwrap_or(&text).lines().map(str::to_owned).collect();
        let problem = |line: usize, problem| {
            Error::Source(SourceError::ClassesFile { path: file.to_owned(), line: line + 1, problem })
        };
        let mut ids = HashMap::with_capacity(names.len());
        for (id, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(problem(id, "an empty class name"));
            }
            if ids.insert(name.clone(), id as i64).is_some() {
                return Err(problem(id, "duplicate class name"));
            }
        }
        if names.is_empty() {
            return Err(problem(0, "no class names; expected one per line"));
        }
        Ok(ClassIds { names, ids, file: Some(file.to_owned()) })
    }

    /// Makes ids for the names of a source, in their byte order.
    ///
    /// # Errors
    /// [`SourceError::AlikeClasses`] for two names that look the same.
    pub(crate) fn sorted(names: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        let mut looks = HashMap::new();
        for name in &names {
            if let Some(first) = looks.insert(look(name), name) {
                let (first, second) = (first.clone(), name.clone());
                return Err(Error::Source(SourceError::AlikeClasses { first, second }));
            }
        }
        Ok(Self::in_order(names, None))
    }

    /// Makes ids for names in this order; `file` names the classes, if a file does.
    pub(crate) fn in_order(names: Vec<String>, file: Option<PathBuf>) -> Self {
        let ids = names.iter().enumerate().map(|(id, name)| (name.clone(), id as i64)).collect();
        ClassIds { names, ids, file }
    }

    /// Returns the id of a class name of the source.
    ///
    /// # Errors
    /// [`SourceError::UnknownClass`] if the file of class names does not contain it.
    pub(crate) fn id(&self, name: &str) -> Result<i64, Error> {
        self.ids.get(name).copied().ok_or_else(|| self.unknown(name))
    }

    /// Checks that the file of class names has a name for an id.
    ///
    /// # Errors
    /// [`SourceError::UnknownClass`].
    pub(crate) fn check(&self, id: i64) -> Result<(), Error> {
        let known = usize::try_from(id).is_ok_and(|id| id < self.names.len());
        if known { Ok(()) } else { Err(self.unknown(&id.to_string())) }
    }

    /// Checks that the names which the source gives to ids are those of the file.
    ///
    /// # Errors
    /// [`SourceError::ClassNames`].
    pub(crate) fn check_names<'n>(&self, named: impl IntoIterator<Item = (i64, &'n str)>) -> Result<(), Error> {
        for (id, theirs) in named {
            let ours = usize::try_from(id).ok().and_then(|id| self.names.get(id));
            if ours.is_none_or(|ours| ours != theirs) {
                let (theirs, ours) = (theirs.to_owned(), ours.cloned());
                let file = self.file.clone().unwrap_or_default();
                return Err(Error::Source(SourceError::ClassNames { id, theirs, ours, file }));
            }
        }
        Ok(())
    }

    fn unknown(&self, class: &str) -> Error {
        let file = self.file.clone().unwrap_or_default();
        Error::Source(SourceError::UnknownClass { class: class.to_owned(), classes: self.names.len(), file })
    }

    /// Returns the id of one sample's class name.
    ///
    /// # Errors
    /// [`Reason::Class`] if no class has this name.
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

/// Returns the class id of an integer label: the label minus `offset`, if `classes` has a name for it.
///
/// # Errors
/// [`Reason::Label`].
pub(crate) fn id_of_stored(stored: i64, offset: i64, classes: Option<&ClassIds>) -> Result<i64, Reason> {
    match stored.checked_sub(offset) {
        Some(id) if id >= 0 && classes.is_none_or(|classes| classes.check(id).is_ok()) => Ok(id),
        _ => Err(Reason::Label { label: stored.to_string(), offset }),
    }
}

/// Returns the class ids of category ids, which are their ranks, and the classes' names in that order.
pub(crate) fn by_rank(mut categories: Vec<(i64, String)>) -> (HashMap<i64, i64>, Vec<String>) {
    categories.sort_by_key(|(category, _)| *category);
    let ids = categories.iter().enumerate().map(|(class, (category, _))| (*category, class as i64)).collect();
    (ids, categories.into_iter().map(|(_, name)| name).collect())
}

/// Returns the class id of a label that a program gives to a writer, whose classes have these names; `None` if it is
/// not one of them. A writer without names takes every id from 0.
pub(crate) fn id_of_label(label: Result<i64, &str>, names: &[String]) -> Option<i64> {
    match label {
        Ok(id) => usize::try_from(id).ok().filter(|at| names.is_empty() || *at < names.len()).map(|_| id),
        Err(name) => names.iter().position(|class| class == name).map(|at| at as i64),
    }
}

/// Returns what a reader sees of a name: without spaces at its ends, with one space where there are several, and in one Unicode form (NFC).
fn look(name: &str) -> String {
    let words: Vec<_> = name.split_whitespace().collect();
    ComposingNormalizerBorrowed::new_nfc().normalize(&words.join(" ")).into_owned()
}

/// Ids from here on are not taken for class ids, since most of the names up to them would be invented.
const MOST: i64 = 1 << 20;

/// Collects the class names of existing records: pairs of label and text.
pub(crate) struct ClassNames {
    label: String,
    offset: i64,
    names: BTreeMap<i64, String>,
    /// Whether a label has two names, or an id is out of range. The names are then not used.
    contradiction: bool,
}

impl ClassNames {
    /// Reads class ids from the feature `label`, minus `offset`.
    pub(crate) fn new(label: &str, offset: i64) -> Self {
        ClassNames { label: label.to_owned(), offset, names: BTreeMap::new(), contradiction: false }
    }

    /// Adds the pair of a record.
    pub(crate) fn observe(&mut self, example: &Example<'_>) {
        let text = example.bytes(names::CLASS_TEXT).and_then(|text| std::str::from_utf8(text).ok());
        if let (Some(label), Some(text)) = (example.int64(&self.label), text) {
            self.put(label.saturating_sub(self.offset), text);
        }
    }

    /// Adds a class id and its name.
    pub(crate) fn put(&mut self, id: i64, name: &str) {
        match self.names.get(&id) {
            Some(known) => self.contradiction |= known != name,
            None if (0..MOST).contains(&id) => drop(self.names.insert(id, name.to_owned())),
            None => self.contradiction = true,
        }
    }

    /// Adds the pairs of another shard.
    pub(crate) fn join(&mut self, other: ClassNames) {
        self.contradiction |= other.contradiction;
        other.names.iter().for_each(|(id, name)| self.put(*id, name));
    }

    /// Returns the names that records give to ids; none if they contradict each other.
    pub(crate) fn named(&self) -> impl Iterator<Item = (i64, &str)> {
        let named = self.names.iter().filter(|_| !self.contradiction);
        named.map(|(id, name)| (*id, name.as_str()))
    }

    /// Returns the names by id, or no names if records contradict each other. An id without records below the largest
    /// one gets the name `class-<id>`.
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
    fn names_gaps_and_drops_contradicting_names() {
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
