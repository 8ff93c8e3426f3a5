//! Finds what names splits inside of a source that becomes one split: a column of which each value is the name of a split, the top folders of
//! the names in a tar or list, and the names of images in one folder.

use super::listing::Listing;
use super::split_names::{is_same, is_split};
use crate::error::SourceError;
use crate::options::SplitNames;
use crate::sample::Values;
use crate::{Error, Options};
use std::collections::{BTreeMap, BTreeSet};

/// Names of columns that say the split of a sample, in lower case. There other words (`holdout`, `unlabeled`) are splits, too, if one of the
/// known names occurs.
const COLUMNS: [&str; 10] =
    ["split", "splits", "subset", "partition", "usage", "set", "phase", "data_split", "dataset_split", "image_set"];

/// Different values of a column that is named for splits that are kept.
const MOST: usize = 64;

/// The values by column, as long as all of them are names of splits; of a column that is named for splits, all.
#[derive(Default)]
pub(crate) struct SplitMarks(BTreeMap<String, Option<BTreeSet<String>>>);

fn is_for_splits(column: &str) -> bool {
    let last = column.rsplit('/').next().unwrap_or_default();
    COLUMNS.contains(&&*last.trim().to_lowercase())
}

impl SplitMarks {
    /// Adds the value that a sample has in a column.
    pub(crate) fn add(&mut self, column: &str, values: &Values) {
        if is_for_splits(column) {
            let names = self.0.entry(column.to_owned()).or_insert_with(|| Some(BTreeSet::new())).as_mut();
            let names = names.filter(|names| names.len() < MOST);
            if let (Values::Bytes(text), Some(names)) = (values, names)
                && !text.trim_ascii().is_empty()
            {
                names.insert(String::from_utf8_lossy(text.trim_ascii()).into_owned());
            }
            return;
        }
        match (self.0.get_mut(column), values) {
            (Some(None), _) | (_, Values::Missing) => {}
            (known, values) => {
                let name = match values {
                    Values::Bytes(bytes) => {
                        std::str::from_utf8(bytes).ok().map(str::trim).filter(|name| is_split(name))
                    }
                    _ => None,
                };
                match (known, name) {
                    (Some(Some(names)), Some(name)) if names.contains(name) => {}
                    (Some(Some(names)), Some(name)) => drop(names.insert(name.to_owned())),
                    (Some(known), _) => *known = None,
                    (None, name) => {
                        let names = name.map(|name| BTreeSet::from([name.to_owned()]));
                        self.0.insert(column.to_owned(), names);
                    }
                }
            }
        }
    }

    /// Adds what was found in another file.
    pub(crate) fn join(&mut self, other: SplitMarks) {
        for (column, theirs) in other.0 {
            match (self.0.get_mut(&column), theirs) {
                (Some(Some(names)), Some(theirs)) => names.extend(theirs),
                (Some(known), _) => *known = None,
                (None, theirs) => drop(self.0.insert(column, theirs)),
            }
        }
    }

    /// Refuses marks of other splits than `split`, unless the user says that names are not those of splits.
    ///
    /// # Errors
    /// [`SourceError::SplitMarks`].
    pub(crate) fn check(self, split: &str, options: &Options) -> Result<(), Error> {
        if options.split_names == SplitNames::Ignored {
            return Ok(());
        }
        let named = self.0.into_iter().filter_map(|(column, names)| Some((column, names?)));
        let named = named.filter(|(_, names)| names.iter().any(|name| is_split(name)));
        let is_other = |name: &String| {
            let word = name.to_lowercase();
            let word = word.trim_end_matches(|c: char| !c.is_alphabetic());
            !is_same(word, &split.to_lowercase())
        };
        match named.into_iter().find(|(_, names)| names.iter().any(is_other)) {
            Some((column, names)) => {
                let names = names.into_iter().collect::<Vec<_>>().join(", ");
                let (path, split) = (options.source.clone(), split.to_owned());
                Err(Error::Source(SourceError::SplitMarks { path, column, names, split }))
            }
            None => Ok(()),
        }
    }
}

/// What may name the split of a sample, besides columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedBy {
    Nothing,
    /// The path of its image: the first folder below those that all have in common, or the name of the file.
    Path,
}

/// Returns what messages call the part of a path that may name a split, and that part.
fn named(path: &str) -> (&'static str, &str) {
    match path.split_once('/') {
        Some((folder, _)) => ("the first folder of the paths", folder),
        None => {
            let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
            let end = stem.find(|c: char| !c.is_alphabetic()).unwrap_or(stem.len());
            // `test_001` is named for a split, `test_tube` for something else.
            ("the first word of the file names", if is_split(stem) { &stem[..end] } else { "" })
        }
    }
}

/// Returns the length of the folders at the beginning of all paths.
fn common<'p>(mut paths: impl Iterator<Item = &'p str>) -> usize {
    let Some(first) = paths.next() else { return 0 };
    let folders = |path: &str| path.rfind('/').map_or(0, |at| at + 1);
    paths.fold(folders(first), |length, path| {
        let same = first.bytes().zip(path.bytes()).take(length).take_while(|(a, b)| a == b).count();
        folders(&first[..same])
    })
}

/// Refuses a listing with a column, or with names of files or folders, that name other splits than `split`.
///
/// # Errors
/// [`SourceError::SplitMarks`].
pub(super) fn check(listing: &Listing, named_by: NamedBy, split: &str, options: &Options) -> Result<(), Error> {
    let mut marks = SplitMarks::default();
    let paths = || listing.entries.iter().map(|entry| listing.relative_path(entry).trim_start_matches("./"));
    if named_by == NamedBy::Path {
        let length = common(paths());
        // Folders above the list have names for other reasons.
        let shared =
            paths().next().map(|path| &path[..length]).filter(|path| !path.starts_with('/') && !path.contains("://"));
        if let Some(folder) = shared.into_iter().flat_map(|path| path.rsplit('/')).find(|folder| is_split(folder)) {
            marks.add("the folder of all paths", &Values::text(folder));
        }
        for path in paths() {
            let (column, word) = named(&path[length..]);
            marks.add(column, &Values::text(word));
        }
    }
    for entry in &listing.entries {
        for ((column, _), values) in listing.schema.columns.iter().zip(&entry.values) {
            marks.add(column, values);
        }
    }
    marks.check(split, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(columns: &[(&str, &str)], split: &str) -> bool {
        let mut marks = SplitMarks::default();
        columns.iter().for_each(|(column, value)| marks.add(column, &Values::text(value)));
        marks.check(split, &Options::new("source", "dataset")).is_err()
    }

    #[test]
    fn a_column_of_other_splits_is_refused() {
        assert!(refused(&[("split", "train"), ("split", "val")], "train"));
        assert!(refused(&[("Usage", "Test")], "train"));
        assert!(refused(&[("year", "val2017")], "train"));
        assert!(!refused(&[("split", "Training"), ("split", "train2017")], "train"));
        assert!(!refused(&[("split", "validation")], "val"));
        // In a column that is named for splits, other words are splits, too.
        assert!(refused(&[("split", "holdout"), ("split", "train"), ("split", "test")], "train"));
        assert!(refused(&[("Subset", "train"), ("Subset", "unlabeled")], "train"));
        assert!(!refused(&[("set", "1"), ("set", "2")], "train"));
        // A word among others is a value like any other.
        assert!(!refused(&[("word", "train"), ("word", "bus"), ("word", "test")], "train"));
    }

    #[test]
    fn files_are_one_column_together() {
        let of = |column, value| {
            let mut marks = SplitMarks::default();
            marks.add(column, &Values::text(value));
            marks
        };
        let mut both = of("split", "train");
        both.join(of("split", "test"));
        assert!(both.check("train", &Options::new("source", "dataset")).is_err());
        let mut word = of("word", "test");
        word.join(of("word", "bus"));
        assert!(word.check("train", &Options::new("source", "dataset")).is_ok());
    }
}
