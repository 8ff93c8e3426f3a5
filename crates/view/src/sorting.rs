//! Sorts the records of a split by a column: returns a permutation of their ids.
//!
//! A value becomes a byte string whose order is that of the values. Records are then sorted by four bytes at a time, most
//! significant first (MSD radix sort), as `u64`s that hold these four bytes and the id: one buffer of eight bytes a record.
//! Bytes that all records of a run share are skipped.

use crate::columns::{Cell, Column, Values};
use rayon::prelude::*;
use shardtool_read::{Shard, Split};
use std::sync::Arc;

/// Records and shards of a split that can be sorted, at most: the buffer is then 256 MiB, and every shard is open at once.
pub(crate) const MAX_RECORDS: u64 = 1 << 25;
const MAX_SHARDS: usize = 1 << 13;
/// Levels of the radix sort, after which values are compared whole: a bound of the recursion.
const MAX_LEVELS: usize = 64;

/// Returns the ids of all records in ascending order of a column, records without a value last. Equal values keep the order
/// of their ids.
///
/// # Errors
/// A message for the user.
pub(crate) fn permutation(split: &Split, column: &Column) -> Result<Vec<u32>, String> {
    let shards = split.entry().shards.len();
    if split.len() > MAX_RECORDS || shards > MAX_SHARDS {
        return Err(format!(
            "sorting is for splits of at most {MAX_RECORDS} records in {MAX_SHARDS} shards: filter by `{}` instead",
            column.name
        ));
    }
    let shards: Vec<_> = (0..shards).map(|n| split.shard(n)).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let values = shards.iter().map(|shard| Values::of(shard, column));
    let table = Table { starts: split.starts(), values: values.collect::<Result<_, _>>().map_err(|e| e.to_string())? };

    let mut packed = Vec::with_capacity(split.len() as usize);
    let mut without = vec![];
    for (number, values) in table.values.iter().enumerate() {
        let (start, end) = (table.starts[number], table.starts[number + 1]);
        for id in start..end {
            match values.get(id - start) {
                Some(_) => packed.push(id),
                None => without.push(id as u32),
            }
        }
    }
    sort_run(&mut packed, 0, 0, &table);
    // In place of two buffers.
    let mut ids: Vec<u32> = Vec::with_capacity(split.len() as usize);
    ids.extend(packed.iter().map(|packed| id_of(*packed)));
    ids.extend(without);
    check(&shards)?;
    Ok(ids)
}

fn check(shards: &[Arc<Shard>]) -> Result<(), String> {
    shards.iter().try_for_each(|shard| shard.check_index_readable()).map_err(|e| e.to_string())
}

fn id_of(packed: u64) -> u32 {
    packed as u32
}

/// The values of a column in all shards of a split.
struct Table<'s> {
    starts: &'s [u64],
    values: Vec<Values<'s>>,
}

impl<'s> Table<'s> {
    fn key(&self, id: u32) -> Key<'s> {
        let id = u64::from(id);
        let shard = self.starts.partition_point(|start| *start <= id) - 1;
        Key::of(self.values[shard].get(id - self.starts[shard]))
    }
}

/// A value as bytes whose order is that of the values.
enum Key<'s> {
    Number([u8; 8]),
    Bytes(&'s [u8]),
}

impl<'s> Key<'s> {
    fn of(value: Option<Cell<'s>>) -> Self {
        match value {
            Some(Cell::Int(number)) => Key::Number((number as u64 ^ (1 << 63)).to_be_bytes()),
            Some(Cell::Float(number)) => {
                // IEEE 754's totalOrder: the sign bit of positive numbers, all bits of negative ones.
                let bits = number.to_bits();
                let ordered = if bits >> 31 == 0 { bits ^ (1 << 31) } else { !bits };
                Key::Number((u64::from(ordered) << 32).to_be_bytes())
            }
            Some(Cell::Bytes(bytes)) => Key::Bytes(bytes),
            None => Key::Bytes(&[]),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Key::Number(bytes) => bytes,
            Key::Bytes(bytes) => bytes,
        }
    }

    /// Returns four bytes from `depth` on, zeros after the end.
    fn digit(&self, depth: usize) -> u32 {
        let rest = self.as_bytes().get(depth..).unwrap_or_default();
        match rest.first_chunk::<4>() {
            Some(digit) => u32::from_be_bytes(*digit),
            None => rest.iter().enumerate().map(|(at, byte)| u32::from(*byte) << (24 - 8 * at)).sum(),
        }
    }
}

/// Sorts a run of records whose values share their first `depth` bytes.
fn sort_run(run: &mut [u64], depth: usize, level: usize, table: &Table<'_>) {
    if run.len() < 2 {
        return;
    }
    if level == MAX_LEVELS {
        run.par_sort_by(|a, b| table.key(id_of(*a)).as_bytes().cmp(table.key(id_of(*b)).as_bytes()));
        return;
    }
    let first = table.key(id_of(run[0]));
    let (shared, longest) = run
        .par_iter()
        .with_min_len(1 << 12)
        .map(|packed| {
            let key = table.key(id_of(*packed));
            (shared_bytes(first.as_bytes(), key.as_bytes(), depth), key.as_bytes().len())
        })
        .reduce(|| (usize::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    if shared >= longest {
        // All equal. What an earlier level packed does not matter any more.
        run.iter_mut().for_each(|packed| *packed = id_of(*packed).into());
        run.sort_unstable();
        return;
    }
    run.par_iter_mut().with_min_len(1 << 12).for_each(|packed| {
        let id = id_of(*packed);
        *packed = u64::from(table.key(id).digit(shared)) << 32 | u64::from(id);
    });
    run.par_sort_unstable();
    if longest > shared + 4 {
        let next = run.par_chunk_by_mut(|a, b| a >> 32 == b >> 32);
        next.for_each(|run| sort_run(run, shared + 4, level + 1, table));
    }
}

/// Returns the length of the common prefix of two byte strings, of which `known` bytes are equal.
fn shared_bytes(a: &[u8], b: &[u8], known: usize) -> usize {
    let (a, b) = (a.get(known..).unwrap_or_default(), b.get(known..).unwrap_or_default());
    known + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
