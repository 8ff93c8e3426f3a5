//! The model of a dataset: a list of records for each version.

use serde::{Deserialize, Serialize};
use shardtool_format::manifest::DType;
use std::collections::{BTreeMap, BTreeSet};

/// The values of a feature, as text, one each.
pub(crate) type Texts = Vec<String>;

/// A record of the model: features with at least one value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) key: String,
    pub(crate) features: BTreeMap<String, Texts>,
    /// The row in a shard: another one for each time that the record was written. Not compared.
    pub(crate) row: u64,
}

impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.features) == (&other.key, &other.features)
    }
}

/// A version of the model: its records, its types, and the rows of its shards that are deleted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) records: Vec<Sample>,
    pub(crate) types: BTreeMap<String, DType>,
    /// Keys by row.
    pub(crate) deleted: BTreeMap<u64, String>,
    /// The keys of each view.
    pub(crate) views: BTreeMap<String, BTreeSet<String>>,
}

impl Version {
    /// Deletes the records for which `is_gone` holds.
    pub(crate) fn delete(&mut self, is_gone: impl Fn(&Sample) -> bool) {
        let gone = self.records.iter().filter(|sample| is_gone(sample));
        self.deleted.extend(gone.map(|sample| (sample.row, sample.key.clone())));
        self.records.retain(|sample| !is_gone(sample));
        self.prune();
    }

    /// Removes keys from views that are no records any more.
    pub(crate) fn prune(&mut self) {
        let keys: BTreeSet<&String> = self.records.iter().map(|sample| &sample.key).collect();
        self.views.values_mut().for_each(|view| view.retain(|key| keys.contains(key)));
    }

    /// Returns the rows of its shards, with their keys, and whether each is a record of the version.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &str, bool)> {
        let live = self.records.iter().map(|sample| (sample.row, sample.key.as_str(), true));
        live.chain(self.deleted.iter().map(|(row, key)| (*row, key.as_str(), false)))
    }
}

/// The versions that are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Model {
    pub(crate) versions: BTreeMap<u64, Version>,
    pub(crate) tags: BTreeMap<String, u64>,
    pub(crate) next_key: u64,
    pub(crate) next_row: u64,
    /// Keys that were purged and are remembered.
    pub(crate) purged: BTreeSet<String>,
}

impl Model {
    pub(crate) fn newest(&self) -> (u64, &Version) {
        self.versions.last_key_value().map(|(number, version)| (*number, version)).expect("a dataset has a version")
    }

    /// Gives records that were written the next rows.
    pub(crate) fn written(&mut self, records: &mut [Sample]) {
        for record in records {
            record.row = self.next_row;
            self.next_row += 1;
        }
    }

    /// Removes every row whose record is deleted. Returns the versions that had one.
    ///
    /// Rows with the key of a deleted record are removed too, but for those of the newest version, and, if that has the key, rows that
    /// were first written in the version of the last deletion, or later.
    pub(crate) fn purge(&mut self) -> Vec<u64> {
        // The versions that have each row, ascending, and whether it is a record there.
        let mut rows: BTreeMap<u64, (String, Vec<(u64, bool)>)> = BTreeMap::new();
        for (number, version) in &self.versions {
            for (row, key, live) in version.rows() {
                rows.entry(row).or_insert((key.to_owned(), vec![])).1.push((*number, live));
            }
        }
        let is_deleted = |row: &u64| rows[row].1.last().is_some_and(|(_, live)| !live);
        let mut deleted: BTreeMap<&String, u64> = BTreeMap::new();
        for (key, versions) in rows.iter().filter(|(row, _)| is_deleted(row)).map(|(_, row)| row) {
            let since = versions.iter().rev().take_while(|(_, live)| !live).last().expect("it is deleted").0;
            let last = deleted.entry(key).or_insert(since);
            *last = since.max(*last);
        }
        let newest = self.newest().1;
        let live: BTreeSet<u64> = newest.records.iter().map(|sample| sample.row).collect();
        let there: BTreeSet<&String> = newest.records.iter().map(|sample| &sample.key).collect();
        let is_gone = |row: &u64| {
            let (key, versions) = &rows[row];
            let Some(last) = deleted.get(key) else { return false };
            !live.contains(row) && (is_deleted(row) || versions[0].0 < *last || !there.contains(key))
        };
        let gone: BTreeSet<u64> = rows.keys().copied().filter(is_gone).collect();
        let keys: BTreeMap<u64, String> = rows.iter().map(|(row, (key, _))| (*row, key.clone())).collect();
        let taken: BTreeSet<&String> = newest.records.iter().map(|sample| &sample.key).collect();
        let forbidden: Vec<String> =
            gone.iter().map(|row| keys[row].clone()).filter(|key| !taken.contains(key)).collect();
        self.purged.extend(forbidden);
        let mut changed = vec![];
        for (number, version) in &mut self.versions {
            if version.rows().any(|(row, ..)| gone.contains(&row)) {
                changed.push(*number);
            }
            version.records.retain(|sample| !gone.contains(&sample.row));
            version.deleted.retain(|row, _| !gone.contains(row));
            version.prune();
        }
        changed
    }

    pub(crate) fn push(&mut self, version: Version) {
        let number = self.newest().0 + 1;
        self.versions.insert(number, version);
    }
}
