//! Deletes records: a bitmap for each shard that has some of them. The shards stay as they are.

use super::chosen::{Chosen, ChosenRecords};
use super::commit::{Basis, beside_others, commit, discard, each_shard, names_file};
use super::parts_file::{Holds, PartsFile};
use super::{ChangeOptions, NewVersion};
use super::{base, views};
use crate::place::{CHANGE_LOCK, Place, StoreFolder};
use crate::progress::Progress;
use crate::{Error, commit::Directory};
use shardtool_format::manifest;
use shardtool_read::{Dataset, Split};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Options of [`delete`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeleteOptions {
    /// The splits; default: all. Ids need exactly one.
    pub splits: Vec<String>,
    /// Which records.
    pub records: ChosenRecords,
    /// Whether keys and ids that no record has are counted. Default: they are an error.
    pub ignore_unknown: bool,
    /// What all changes have.
    pub change: ChangeOptions,
}

impl DeleteOptions {
    /// Returns options for these records of all splits.
    pub fn new(records: ChosenRecords) -> Self {
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
/// [`ShardError::UnknownRecords`](crate::ShardError); [`Error::Read`] for conditions that cannot be parsed;
/// [`DestinationError::CameFirst`](crate::DestinationError), [`DestinationError::Locked`](crate::DestinationError), [`Error::Io`].
pub fn delete(dataset: &Path, options: &DeleteOptions, progress: &dyn Progress) -> Result<Deleted, Error> {
    let dataset = base::open(dataset, &options.change.sources)?;
    let number = |split: &Split| dataset.splits().iter().position(|other| other.name() == split.name());
    let splits = base::splits(&dataset, &options.splits)?.into_iter();
    let splits: Vec<(usize, &Split)> = splits.filter_map(|split| Some((number(split)?, split))).collect();
    let chosen = beside_others(&dataset, || Chosen::find(&dataset, &splits, &options.records, progress))?;
    chosen.check_unknown(&dataset, options.ignore_unknown)?;
    beside_others(&dataset, || match shardtool_store::is_url(dataset.path()) {
        true => write::<StoreFolder>(&dataset, &chosen, options),
        false => write::<Directory>(&dataset, &chosen, options),
    })
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
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, single_writer)?;
    let mut file = PartsFile::new(&place, Holds::Deleted);
    let mut bitmaps: HashMap<&str, manifest::Deleted> = HashMap::new();
    for ((split, number), rows) in &chosen.rows {
        let split = &dataset.splits()[*split];
        bitmaps.insert(&split.entry().shards[*number].file, file.add_deleted(split, *number, rows)?);
    }
    let rows = chosen.rows.iter().map(|((split, number), rows)| {
        (dataset.splits()[*split].entry().shards[*number].file.as_str(), rows.as_slice())
    });
    let views = views::without(dataset, &rows.collect(), &mut file)?;
    file.finish()?;
    deleted.bytes = file.bytes();
    let basis = Basis {
        shards: bitmaps.keys().map(|file| (*file).to_owned()).collect(),
        deleted: true,
        features: chosen.features.clone(),
        views: true,
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
            views::set(manifest, &views);
            Ok(())
        },
    );
    if let Err(error) = &made {
        discard(&place, error, &[file.path()]);
    }
    deleted.version = Some(made?);
    Ok(deleted)
}
