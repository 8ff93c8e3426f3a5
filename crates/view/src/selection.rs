//! The records of a gallery in its order: all of a split, those that match, sorted or not; and a cache of them.

use crate::columns::Column;
use crate::condition::Condition;
use crate::matching::{Criteria, Matches};
use crate::query::Query;
use crate::sorting;
use shardtool_read::Split;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a page waits for its records before it shows those that are found.
const PATIENCE: Duration = Duration::from_millis(200);
/// Memory of cached permutations and matches, in bytes.
const CACHE_BYTES: u64 = 84 << 20;
const CACHED: usize = 6;

/// Records in an order.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    /// All `len` records in the order of their ids, or the reverse.
    All { len: u64 },
    /// Those that match, in the order of their ids.
    Matching(Arc<Matches>),
    /// In the order of a column.
    Sorted { ids: Arc<Vec<u32>>, descending: bool },
}

/// A part of a selection.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) ids: Vec<u64>,
    /// Records in the selection, as far as they are found.
    pub(crate) len: u64,
    /// Records searched, if the search continues.
    pub(crate) searching: Option<u64>,
    /// What went wrong in some shards.
    pub(crate) problem: Option<String>,
}

impl Selection {
    /// Returns `count` records from position `start` on.
    pub(crate) fn part(&self, start: u64, count: usize) -> Part {
        match self {
            Selection::All { len } => Part {
                ids: (start..len.min(&start.saturating_add(count as u64)).to_owned()).collect(),
                len: *len,
                ..Part::default()
            },
            Selection::Matching(matches) => {
                let progress = matches.wait(start.saturating_add(count as u64), PATIENCE);
                let ids = matches.ids(start, count).into_iter().map(u64::from).collect();
                let searching = (!progress.done).then_some(progress.searched);
                Part { ids, len: progress.found, searching, problem: progress.problem }
            }
            Selection::Sorted { ids, descending } => {
                let len = ids.len() as u64;
                let end = len.min(start.saturating_add(count as u64));
                let at =
                    |position: u64| u64::from(ids[if *descending { len - 1 - position } else { position } as usize]);
                Part { ids: (start..end).map(at).collect(), len, ..Part::default() }
            }
        }
    }
}

/// Selections that were used lately, of one split.
#[derive(Debug, Default)]
pub(crate) struct Selections {
    cached: Mutex<Vec<(Query, Entry)>>,
    /// Sorting takes memory: one at a time.
    sorting: Mutex<()>,
}

#[derive(Debug, Clone)]
enum Entry {
    Matches(Arc<Matches>),
    Permutation(Arc<Vec<u32>>),
}

impl Entry {
    fn bytes(&self) -> u64 {
        match self {
            Entry::Matches(matches) => matches.bytes(),
            Entry::Permutation(ids) => 4 * ids.len() as u64,
        }
    }
}

impl Selections {
    /// Returns the selection of a query.
    ///
    /// # Errors
    /// A message for the user, if the query does not fit the split.
    pub(crate) fn select(&self, split: &Split, columns: &[Column], query: &Query) -> Result<Selection, String> {
        if query.is_all() {
            return Ok(Selection::All { len: split.len() });
        }
        if split.len() > u32::MAX.into() {
            return Err("filter, search and sort are for splits of at most 4,294,967,295 records".to_owned());
        }
        let unsorted = Query { sort: String::new(), descending: false, ..query.clone() };
        let sort_column = match query.sort.as_str() {
            "" => None,
            name => match columns.iter().find(|column| column.name == name) {
                Some(column) if column.indexed => Some(column),
                Some(_) => return Err(format!("the indexes do not hold `{name}`: it cannot be sorted by")),
                None => return Err(format!("this split has no column `{name}`")),
            },
        };
        let Some(column) = sort_column else {
            return Ok(Selection::Matching(self.matches(split, columns, &unsorted)?));
        };

        let _one = self.sorting.lock().unwrap_or_else(PoisonError::into_inner);
        let ascending = Query { descending: false, ..query.clone() };
        if let Some(Entry::Permutation(ids)) = self.find(&ascending) {
            return Ok(Selection::Sorted { ids, descending: query.descending });
        }
        let whole = Query { sort: query.sort.clone(), ..Query::default() };
        let all = match self.find(&whole) {
            Some(Entry::Permutation(ids)) => ids,
            _ => {
                self.shrink(CACHE_BYTES / 2);
                let ids = Arc::new(sorting::permutation(split, column)?);
                self.insert(whole, Entry::Permutation(ids.clone()));
                ids
            }
        };
        if unsorted.is_all() {
            return Ok(Selection::Sorted { ids: all, descending: query.descending });
        }
        let matches = self.matches(split, columns, &unsorted)?;
        matches.wait(u64::MAX, Duration::from_secs(600));
        let mut chosen = vec![0u64; split.len().div_ceil(64) as usize];
        matches.for_each(|id| chosen[id as usize / 64] |= 1 << (id % 64));
        let count: u32 = chosen.iter().map(|word| word.count_ones()).sum();
        let mut ids = Vec::with_capacity(count as usize);
        ids.extend(all.iter().copied().filter(|id| chosen[*id as usize / 64] >> (id % 64) & 1 == 1));
        let ids = Arc::new(ids);
        self.insert(ascending, Entry::Permutation(ids.clone()));
        Ok(Selection::Sorted { ids, descending: query.descending })
    }

    /// Returns the records that match a query without a sort.
    fn matches(&self, split: &Split, columns: &[Column], query: &Query) -> Result<Arc<Matches>, String> {
        if let Some(Entry::Matches(matches)) = self.find(query) {
            return Ok(matches);
        }
        let matches = Matches::start(split.clone(), criteria(split, columns, query)?);
        self.insert(query.clone(), Entry::Matches(matches.clone()));
        Ok(matches)
    }

    fn find(&self, query: &Query) -> Option<Entry> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let at = cached.iter().position(|(q, _)| q == query)?;
        let found = cached.remove(at);
        let entry = found.1.clone();
        cached.push(found);
        Some(entry)
    }

    fn insert(&self, query: Query, entry: Entry) {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).push((query, entry));
        self.shrink(CACHE_BYTES);
    }

    /// Drops the selections that were used least lately, but the last one, until the others take at most `most` bytes.
    fn shrink(&self, most: u64) {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        while cached.len() > 1 && (cached.len() > CACHED || cached.iter().map(|(_, e)| e.bytes()).sum::<u64>() > most) {
            if let (_, Entry::Matches(matches)) = cached.remove(0)
                // The search and this function hold it: no page waits for it.
                && Arc::strong_count(&matches) <= 2
            {
                matches.stop();
            }
        }
    }
}

/// Returns what a query asks of a record.
fn criteria(split: &Split, columns: &[Column], query: &Query) -> Result<Criteria, String> {
    let conditions = query.filters.iter().map(|text| Condition::parse(text, columns));
    let mut criteria = Criteria { conditions: conditions.collect::<Result<_, _>>()?, ..Criteria::default() };
    if !query.search.is_empty() {
        criteria.search = query.search.clone().into_bytes();
        criteria.searched = Criteria::text_columns(columns);
        let manifest = split.manifest();
        let label = columns.iter().find(|c| c.indexed && Some(&c.name) == manifest.label.as_ref());
        let named = manifest.classes.iter().enumerate().filter(|(_, class)| class.contains(&query.search));
        let labels: Vec<_> = named.map(|(n, _)| (n as i64).saturating_add(manifest.label_offset)).collect();
        criteria.labels = label.filter(|_| !labels.is_empty()).map(|column| (column.clone(), labels));
    }
    Ok(criteria)
}
