//! Finds the row of the source for each record: by its key, or by its number.

use super::rows::ColumnRows;
use super::{ColumnOptions, MissingRows, wrong_rows};
use crate::Error;
use crate::progress::{Progress, check};
use shardtool_format::names;
use shardtool_read::{Dataset, Split, manifest_of, parse_manifest};
use std::collections::HashMap;

/// Keys that messages list.
const LISTED: usize = 5;

/// The row of the source for each row of each shard of each split.
pub(super) struct Matched {
    shards: Vec<Vec<Vec<Option<u32>>>>,
    matched: u64,
    missing: u64,
}

impl Matched {
    /// Matches rows with records. Each row belongs to exactly one record.
    ///
    /// # Errors
    /// [`crate::ShardError::ColumnRows`]; [`Error::Read`], [`Error::Stopped`].
    pub(super) fn new(
        dataset: &Dataset,
        splits: &[&Split],
        rows: &ColumnRows,
        options: &ColumnOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        if u32::try_from(rows.len()).is_err() {
            return Err(wrong_rows(rows, "more than 4 billion rows".to_owned()));
        }
        match &rows.keys {
            Some(keys) => by_key(splits, rows, keys, options, progress),
            None => by_row(dataset, splits, rows, options),
        }
    }

    /// Returns, for each row of a shard, the row of the source.
    pub(super) fn rows(&self, split: usize, shard: usize) -> &[Option<u32>] {
        &self.shards[split][shard]
    }

    /// Returns the number of records with a row, and of those without.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.matched, self.missing)
    }
}

fn by_key(
    splits: &[&Split],
    rows: &ColumnRows,
    keys: &[Vec<u8>],
    options: &ColumnOptions,
    progress: &dyn Progress,
) -> Result<Matched, Error> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let mut of_key: HashMap<&[u8], u32> = HashMap::with_capacity(keys.len());
    for (at, key) in (0u32..).zip(keys) {
        if let Some(before) = of_key.insert(key, at) {
            let (first, second) = (before + 1, at + 1);
            let problem = format!("the key `{}` occurs twice, in rows {first} and {second}", text(key));
            return Err(wrong_rows(rows, problem));
        }
    }
    let mut used = vec![false; keys.len()];
    let mut matched = Matched { shards: vec![], matched: 0, missing: 0 };
    let mut without = vec![];
    for split in splits {
        let mut shards = vec![];
        for number in 0..split.entry().shards.len() {
            check(progress)?;
            let shard = split.shard(number)?;
            let mut of_rows = vec![None; shard.records() as usize];
            for (_, row) in split.rows(number)? {
                let key = shard.key(row)?;
                let Some(at) = of_key.get(&*key) else {
                    matched.missing += 1;
                    if without.len() < LISTED {
                        without.push(text(&key));
                    }
                    continue;
                };
                if std::mem::replace(&mut used[*at as usize], true) {
                    let problem = format!("two records have the key `{}`, so that its row may mean either", text(&key));
                    return Err(wrong_rows(rows, problem));
                }
                matched.matched += 1;
                of_rows[row as usize] = Some(*at);
            }
            shard.check_index_readable()?;
            shards.push(of_rows);
        }
        matched.shards.push(shards);
    }
    let unknown: Vec<_> = keys.iter().zip(&used).filter(|(_, used)| !**used).map(|(key, _)| key).collect();
    if !unknown.is_empty() {
        let some: Vec<_> = unknown.iter().take(LISTED).map(|key| text(key)).collect();
        let problem = format!(
            "{} of {} rows with the key of no record ({}{}); {} records have a row; remove these rows, or name the split or \
             the column of keys (--split, --key)",
            unknown.len(),
            keys.len(),
            some.join(", "),
            if unknown.len() > LISTED { ", …" } else { "" },
            matched.matched
        );
        return Err(wrong_rows(rows, problem));
    }
    if matched.missing > 0 && options.missing == MissingRows::Error {
        let problem = format!(
            "{} no row ({}{}); choose what they get with --missing: null, or keep (the value that they have)",
            if matched.missing == 1 { "1 record has".to_owned() } else { format!("{} records have", matched.missing) },
            without.join(", "),
            if matched.missing > LISTED as u64 { ", …" } else { "" }
        );
        return Err(wrong_rows(rows, problem));
    }
    Ok(matched)
}

fn by_row(dataset: &Dataset, splits: &[&Split], rows: &ColumnRows, options: &ColumnOptions) -> Result<Matched, Error> {
    let Some(version) = &options.rows_of else {
        let problem = format!(
            "its rows have no keys; if they are in the order of the records of version {}, say so with --rows-of {}",
            dataset.version(),
            dataset.version()
        );
        return Err(wrong_rows(rows, problem));
    };
    let newest = parse_manifest(&dataset.path().join(names::MANIFEST))?;
    let named = manifest_of(dataset.path(), newest, version)?.1.version_number();
    if named != dataset.version() {
        let problem = format!(
            "its rows are those of version {named}, and the newest is version {}, whose records may be others or in another \
             order; give the rows keys",
            dataset.version()
        );
        return Err(wrong_rows(rows, problem));
    }
    let records: u64 = splits.iter().map(|split| split.len()).sum();
    if rows.len() as u64 != records {
        return Err(wrong_rows(rows, format!("{} rows for {records} records", rows.len())));
    }
    let mut at = 0;
    let mut shards = vec![];
    for split in splits {
        let mut of_split = vec![];
        for number in 0..split.entry().shards.len() {
            let mut of_rows = vec![None; split.entry().shards[number].records as usize];
            for (_, row) in split.rows(number)? {
                of_rows[row as usize] = Some(at);
                at += 1;
            }
            of_split.push(of_rows);
        }
        shards.push(of_split);
    }
    Ok(Matched { shards, matched: records, missing: 0 })
}
