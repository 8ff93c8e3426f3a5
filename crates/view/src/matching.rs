//! The records that a query selects, found shard by shard in the background: the first ones can be shown before the last
//! shard is searched.

use crate::columns::{Column, Source, Values};
use crate::condition::Condition;
use crate::piece::Piece;
use rayon::prelude::*;
use shardtool_format::manifest::DType;
use shardtool_read::Split;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shards that are searched before their records become visible, for each thread.
const SHARDS_AT_ONCE: usize = 2;

/// What a query asks of a record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Criteria {
    pub(crate) conditions: Vec<Condition>,
    /// Text that keys or text columns contain. Bytes are compared, so upper and lower case differ.
    pub(crate) search: Vec<u8>,
    /// The columns that are searched.
    pub(crate) searched: Vec<Column>,
    /// Stored labels whose class names contain the text, and the column of labels.
    pub(crate) labels: Option<(Column, Vec<i64>)>,
}

/// Matching records, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// One for each shard with matches.
    pieces: Vec<Placed>,
    found: u64,
    searched: u64,
    problem: Option<String>,
    done: bool,
}

/// The matches of a shard.
#[derive(Debug)]
struct Placed {
    /// Matches in earlier shards.
    before: u64,
    /// The id of the shard's first record.
    start: u32,
    rows: Piece,
}

/// How far a search is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    pub(crate) found: u64,
    /// Records searched.
    pub(crate) searched: u64,
    pub(crate) done: bool,
    /// Why shards could not be searched: the first error.
    pub(crate) problem: Option<String>,
}

impl Matches {
    /// Searches a split in the background.
    pub(crate) fn start(split: Split, criteria: Criteria) -> Arc<Self> {
        let matches = Arc::new(Matches::default());
        let running = matches.clone();
        rayon::spawn(move || running.run(&split, &criteria));
        matches
    }

    /// Ends the search early: the rest is not needed.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn run(&self, split: &Split, criteria: &Criteria) {
        let shards: Vec<_> = (0..split.entry().shards.len()).collect();
        for some in shards.chunks(SHARDS_AT_ONCE * rayon::current_num_threads()) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let found: Vec<_> = some.par_iter().map(|n| criteria.matching(split, *n)).collect();
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            for (number, found) in some.iter().zip(found) {
                state.searched += split.entry().shards[*number].live_records();
                match found {
                    Ok(rows) if rows.count() == 0 => {}
                    Ok(rows) => {
                        let (before, start) = (state.found, split.starts()[*number] as u32);
                        state.found += rows.count();
                        state.pieces.push(Placed { before, start, rows });
                    }
                    Err(problem) => {
                        state.problem.get_or_insert(problem);
                    }
                }
            }
            // With the count: a page that has its first matches reports a search of all records as complete.
            state.done = state.searched == split.len();
            drop(state);
            self.changed.notify_all();
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner).done = true;
        self.changed.notify_all();
    }

    /// Waits until `wanted` records are found or the search is done, but no longer than `patience`.
    pub(crate) fn wait(&self, wanted: u64, patience: Duration) -> Progress {
        let until = Instant::now() + patience;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.done && state.found < wanted {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Progress { found: state.found, searched: state.searched, done: state.done, problem: state.problem.clone() }
    }

    /// Returns the ids at positions `start` to `start + count`, as far as they are found.
    pub(crate) fn ids(&self, start: u64, count: usize) -> Vec<u32> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let first = state.pieces.partition_point(|piece| piece.before <= start).saturating_sub(1);
        let mut ids = Vec::with_capacity(count.min(1024));
        for piece in state.pieces.get(first..).unwrap_or_default() {
            let skipped = usize::try_from(start.saturating_sub(piece.before)).unwrap_or(usize::MAX);
            ids.extend(piece.rows.rows(skipped).take(count - ids.len()).map(|row| piece.start + row));
            if ids.len() == count {
                break;
            }
        }
        ids
    }

    /// Calls `each` with the ids that are found, in their order.
    pub(crate) fn for_each(&self, mut each: impl FnMut(u32)) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in &state.pieces {
            piece.rows.rows(0).for_each(|row| each(piece.start + row));
        }
    }

    /// Returns the memory that the matches take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pieces.iter().map(|piece| piece.rows.bytes()).sum()
    }
}

impl Criteria {
    /// Returns the matching rows of a shard.
    ///
    /// # Errors
    /// A message, if the shard's index is damaged or missing.
    fn matching(&self, split: &Split, number: usize) -> Result<Piece, String> {
        let shard = split.shard(number).map_err(|e| e.to_string())?;
        let values = |column: &Column| Values::of(&shard, column).map_err(|e| e.to_string());
        let records = shard.records() as u32;
        let mut rows: Vec<u32> = if self.search.is_empty() {
            (0..records).collect()
        } else {
            let mut found = vec![];
            for column in &self.searched {
                match values(column)? {
                    Values::Bytes(column) => search(&column, &self.search, &mut found),
                    // Bare files: keys are in the records.
                    _ if column.source == Source::Key => {
                        let finder = memchr::memmem::Finder::new(&self.search);
                        let contains =
                            |row: &u32| shard.key((*row).into()).is_ok_and(|key| finder.find(&key).is_some());
                        found.extend((0..records).filter(contains));
                    }
                    _ => {}
                }
            }
            if let Some((column, labels)) = &self.labels
                && let Values::I64(column) = values(column)?
            {
                let searched = column.iter().enumerate();
                found.extend(
                    searched.filter(|(_, label)| label.is_some_and(|l| labels.contains(&l))).map(|(r, _)| r as u32),
                );
            }
            found.sort_unstable();
            found.dedup();
            found
        };
        let deleted = split.deleted_rows(number).map_err(|e| e.to_string())?;
        for condition in &self.conditions {
            match values(&condition.column)? {
                // No record has a value, or one has several, or a long one.
                Values::Absent if condition.column.source == Source::Feature => {
                    rows.retain(|row| deleted.as_ref().is_none_or(|deleted| deleted.rank((*row).into()).is_some()));
                    condition.retain_by_records(&shard, &mut rows)?;
                }
                values => condition.retain(&values, &mut rows),
            }
        }
        shard.check_index_readable().map_err(|e| e.to_string())?;
        let mut records = u64::from(records);
        if let Some(deleted) = deleted {
            // From here on, a row is a place among those that are not deleted.
            rows = rows.into_iter().filter_map(|row| deleted.rank(row.into())).map(|row| row as u32).collect();
            records = deleted.live_rows();
        }
        Ok(Piece::new(&rows, records))
    }

    /// Returns the columns that are searched for text: keys, and text that indexes hold.
    pub(crate) fn text_columns(columns: &[Column]) -> Vec<Column> {
        let text = |c: &&Column| c.source == Source::Key || (c.indexed && c.dtype == DType::Bytes);
        columns.iter().filter(text).cloned().collect()
    }
}

/// Adds the rows of a column that contain `text`. Searches the bytes of all rows at once.
fn search(column: &shardtool_format::index::Variable<'_>, text: &[u8], rows: &mut Vec<u32>) {
    let (bytes, offsets) = (column.values(), column.offsets());
    let offset = |row: usize| {
        let at = offsets.get(8 * row..).and_then(|rest| rest.first_chunk::<8>());
        at.map_or(bytes.len(), |at| i64::from_le_bytes(*at).max(0) as usize)
    };
    let finder = memchr::memmem::Finder::new(text);
    let (mut at, mut row) = (0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| finder.find(rest)) {
        let found = at + found;
        // Galloping: the next match is often near.
        let mut step = 1;
        while row + step < column.len() && offset(row + step) <= found {
            step *= 2;
        }
        let (mut low, mut high) = (row + step / 2, (row + step).min(column.len()));
        while low + 1 < high {
            let middle = low.midpoint(high);
            if offset(middle) <= found { low = middle } else { high = middle }
        }
        row = low;
        if found + text.len() <= offset(row + 1) {
            rows.push(row as u32);
            at = offset(row + 1);
            row += 1;
        } else {
            // It spans two rows.
            at = found + 1;
        }
    }
}
