//! Classes of several splits: compares them by name, and maps the stored labels of each split to the class ids of a batch.

use crate::error::{ClassDifference, Error, Result, SampleError};
use crate::options::Classes;
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::Manifest;
use shardtool_read::Split;
use std::collections::HashMap;

/// The labels of splits, resolved.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedClasses {
    /// Names of classes by class id; empty if they have numbers only.
    names: Vec<String>,
    /// For each split.
    maps: Vec<ClassMap>,
    /// Ids by name, if texts are mapped to ids.
    by_name: Option<HashMap<String, i64>>,
}

/// Maps the labels of a split.
#[derive(Debug, Clone, Default)]
struct ClassMap {
    /// Stored label of the class with id 0 in the split.
    offset: i64,
    /// Class id in batches by class id in the split; `None` if they are equal.
    ids: Option<Vec<i64>>,
}

impl ResolvedClasses {
    /// Compares the classes of splits.
    ///
    /// # Errors
    /// [`Error::Classes`] with the first difference; [`Error::UnknownClass`] and [`Error::ClassTwice`] if names are given.
    pub(crate) fn new(splits: &[Split], classes: &Classes) -> Result<Self> {
        let lists: Vec<_> = splits.iter().map(|split| split.manifest().classes.as_slice()).collect();
        let mut named = lists.iter().filter(|list| !list.is_empty());
        let first = named.next().copied().unwrap_or_default();
        let names = match classes {
            Classes::Equal => {
                let other = (1..splits.len()).find(|n| lists[*n] != lists[0]);
                other.map_or(Ok(lists[0].to_vec()), |other| Err(difference(splits, 0, other)))?
            }
            Classes::Ids if named.all(|list| *list == first) => first.to_vec(),
            Classes::Ids => vec![],
            Classes::Union => union(splits)?,
            Classes::Names(names) => {
                check_unique(names)?;
                names.clone()
            }
        };
        let by_name = matches!(classes, Classes::Union | Classes::Names(_));
        let ids: HashMap<&str, i64> = names.iter().map(String::as_str).zip(0..).collect();
        let map = |split: &Split| {
            let manifest = split.manifest();
            Ok(ClassMap {
                offset: manifest.label_offset,
                ids: if by_name { table(split, manifest, &ids)? } else { None },
            })
        };
        let maps = splits.iter().map(map).collect::<Result<_>>()?;
        Ok(ResolvedClasses { names, maps, by_name: None })
    }

    /// As [`ResolvedClasses::new`], where texts are the names of classes, and stored `ids` may be used, too. Without ids, names that are
    /// given need not be those of the splits.
    ///
    /// # Errors
    /// As [`ResolvedClasses::new`].
    pub(crate) fn of_names(splits: &[Split], classes: &Classes, ids: bool) -> Result<Self> {
        let resolved = match classes {
            Classes::Names(names) if !ids => {
                check_unique(names)?;
                ResolvedClasses { names: names.clone(), maps: vec![ClassMap::default(); splits.len()], by_name: None }
            }
            classes => ResolvedClasses::new(splits, classes)?,
        };
        let by_name = resolved.names.iter().cloned().zip(0..).collect();
        Ok(ResolvedClasses { by_name: Some(by_name), ..resolved })
    }

    /// Returns the names of classes, by class id; empty if they have numbers only.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the id of a class; `None` if no class has the name, or texts are not mapped.
    pub(crate) fn id(&self, name: &[u8]) -> Option<i64> {
        self.by_name.as_ref()?.get(std::str::from_utf8(name).ok()?).copied()
    }

    /// Returns the fingerprint of a run that delivers these class ids of its first `count` splits: that of the splits, unless a
    /// split's ids, or texts, are mapped.
    pub(crate) fn fingerprint(&self, splits: u32, count: usize) -> u32 {
        let maps = &self.maps[..count];
        if maps.iter().all(|map| map.ids.is_none()) && self.by_name.is_none() {
            return splits;
        }
        let mut bytes = splits.to_le_bytes().to_vec();
        for name in self.names.iter().filter(|_| self.by_name.is_some()) {
            bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        for map in maps {
            let ids = map.ids.as_deref().unwrap_or_default();
            bytes.extend([ids.len() as i64].iter().chain(ids).flat_map(|id| id.to_le_bytes()));
        }
        crc32c(&bytes)
    }

    /// Replaces stored labels by class ids. An id below 0 stays: such a record has no class.
    ///
    /// # Errors
    /// [`SampleError::Class`] for an id past the names of a split that is mapped by name.
    pub(crate) fn map_labels(&self, split: usize, stored: &mut [i64]) -> std::result::Result<(), SampleError> {
        self.maps[split].map(stored, self.maps[split].offset)
    }

    /// Replaces class ids of objects, which are stored without an offset. As [`ResolvedClasses::map_labels`].
    pub(crate) fn map_objects(&self, split: usize, stored: &mut [i64]) -> std::result::Result<(), SampleError> {
        self.maps[split].map(stored, 0)
    }
}

impl ClassMap {
    fn map(&self, stored: &mut [i64], offset: i64) -> std::result::Result<(), SampleError> {
        for label in stored {
            let id = label.wrapping_sub(offset);
            *label = match &self.ids {
                Some(ids) if id >= 0 => {
                    let mapped = ids.get(id as usize);
                    *mapped.ok_or(SampleError::Class { label: id, classes: ids.len() })?
                }
                _ => id,
            };
        }
        Ok(())
    }
}

/// Checks that no name is given twice.
///
/// # Errors
/// [`Error::ClassTwice`].
fn check_unique(names: &[String]) -> Result<()> {
    let twice = names.iter().enumerate().find(|(n, name)| names[..*n].contains(name));
    twice.map_or(Ok(()), |(_, name)| Err(Error::ClassTwice { class: name.clone() }))
}

/// Returns the ids of a split's classes; `None` if each stays as it is.
fn table(split: &Split, manifest: &Manifest, ids: &HashMap<&str, i64>) -> Result<Option<Vec<i64>>> {
    if manifest.classes.is_empty() {
        return Err(Error::Classes { difference: ClassDifference::Unnamed { split: describe(split) } });
    }
    let id = |class: &String| {
        let found = ids.get(class.as_str()).copied();
        found.ok_or_else(|| Error::UnknownClass { class: class.clone(), split: describe(split) })
    };
    let table: Vec<i64> = manifest.classes.iter().map(id).collect::<Result<_>>()?;
    Ok(if table.iter().copied().eq(0..table.len() as i64) { None } else { Some(table) })
}

/// Returns the names of the first split, then those that the others add.
fn union(splits: &[Split]) -> Result<Vec<String>> {
    let mut names: Vec<String> = vec![];
    let mut known = std::collections::HashSet::new();
    for split in splits {
        names.extend(split.manifest().classes.iter().filter(|name| known.insert(*name)).cloned());
    }
    Ok(names)
}

/// Returns the error of two splits with different classes.
fn difference(splits: &[Split], one: usize, other: usize) -> Error {
    let [a, b] = [one, other].map(|n| splits[n].manifest().classes.as_slice());
    let [first, second] = [one, other].map(|n| describe(&splits[n]));
    let difference = match (a.is_empty(), b.is_empty()) {
        (false, true) => ClassDifference::Numbers { named: first, classes: a.len(), numbers: second },
        (true, false) => ClassDifference::Numbers { named: second, classes: b.len(), numbers: first },
        _ => {
            let label = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
            let [a, b] = [a, b].map(|list| list.get(label).cloned());
            ClassDifference::Names { label, first: (first, a), second: (second, b) }
        }
    };
    Error::Classes { difference }
}

/// Returns how messages name a split: with its dataset, since splits of several datasets may have one name.
pub(crate) fn describe(split: &Split) -> String {
    format!("{} of {}", split.name(), split.folder().display())
}

/// Returns the names of the classes that a loader of these splits delivers, by class id; empty if they have numbers only.
///
/// # Errors
/// As [`labels`], except for the last.
pub fn class_names(splits: &[Split], classes: &Classes) -> Result<Vec<String>> {
    ResolvedClasses::new(splits, classes).map(|resolved| resolved.names)
}

/// Returns the class id of each sample of the splits, in order of their ids, from the indexes; −1 for a record without a class.
///
/// # Errors
/// [`Error::Classes`], [`Error::UnknownClass`], [`Error::ClassTwice`]; [`Error::NoLabel`] if a split has no label in its index.
pub fn labels(splits: &[Split], classes: &Classes) -> Result<Vec<i64>> {
    let resolved = ResolvedClasses::new(splits, classes)?;
    let mut labels = vec![];
    for (number, split) in splits.iter().enumerate() {
        let no_label = || Error::NoLabel { split: describe(split) };
        let feature = split.manifest().label.as_deref().ok_or_else(no_label)?;
        for at in 0..split.entry().shards.len() {
            let (shard, rows) = (split.shard(at)?, split.rows(at)?);
            let column = shard.feature::<i64>(feature)?.ok_or_else(no_label)?;
            labels.extend(
                rows.map(|(_, row)| {
                    let mut label = [column.get(row)?];
                    resolved.map_labels(number, &mut label).ok()?;
                    Some(label[0])
                })
                .map(|label| label.unwrap_or(-1)),
            );
        }
    }
    Ok(labels)
}
