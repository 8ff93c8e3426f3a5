//! Which rows of which shards are purged: those of records that are deleted, in every shard that a kept version names.

use super::{Purged, base, place};
use crate::Error;
use crate::place::Place;
use crate::progress::{Progress, check};
use crate::writer::keys::Keys;
use shardtool_format::DeletedRows;
use shardtool_format::manifest::Manifest;
use shardtool_read::{Dataset, Options, Shard, Split};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What is purged.
pub(super) struct Chosen {
    /// Each kept version, ascending; the newest is the last.
    versions: Vec<Dataset>,
    /// Each shard that a kept version names, by its file.
    pub(super) shards: BTreeMap<String, KeptShard>,
    /// The keys of each split, with the version in which a record with the key was last deleted.
    keys: BTreeMap<String, BTreeMap<Vec<u8>, usize>>,
    /// Those of them that records of the newest version have, since others have taken the place of purged ones.
    taken: HashMap<String, Keys>,
}

/// A shard that kept versions name.
pub(super) struct KeptShard {
    /// The versions, ascending; in each the number of the split, and of the shard in it.
    named: Vec<(usize, usize, usize)>,
    /// The purged rows, ascending.
    pub(super) rows: Vec<u64>,
}

impl KeptShard {
    /// Returns the last version that names it, its split there, and its number in the split.
    fn last(&self) -> (usize, usize, usize) {
        self.named[self.named.len() - 1]
    }
}

impl Chosen {
    /// Reads the deleted rows of all kept versions. A record is purged if the last version that names its shard has deleted it. Then all
    /// rows of the split with its key are; if a record of the newest version has the key too, those that are deleted, and those of shards
    /// that are older than the last deletion.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Stopped`], [`Error::Io`].
    pub(super) fn new<P: Place>(place: &P, progress: &dyn Progress) -> Result<Self, Error> {
        let newest = base::manifest(place)?;
        let mut manifests: BTreeMap<u64, Manifest> = place::kept_manifests(place)?.into_iter().collect();
        manifests.insert(newest.version_number(), newest);
        let open = |manifest| Dataset::of_manifest(place.path(), manifest, Options::default());
        let versions: Vec<Dataset> = manifests.into_values().map(open).collect();
        let mut shards: BTreeMap<String, KeptShard> = BTreeMap::new();
        for (version, dataset) in versions.iter().enumerate() {
            for (split, of) in dataset.splits().iter().enumerate() {
                for (number, shard) in of.entry().shards.iter().enumerate() {
                    let kept = shards.entry(shard.file.clone());
                    let kept = kept.or_insert_with(|| KeptShard { named: vec![], rows: vec![] });
                    kept.named.push((version, split, number));
                }
            }
        }
        let mut chosen = Chosen { versions, shards, keys: BTreeMap::new(), taken: HashMap::new() };
        chosen.find_keys(progress)?;
        chosen.find_taken(progress)?;
        chosen.find_rows(progress)?;
        Ok(chosen)
    }

    /// Returns the split of a shard, in the last version that names it.
    pub(super) fn split(&self, shard: &KeptShard) -> &Split {
        let (version, split, _) = shard.last();
        &self.versions[version].splits()[split]
    }

    /// Opens a shard.
    pub(super) fn open(&self, shard: &KeptShard) -> Result<Arc<Shard>, Error> {
        Ok(self.split(shard).shard(Self::number(shard))?)
    }

    /// Returns the number of a shard in its split.
    pub(super) fn number(shard: &KeptShard) -> usize {
        shard.last().2
    }

    fn deleted(&self, (version, split, number): (usize, usize, usize)) -> Result<Option<Arc<DeletedRows>>, Error> {
        Ok(self.versions[version].splits()[split].deleted_rows(number)?)
    }

    fn find_keys(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        let mut keys: BTreeMap<String, BTreeMap<Vec<u8>, usize>> = BTreeMap::new();
        for kept in self.shards.values() {
            check(progress)?;
            let Some(deleted) = self.deleted(kept.last())? else { continue };
            let (split, shard) = (self.split(kept), self.open(kept)?);
            let of_split = keys.entry(split.name().to_owned()).or_default();
            // The version in which each row was deleted for the last time.
            let mut rows: Vec<(u64, usize)> =
                (0..deleted.records()).filter(|row| deleted.contains(*row)).map(|row| (row, kept.last().0)).collect();
            let mut open: Vec<usize> = (0..rows.len()).collect();
            for at in kept.named.iter().rev().skip(1) {
                let before = self.deleted(*at)?;
                open.retain(|row| before.as_ref().is_some_and(|before| before.contains(rows[*row].0)));
                open.iter().for_each(|row| rows[*row].1 = at.0);
            }
            for (row, version) in rows {
                let last = of_split.entry(shard.key(row)?.into_owned()).or_insert(version);
                *last = version.max(*last);
            }
        }
        self.keys = keys;
        Ok(())
    }

    fn find_taken(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        let mut taken: HashMap<String, Keys> = HashMap::new();
        for split in self.versions.iter().rev().take(1).flat_map(Dataset::splits) {
            let Some(keys) = self.keys.get(split.name()) else { continue };
            let of_split = taken.entry(split.name().to_owned()).or_default();
            for number in 0..split.entry().shards.len() {
                check(progress)?;
                let shard = split.shard(number)?;
                for (_, row) in split.rows(number)? {
                    let key = shard.key(row)?;
                    if keys.contains_key(&*key) {
                        of_split.insert(&key);
                    }
                }
            }
        }
        self.taken = taken;
        Ok(())
    }

    fn find_rows(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        let mut found: Vec<(String, Vec<u64>)> = vec![];
        for (file, kept) in &self.shards {
            check(progress)?;
            let split = self.split(kept);
            let Some(keys) = self.keys.get(split.name()) else { continue };
            let (shard, deleted) = (self.open(kept)?, self.deleted(kept.last())?);
            let is_newest = kept.last().0 + 1 == self.versions.len();
            let mut rows = vec![];
            for row in 0..shard.records() {
                let is_deleted = deleted.as_ref().is_some_and(|deleted| deleted.contains(row));
                let key = shard.key(row)?;
                let Some(last) = keys.get(&*key) else { continue };
                let is_older = kept.named[0].0 < *last;
                let is_live = is_newest && !is_deleted;
                if !is_live && (is_deleted || is_older || !self.is_taken(split.name(), &key)) {
                    rows.push(row);
                }
            }
            found.push((file.clone(), rows));
        }
        for (file, rows) in found {
            self.shards.get_mut(&file).expect("found in it").rows = rows;
        }
        Ok(())
    }

    fn is_taken(&self, split: &str, key: &[u8]) -> bool {
        self.taken.get(split).is_some_and(|taken| taken.contains(key))
    }

    /// Returns whether no record is purged.
    pub(super) fn is_empty(&self) -> bool {
        self.affected().next().is_none()
    }

    /// Returns the shards that have purged rows.
    pub(super) fn affected(&self) -> impl Iterator<Item = (&String, &KeptShard)> {
        self.shards.iter().filter(|(_, shard)| !shard.rows.is_empty())
    }

    /// Returns the manifests of all kept versions, ascending.
    pub(super) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.versions.iter().map(Dataset::manifest)
    }

    /// Returns the keys of all splits.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.values().flat_map(BTreeMap::keys).map(Vec::as_slice)
    }

    /// Returns the keys that no record of the newest version has.
    pub(super) fn forbidden(&self) -> Vec<&[u8]> {
        let all = self.keys.iter().flat_map(|(split, keys)| keys.keys().map(move |key| (split, key.as_slice())));
        all.filter(|(split, key)| !self.is_taken(split, key)).map(|(_, key)| key).collect()
    }

    /// Returns what is known before anything is written.
    pub(super) fn purged(&self) -> Purged {
        let affected: Vec<_> = self.affected().map(|(file, _)| file).collect();
        let has = |manifest: &&Manifest| {
            let mut files = manifest.splits.iter().flat_map(|split| &split.shards).map(|shard| &shard.file);
            files.any(|file| affected.binary_search(&file).is_ok())
        };
        let splits = self.keys.iter().map(|(split, keys)| (split.clone(), keys.len() as u64));
        Purged {
            splits: if affected.is_empty() { vec![] } else { splits.collect() },
            versions: self.manifests().filter(has).map(Manifest::version_number).collect(),
            shards: affected.len() as u64,
            ..Purged::default()
        }
    }
}
