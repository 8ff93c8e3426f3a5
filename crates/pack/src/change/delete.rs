//! Deletes records: a bitmap for each shard that has some of them. The shards stay as they are.

use super::base;
use super::commit::{Basis, commit, each_shard, names_file};
use super::parts_file::{Holds, PartsFile};
use super::{ChangeOptions, NewVersion};
use crate::error::ShardError;
use crate::place::{Place, StoreFolder};
use crate::progress::{Progress, check};
use crate::{Error, commit::Directory};
use shardtool_format::manifest;
use shardtool_read::{Conditions, Dataset, Split};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// The lock that processes share which change a dataset.
pub(super) const LOCK: &str = ".change.lock";
/// Keys and ids that messages list.
const LISTED: usize = 5;

/// Which records are deleted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordsToDelete {
    /// Those for which all of these conditions hold (`FEATURE=VALUE`).
    Where(Vec<String>),
    /// Those that have these keys.
    Keys(Vec<Vec<u8>>),
    /// Those with these ids, which are numbers in a split.
    Ids(Vec<u64>),
}

/// Options of [`delete`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeleteOptions {
    /// The splits; default: all. Ids need exactly one.
    pub splits: Vec<String>,
    /// Which records.
    pub records: RecordsToDelete,
    /// Whether keys and ids that no record has are counted. Default: they are an error.
    pub ignore_unknown: bool,
    /// What all changes have.
    pub change: ChangeOptions,
}

impl DeleteOptions {
    /// Returns options for these records of all splits.
    pub fn new(records: RecordsToDelete) -> Self {
        DeleteOptions { splits: vec![], records, ignore_unknown: false, change: ChangeOptions::default() }
    }
}

/// What a deletion found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The new version; `None` if nothing was deleted, or nothing was to be written.
    pub version: Option<NewVersion>,
    /// Deleted records of each split.
    pub splits: Vec<(String, u64)>,
    /// Keys and ids that no record has.
    pub unknown: u64,
    /// Keys and ids that were given before.
    pub repeated: u64,
    /// Bytes of the new files, without manifests.
    pub bytes: u64,
}

impl Deleted {
    /// Returns the number of deleted records.
    pub fn records(&self) -> u64 {
        self.splits.iter().map(|(_, records)| records).sum()
    }
}

/// Deletes records from the newest version of a dataset.
///
/// # Errors
/// [`ShardError::UnknownRecords`]; [`Error::Read`] for conditions that cannot be parsed;
/// [`DestinationError::CameFirst`](crate::DestinationError), [`DestinationError::Locked`](crate::DestinationError), [`Error::Io`].
pub fn delete(dataset: &Path, options: &DeleteOptions, progress: &dyn Progress) -> Result<Deleted, Error> {
    let dataset = base::open(dataset)?;
    let chosen = Chosen::find(&dataset, options, progress)?;
    if chosen.unknown > 0 && !options.ignore_unknown {
        let (path, unknown, examples) = (base::folder(&dataset), chosen.unknown, chosen.examples);
        return Err(Error::Shard(ShardError::UnknownRecords { path, unknown, examples }));
    }
    if shardtool_store::is_url(dataset.path()) {
        write::<StoreFolder>(&dataset, &chosen, options)
    } else {
        write::<Directory>(&dataset, &chosen, options)
    }
}

/// The rows to delete, of each shard of each split.
#[derive(Default)]
struct Chosen {
    rows: BTreeMap<(usize, usize), Vec<u64>>,
    features: Vec<String>,
    unknown: u64,
    repeated: u64,
    examples: Vec<String>,
}

impl Chosen {
    fn find(dataset: &Dataset, options: &DeleteOptions, progress: &dyn Progress) -> Result<Self, Error> {
        let mut chosen = Chosen::default();
        let splits = base::splits(dataset, &options.splits)?;
        let number = |split: &Split| dataset.splits().iter().position(|other| other.name() == split.name());
        let splits: Vec<(usize, &Split)> =
            splits.into_iter().filter_map(|split| Some((number(split)?, split))).collect();
        match &options.records {
            RecordsToDelete::Where(texts) => chosen.matching(dataset, &splits, texts, progress)?,
            RecordsToDelete::Keys(keys) => chosen.keys(&splits, keys, progress)?,
            RecordsToDelete::Ids(ids) => match splits[..] {
                [(number, split)] => chosen.ids(number, split, ids)?,
                _ => return Err(Error::Option { option: "split", expected: "the split whose ids these are" }),
            },
        }
        Ok(chosen)
    }

    fn matching(
        &mut self,
        dataset: &Dataset,
        splits: &[(usize, &Split)],
        texts: &[String],
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        if texts.is_empty() {
            return Err(Error::Option { option: "where", expected: "at least one condition" });
        }
        let conditions = Conditions::parse(texts.iter().map(String::as_str), dataset.manifest());
        let conditions = conditions.map_err(|(text, source)| {
            Error::Read(shardtool_read::Error::Condition { condition: text.to_owned(), source })
        })?;
        self.features = conditions.features();
        for (of, split) in splits {
            for number in 0..split.entry().shards.len() {
                check(progress)?;
                let shard = split.shard(number)?;
                for (_, row) in split.rows(number)? {
                    if conditions.hold(&shard, row)? {
                        self.rows.entry((*of, number)).or_default().push(row);
                    }
                }
                shard.check_index_readable()?;
            }
        }
        Ok(())
    }

    fn keys(&mut self, splits: &[(usize, &Split)], keys: &[Vec<u8>], progress: &dyn Progress) -> Result<(), Error> {
        // Whether a record has the key.
        let mut wanted: HashMap<&[u8], bool> = HashMap::with_capacity(keys.len());
        for key in keys {
            self.repeated += u64::from(wanted.insert(key, false).is_some());
        }
        for (of, split) in splits {
            for number in 0..split.entry().shards.len() {
                check(progress)?;
                let shard = split.shard(number)?;
                for (_, row) in split.rows(number)? {
                    if let Some(found) = wanted.get_mut(&*shard.key(row)?) {
                        *found = true;
                        self.rows.entry((*of, number)).or_default().push(row);
                    }
                }
            }
        }
        let mut unknown: Vec<_> = wanted.into_iter().filter(|(_, found)| !found).map(|(key, _)| key).collect();
        unknown.sort_unstable();
        self.unknown = unknown.len() as u64;
        self.examples = unknown.iter().take(LISTED).map(|key| String::from_utf8_lossy(key).into_owned()).collect();
        Ok(())
    }

    fn ids(&mut self, of: usize, split: &Split, ids: &[u64]) -> Result<(), Error> {
        let mut seen = HashSet::with_capacity(ids.len());
        for id in ids {
            if !seen.insert(id) {
                self.repeated += 1;
            } else if *id >= split.len() {
                self.unknown += 1;
                if self.examples.len() < LISTED {
                    self.examples.push(id.to_string());
                }
            } else {
                let (number, row) = split.locate(*id)?;
                self.rows.entry((of, number)).or_default().push(row);
            }
        }
        Ok(())
    }
}

fn write<P: Place>(dataset: &Dataset, chosen: &Chosen, options: &DeleteOptions) -> Result<Deleted, Error> {
    let ChangeOptions { dry_run, single_writer, .. } = options.change;
    let mut splits: BTreeMap<usize, u64> = BTreeMap::new();
    for ((split, _), rows) in &chosen.rows {
        *splits.entry(*split).or_default() += rows.len() as u64;
    }
    let named = splits.into_iter().map(|(split, records)| (dataset.splits()[split].name().to_owned(), records));
    let (unknown, repeated) = (chosen.unknown, chosen.repeated);
    let mut deleted = Deleted { version: None, splits: named.collect(), unknown, repeated, bytes: 0 };
    if chosen.rows.is_empty() || dry_run {
        return Ok(deleted);
    }
    let (place, _lock) = P::join(dataset.path(), LOCK, single_writer)?;
    let mut file = PartsFile::new(&place, Holds::Deleted);
    let mut bitmaps: HashMap<&str, manifest::Deleted> = HashMap::new();
    for ((split, number), rows) in &chosen.rows {
        let split = &dataset.splits()[*split];
        bitmaps.insert(&split.entry().shards[*number].file, file.add_deleted(split, *number, rows)?);
    }
    file.finish()?;
    deleted.bytes = file.bytes();
    let basis = Basis {
        shards: bitmaps.keys().map(|file| (*file).to_owned()).collect(),
        deleted: true,
        features: chosen.features.clone(),
        ..Basis::default()
    };
    let made = commit(
        &place,
        dataset.manifest(),
        &basis,
        "delete",
        &options.change,
        &|manifest| names_file(manifest, file.name()),
        &mut |manifest| {
            each_shard(manifest, |shard| {
                if let Some(deleted) = bitmaps.get(shard.file.as_str()) {
                    shard.companions.deleted = Some(deleted.clone());
                }
            });
            Ok(())
        },
    );
    if made.is_err() {
        file.discard();
    }
    deleted.version = Some(made?);
    Ok(deleted)
}
