//! Which rows of which shards are purged: those of records that are deleted, in every shard that a kept version names.

use super::{Purged, base, place};
use crate::Error;
use crate::commit::Directory;
use crate::place::Place;
use crate::progress::{Progress, check};
use crate::writer::keys::Keys;
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
    /// The keys of each split, in the order of shards and rows.
    keys: BTreeMap<String, Vec<Vec<u8>>>,
    /// Those of them that records of the newest version have, since others have taken the place of purged ones.
    taken: HashMap<String, Keys>,
}

/// A shard that a kept version names.
pub(super) struct KeptShard {
    /// The last version that names it.
    version: usize,
    /// Its split there.
    split: usize,
    /// Its number in the split.
    number: usize,
    /// The purged rows, ascending.
    pub(super) rows: Vec<u64>,
}

impl Chosen {
    /// Reads the deleted rows of all kept versions. A record is purged if the last version that names its shard has deleted it; then
    /// all rows of the split with its key are, but for those that the newest version has.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Stopped`], [`Error::Io`].
    pub(super) fn new(directory: &Directory, progress: &dyn Progress) -> Result<Self, Error> {
        let newest = base::manifest(directory)?;
        let mut manifests: BTreeMap<u64, Manifest> = place::kept_manifests(directory)?.into_iter().collect();
        manifests.insert(newest.version_number(), newest);
        let open = |manifest| Dataset::of_manifest(Place::path(directory), manifest, Options::default());
        let versions: Vec<Dataset> = manifests.into_values().map(open).collect();
        let mut chosen = Chosen { versions, shards: BTreeMap::new(), keys: BTreeMap::new(), taken: HashMap::new() };
        for (version, dataset) in chosen.versions.iter().enumerate() {
            for (split, of) in dataset.splits().iter().enumerate() {
                for (number, shard) in of.entry().shards.iter().enumerate() {
                    chosen.shards.insert(shard.file.clone(), KeptShard { version, split, number, rows: vec![] });
                }
            }
        }
        chosen.find_keys(progress)?;
        chosen.find_rows(progress)?;
        Ok(chosen)
    }

    /// Returns the split of a shard, in the last version that names it.
    pub(super) fn split(&self, shard: &KeptShard) -> &Split {
        &self.versions[shard.version].splits()[shard.split]
    }

    /// Opens a shard.
    pub(super) fn open(&self, shard: &KeptShard) -> Result<Arc<Shard>, Error> {
        Ok(self.split(shard).shard(shard.number)?)
    }

    /// Returns the number of a shard in its split.
    pub(super) fn number(shard: &KeptShard) -> usize {
        shard.number
    }

    fn find_keys(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        let mut keys: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for kept in self.shards.values() {
            check(progress)?;
            let split = self.split(kept);
            let Some(deleted) = split.deleted_rows(kept.number)? else { continue };
            let shard = split.shard(kept.number)?;
            let of_split = keys.entry(split.name().to_owned()).or_default();
            for row in (0..deleted.records()).filter(|row| deleted.contains(*row)) {
                of_split.push(shard.key(row)?.into_owned());
            }
        }
        self.keys = keys;
        Ok(())
    }

    fn find_rows(&mut self, progress: &dyn Progress) -> Result<(), Error> {
        let mut sets: HashMap<&str, Keys> = HashMap::new();
        for (split, keys) in &self.keys {
            let set = sets.entry(split).or_default();
            keys.iter().for_each(|key| {
                set.insert(key);
            });
        }
        let mut found: Vec<(String, Vec<u64>)> = vec![];
        let mut taken: HashMap<String, Keys> = HashMap::new();
        for (file, kept) in &self.shards {
            check(progress)?;
            let split = self.split(kept);
            let Some(keys) = sets.get(split.name()) else { continue };
            let (shard, deleted) = (split.shard(kept.number)?, split.deleted_rows(kept.number)?);
            let is_newest = kept.version + 1 == self.versions.len();
            let mut rows = vec![];
            for row in 0..shard.records() {
                let live = is_newest && !deleted.as_ref().is_some_and(|deleted| deleted.contains(row));
                let key = shard.key(row)?;
                match (keys.contains(&key), live) {
                    (false, _) => {}
                    (true, false) => rows.push(row),
                    (true, true) => {
                        taken.entry(split.name().to_owned()).or_default().insert(&key);
                    }
                }
            }
            found.push((file.clone(), rows));
        }
        self.taken = taken;
        for (file, rows) in found {
            self.shards.get_mut(&file).expect("found in it").rows = rows;
        }
        Ok(())
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
        self.keys.values().flatten().map(Vec::as_slice)
    }

    /// Returns the keys that no record of the newest version has.
    pub(super) fn forbidden(&self) -> Vec<&[u8]> {
        let all = self.keys.iter().flat_map(|(split, keys)| keys.iter().map(move |key| (split, key.as_slice())));
        let taken = |split: &str, key: &[u8]| self.taken.get(split).is_some_and(|taken| taken.contains(key));
        all.filter(|(split, key)| !taken(split, key)).map(|(_, key)| key).collect()
    }

    /// Returns what is known before anything is written.
    pub(super) fn purged(&self) -> Purged {
        let affected: Vec<_> = self.affected().map(|(file, _)| file).collect();
        let has = |manifest: &&Manifest| {
            let mut files = manifest.splits.iter().flat_map(|split| &split.shards).map(|shard| &shard.file);
            files.any(|file| affected.binary_search(&file).is_ok())
        };
        let distinct = |keys: &Vec<Vec<u8>>| {
            let mut set = Keys::default();
            keys.iter().filter(|key| set.insert(key)).count() as u64
        };
        let splits = self.keys.iter().map(|(split, keys)| (split.clone(), distinct(keys)));
        Purged {
            splits: if affected.is_empty() { vec![] } else { splits.collect() },
            versions: self.manifests().filter(has).map(Manifest::version_number).collect(),
            shards: affected.len() as u64,
            ..Purged::default()
        }
    }
}
