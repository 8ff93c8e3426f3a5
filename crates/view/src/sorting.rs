//! Sorts the records of a split by a column: returns a permutation of their ids.
//!
//! A value becomes a byte string whose order is that of the values. Records are then sorted by four bytes at a time, most
//! significant first (MSD radix sort), as entries that hold these four bytes and the id: one buffer of eight bytes a record.
//! Bytes that all records of a run share are skipped. Runs that fit into a processor's cache are sorted on their own, by eight
//! bytes at a time.

use crate::columns::{Cell, Column, Values};
use rayon::prelude::*;
use shardtool_format::DeletedRows;
use shardtool_read::{Shard, Split};
use std::sync::Arc;

/// Records and shards of a split that can be sorted, at most: the buffer is then 256 MiB, and every shard is open at once.
pub(crate) const MAX_RECORDS: u64 = 1 << 25;
const MAX_SHARDS: usize = 1 << 13;
/// Ids whose shard is looked up at once: 2 to the power of this.
const BLOCK_BITS: u32 = 12;
/// Records of a run that is sorted on its own, at most.
const LOCAL: usize = 1 << 15;
/// Bytes of its values that are copied, at most.
const MAX_COPIED: usize = 1 << 22;
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
    let deleted =
        (0..shards.len()).map(|n| split.deleted_rows(n)).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let table = Table::new(split.starts(), values.collect::<Result<_, _>>().map_err(|e| e.to_string())?, deleted);

    let mut entries: Vec<Entry> = Vec::with_capacity(split.len() as usize);
    let mut without = vec![];
    for number in 0..table.values.len() {
        let (start, end) = (table.starts[number], table.starts[number + 1]);
        for id in start..end {
            match table.get(number, id - start) {
                Some(_) => entries.push([0, id as u32]),
                None => without.push(id as u32),
            }
        }
    }
    sort_run(&mut entries, 0, 0, &table);
    // The ids move to the front of the same memory, whose rest is given back.
    let count = entries.len();
    let mut ids = entries.into_flattened();
    (0..count).for_each(|at| ids[at] = ids[2 * at + 1]);
    ids.truncate(count);
    ids.extend(without);
    ids.shrink_to_fit();
    check(&shards)?;
    Ok(ids)
}

fn check(shards: &[Arc<Shard>]) -> Result<(), String> {
    shards.iter().try_for_each(|shard| shard.check_index_readable()).map_err(|e| e.to_string())
}

/// Four bytes of a value, and the record's id.
type Entry = [u32; 2];

/// The values of a column in all shards of a split.
struct Table<'s> {
    starts: &'s [u64],
    /// The shard of the first record of each block of ids.
    blocks: Vec<u32>,
    values: Vec<Values<'s>>,
    deleted: Vec<Option<Arc<DeletedRows>>>,
}

impl<'s> Table<'s> {
    fn new(starts: &'s [u64], values: Vec<Values<'s>>, deleted: Vec<Option<Arc<DeletedRows>>>) -> Self {
        let ids = (0..*starts.last().unwrap_or(&0)).step_by(1 << BLOCK_BITS);
        let blocks = ids.map(|id| starts.partition_point(|start| *start <= id) as u32 - 1).collect();
        Table { starts, blocks, values, deleted }
    }

    /// Returns the value of the `n`th record of a shard.
    fn get(&self, shard: usize, n: u64) -> Option<Cell<'s>> {
        let row = self.deleted[shard].as_ref().map_or(Some(n), |deleted| deleted.live_row(n));
        self.values[shard].get(row?)
    }

    fn key(&self, id: u32) -> Key<'s> {
        let mut shard = self.blocks[id as usize >> BLOCK_BITS] as usize;
        let id = u64::from(id);
        while self.starts[shard + 1] <= id {
            shard += 1;
        }
        Key::of(self.get(shard, id - self.starts[shard]))
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
            Some(Cell::Float64(number)) => {
                let bits = number.to_bits();
                Key::Number((if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits }).to_be_bytes())
            }
            Some(Cell::Uint64(number)) => Key::Number(number.to_be_bytes()),
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
}

/// Returns eight bytes of a value from `depth` on, zeros after its end.
fn digits_of(value: &[u8], depth: usize) -> u64 {
    let rest = value.get(depth..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(digits) => u64::from_be_bytes(*digits),
        None => rest.iter().enumerate().map(|(at, byte)| u64::from(*byte) << (56 - 8 * at)).sum(),
    }
}

/// What the values of a run have in common.
#[derive(Clone, Copy)]
struct Common {
    /// Bytes at their beginning.
    shared: usize,
    /// Lengths of the shortest and the longest value.
    shortest: usize,
    longest: usize,
}

impl Common {
    fn join(self, other: Common) -> Common {
        Common {
            shared: self.shared.min(other.shared),
            shortest: self.shortest.min(other.shortest),
            longest: self.longest.max(other.longest),
        }
    }

    /// Returns what a value has in common with the first one of its run, of which `depth` bytes are known to be equal.
    fn of(first: &[u8], value: &[u8], depth: usize) -> Common {
        Common { shared: shared_bytes(first, value, depth), shortest: value.len(), longest: value.len() }
    }

    const ANY: Common = Common { shared: usize::MAX, shortest: usize::MAX, longest: 0 };
}

/// Sorts a run of records whose values share their first `depth` bytes.
fn sort_run(run: &mut [Entry], depth: usize, level: usize, table: &Table<'_>) {
    if run.len() <= LOCAL {
        return sort_short_run(run, depth, table);
    }
    if level == MAX_LEVELS {
        run.par_sort_by(|[_, a], [_, b]| table.key(*a).as_bytes().cmp(table.key(*b).as_bytes()).then(a.cmp(b)));
        return;
    }
    let first = table.key(run[0][1]);
    let common = run
        .par_iter()
        .with_min_len(1 << 12)
        .map(|[_, id]| Common::of(first.as_bytes(), table.key(*id).as_bytes(), depth));
    let Common { shared, shortest, longest } = common.reduce(|| Common::ANY, Common::join);
    if shared >= longest {
        // Equal, but for zeros at the end.
        run.par_sort_unstable_by_key(|[_, id]| (table.key(*id).as_bytes().len(), *id));
        return;
    }
    run.par_iter_mut()
        .with_min_len(1 << 12)
        .for_each(|entry| entry[0] = (digits_of(table.key(entry[1]).as_bytes(), shared) >> 32) as u32);
    run.par_sort_unstable_by_key(|[digits, id]| u64::from(*digits) << 32 | u64::from(*id));
    // Of values that end within these bytes, zeros may mark the end of one and be bytes of another.
    if longest > shared + 4 || shortest < longest {
        run.par_chunk_by_mut(|a, b| a[0] == b[0]).for_each(|run| sort_run(run, shared + 4, level + 1, table));
    }
}

/// Sorts a run, whose records are in the order of their ids, on this thread: copies the values once, since they lie far apart.
fn sort_short_run(run: &mut [Entry], depth: usize, table: &Table<'_>) {
    if run.len() < 2 {
        return;
    }
    let mut copied = Vec::with_capacity(run.len() * 16);
    // Where each copied value ends, and how long it is with its beginning.
    let (mut ends, mut lengths) = (Vec::with_capacity(run.len()), Vec::with_capacity(run.len()));
    for [_, id] in &*run {
        let key = table.key(*id);
        copied.extend_from_slice(key.as_bytes().get(depth..).unwrap_or_default());
        lengths.push(key.as_bytes().len());
        ends.push(copied.len());
        if copied.len() > MAX_COPIED {
            run.sort_by(|[_, a], [_, b]| table.key(*a).as_bytes().cmp(table.key(*b).as_bytes()));
            return;
        }
    }
    let value = |at: u32| {
        let start = (at as usize).checked_sub(1).map_or(0, |before| ends[before]);
        &copied[start..ends[at as usize]]
    };
    let mut sorted: Vec<_> = (0..run.len() as u32).map(|at| (0, at)).collect();
    sort_values(&mut sorted, 0, 0, &value, &lengths);
    let ids: Vec<_> = sorted.into_iter().map(|(_, at)| run[at as usize][1]).collect();
    run.iter_mut().zip(ids).for_each(|(entry, id)| entry[1] = id);
}

/// Sorts values that share their first `depth` bytes, by eight bytes at a time: pairs of these and the value's number. If only
/// zeros at their ends distinguish values, `lengths` do.
fn sort_values<'v>(
    run: &mut [(u64, u32)],
    depth: usize,
    level: usize,
    value: &impl Fn(u32) -> &'v [u8],
    lengths: &[usize],
) {
    if run.len() < 2 {
        return;
    }
    if level == MAX_LEVELS {
        run.sort_unstable_by_key(|(_, at)| (value(*at), lengths[*at as usize], *at));
        return;
    }
    let first = value(run[0].1);
    let common = run.iter().map(|(_, at)| Common::of(first, value(*at), depth));
    let Common { shared, shortest, longest } = common.fold(Common::ANY, Common::join);
    if shared >= longest {
        run.sort_unstable_by_key(|(_, at)| (lengths[*at as usize], *at));
        return;
    }
    run.iter_mut().for_each(|(digits, at)| *digits = digits_of(value(*at), shared));
    run.sort_unstable();
    if longest > shared + 8 || shortest < longest {
        run.chunk_by_mut(|a, b| a.0 == b.0).for_each(|run| sort_values(run, shared + 8, level + 1, value, lengths));
    }
}

/// Returns the length of the common prefix of two byte strings, of which `known` bytes are equal.
fn shared_bytes(a: &[u8], b: &[u8], known: usize) -> usize {
    let (a, b) = (a.get(known..).unwrap_or_default(), b.get(known..).unwrap_or_default());
    known + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Source, columns};
    use shardtool_format::manifest::DType;
    use shardtool_pack::{Sample, Value, Writer, WriterOptions};

    /// Text of 0 to 24 bytes of few kinds, zeros among them, after one of three beginnings; or no value.
    fn text(i: u64) -> Option<Vec<u8>> {
        // SplitMix64.
        let hash = |n: u64| {
            let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 13
        };
        let (length, kind) = (hash(i) % 25, hash(i + (1 << 40)) % 4);
        let beginning: &[u8] = [b"".as_slice(), b"the same beginning/", b"the same beginning\0"][kind.min(2) as usize];
        let rest = (0..length).map(|n| [0, 0, 0, b'a', 255][hash(i * 31 + n) as usize % 5]);
        (kind < 3).then(|| beginning.iter().copied().chain(rest).collect())
    }

    #[test]
    fn text_of_any_bytes_is_in_order_in_short_and_long_runs() {
        for count in [100, 3 * LOCAL as u64] {
            let folder = tempfile::tempdir().unwrap();
            let mut options = WriterOptions::new(folder.path(), "train");
            options.features = vec![("text".to_owned(), DType::Bytes), ("number".to_owned(), DType::Int64)];
            (options.images, options.labels, options.shard_size) = (false, Some(false), 200_000);
            let writer = Writer::open(&options).unwrap();
            for i in 0..count {
                let key = format!("{i}");
                let mut values = vec![("number", Value::Int64(vec![i as i64 % 7 - 3]))];
                values.extend(text(i).map(|text| ("text", Value::Bytes(vec![text]))));
                writer.write(&Sample { key: &key, image: None, label: None, values }).unwrap();
            }
            writer.finish().unwrap();
            let dataset = shardtool_read::Dataset::open(folder.path()).unwrap();
            let split = dataset.split("train").unwrap();
            // Shards of a split are not in the order of the calls.
            let number =
                |id: u64| String::from_utf8(split.get(id).unwrap().key().unwrap().to_vec()).unwrap().parse().unwrap();
            let numbers: Vec<u64> = (0..count).map(number).collect();
            let columns = columns(split);
            let sorted = |name: &str| {
                let column = columns.iter().find(|c| c.name == name && c.source == Source::Feature).unwrap();
                permutation(split, column).unwrap()
            };
            let mut expected: Vec<u32> = (0..count as u32).collect();
            expected.sort_by_key(|id| {
                let text = text(numbers[*id as usize]);
                (text.is_none(), text)
            });
            assert!(sorted("text") == expected, "{count} texts");
            let mut expected: Vec<u32> = (0..count as u32).collect();
            expected.sort_by_key(|id| numbers[*id as usize] as i64 % 7);
            assert!(sorted("number") == expected, "{count} numbers");
        }
    }
}
