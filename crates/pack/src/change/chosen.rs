//! Which records a change takes: by conditions, keys or ids.

use super::base;
use crate::Error;
use crate::error::ShardError;
use crate::progress::{Progress, check};
use shardtool_read::{Conditions, Dataset, Split};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Keys and ids that messages list.
const LISTED: usize = 5;

/// Which records a change takes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ChosenRecords {
    /// Those for which all of these conditions hold (`FEATURE=VALUE`).
    Where(Vec<String>),
    /// Those that have these keys.
    Keys(Vec<Vec<u8>>),
    /// Those with these ids, which are numbers in a split.
    Ids(Vec<u64>),
}

/// The rows that a change takes, of each shard of each split.
#[derive(Default)]
pub(super) struct Chosen {
    /// Ascending, by the number of the split and that of the shard in it.
    pub(super) rows: BTreeMap<(usize, usize), Vec<u64>>,
    /// The features in the conditions.
    pub(super) features: Vec<String>,
    /// Keys and ids that no record has.
    pub(super) unknown: u64,
    /// Keys and ids that were given before.
    pub(super) repeated: u64,
    /// The first unknown ones.
    examples: Vec<String>,
}

impl Chosen {
    /// Finds records in splits, each given with a number.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Read`], [`Error::Stopped`].
    pub(super) fn find(
        dataset: &Dataset,
        splits: &[(usize, &Split)],
        records: &ChosenRecords,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let mut chosen = Chosen::default();
        match records {
            ChosenRecords::Where(texts) => chosen.matching(dataset, splits, texts, progress)?,
            ChosenRecords::Keys(keys) => chosen.keys(splits, keys, progress)?,
            ChosenRecords::Ids(ids) => match splits {
                [(number, split)] => chosen.ids(*number, split, ids)?,
                _ => return Err(Error::Option { option: "split", expected: "the split whose ids these are" }),
            },
        }
        chosen.rows.values_mut().for_each(|rows| rows.sort_unstable());
        Ok(chosen)
    }

    /// Refuses keys and ids that no record has.
    ///
    /// # Errors
    /// [`ShardError::UnknownRecords`].
    pub(super) fn check_unknown(&self, dataset: &Dataset, ignore: bool) -> Result<(), Error> {
        if self.unknown == 0 || ignore {
            return Ok(());
        }
        let (path, unknown, examples) = (base::folder(dataset), self.unknown, self.examples.clone());
        Err(Error::Shard(ShardError::UnknownRecords { path, unknown, examples }))
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
