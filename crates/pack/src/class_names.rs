//! Class names, as far as the records tell them: each label with the text beside it.

use shardtool_format::example::Example;
use shardtool_format::names;
use std::collections::BTreeMap;

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
    /// Classes told by the feature `label`, whose value minus `offset` is the class id.
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
