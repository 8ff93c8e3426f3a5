//! A batch, from its first claimed row until its memory returns to the pool. What the consumer sees of it is in [`delivered`] and
//! [`arrays`].

mod arrays;
mod delivered;
mod mixed;
mod object_masks;
mod planned_bytes;
mod typed;

pub use arrays::{Array, Masks, Pictures};
pub use delivered::Batch;
pub use typed::{Element, OwnedImages};

use crate::budget::{Live, Reservation};
use crate::buffer::{OwnedBytes, RowBuffer, RowPixels};
use crate::cell::Cell;
use crate::column_values::Values;
use crate::columns::ResolvedColumn;
use crate::error::Result;
use crate::handover::{Position, Work};
use crate::mixing::BatchMix;
use crate::plan::Walk;
use crate::resolved_config::ResolvedConfig;
use shardtool_order::Row;
use shardtool_read::Record;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Where the memory of batches returns to. A batch refers to it weakly: if it is gone, the memory is freed.
pub(crate) trait Home: Send + Sync {
    /// Records that the consumer of a replica dropped a batch.
    fn release(&self, replica: usize);

    /// Returns the memory of a replica's batch for reuse.
    fn give_back(&self, replica: usize, memory: BatchMemory);
}

/// The columns of a complete batch.
#[derive(Default)]
struct Table {
    ids: Vec<i64>,
    valid: Vec<bool>,
    values: Vec<Values>,
    /// How to mix the pixels, if that is left to the consumer.
    mix: Option<BatchMix>,
    records: Vec<Option<Record>>,
    /// With packing: the samples of each row, and the tokens of each sample.
    offsets: Vec<i64>,
    tokens: Vec<i64>,
    /// Bytes of ragged values, and of records read into memory, beyond the batch's plan.
    unforeseen: u64,
}

/// The contents of one row except its pixels. Written by one worker, so its lock is never contended.
pub(crate) struct RowOut {
    pub(crate) id: i64,
    pub(crate) valid: bool,
    pub(crate) cells: Vec<Cell>,
    pub(crate) record: Option<Record>,
    /// With packing, the samples of the row; `id` then has no meaning.
    pub(crate) parts: Vec<PartOut>,
}

/// A sample of a packed row.
pub(crate) struct PartOut {
    pub(crate) id: i64,
    pub(crate) tokens: i64,
}

impl RowOut {
    pub(crate) fn new(columns: &[ResolvedColumn]) -> Self {
        RowOut {
            id: -1,
            valid: false,
            cells: columns.iter().map(ResolvedColumn::cell).collect(),
            record: None,
            parts: vec![],
        }
    }
}

/// The memory of a batch, reused for later ones.
pub(crate) struct BatchMemory {
    /// In the order of [`ResolvedConfig::pictures`].
    images: Vec<RowBuffer>,
    masks: Vec<RowBuffer>,
    /// In the order of [`ResolvedArrays::outputs`](crate::arrays::ResolvedArrays::outputs).
    arrays: Vec<RowBuffer>,
    outs: Box<[Mutex<RowOut>]>,
    plan: Vec<Row>,
    /// What held the masks of objects of an earlier batch.
    spare: Mutex<OwnedBytes>,
    /// Whether it was allocated beyond the budget, for a consumer that keeps batches. Such memory is freed, not reused.
    pub(crate) extra: bool,
    _live: Live,
    /// Keeps the loader's budget reserved until its last batch is dropped.
    _reservation: Arc<Reservation>,
}

impl BatchMemory {
    /// Creates the memory of a batch from that of its images, masks and arrays, if it has any.
    pub(crate) fn new(
        config: &ResolvedConfig,
        [images, masks, arrays]: [Vec<RowBuffer>; 3],
        extra: bool,
        reservation: Arc<Reservation>,
    ) -> Self {
        let bytes: u64 = images.iter().chain(&masks).chain(&arrays).map(|rows| rows.buffer().len() as u64).sum();
        BatchMemory {
            images,
            masks,
            arrays,
            outs: (0..config.batch).map(|_| Mutex::new(RowOut::new(&config.columns))).collect(),
            plan: Vec::with_capacity(config.batch),
            spare: Mutex::default(),
            extra,
            // Extra batches count as the consumer's memory, not as part of a budget.
            _live: Live::new(if extra { 0 } else { bytes }),
            _reservation: reservation,
        }
    }

    /// Divides the memory into the rows of a bucket's batch.
    fn divide(&mut self, config: &ResolvedConfig, bucket: usize) {
        if config.plan.buckets().is_none() {
            return;
        }
        let rows = config.rows(bucket);
        for (images, picture) in self.images.iter_mut().zip(config.pictures(bucket)) {
            images.divide(rows, config.picture_bytes(picture));
        }
        for (masks, mask) in self.masks.iter_mut().zip(config.masks()) {
            masks.divide(rows, config.mask_bytes(mask, bucket));
        }
        for (arrays, output) in self.arrays.iter_mut().zip(config.arrays.outputs()) {
            arrays.divide(rows, output.row_bytes);
        }
    }
}

/// A batch that workers fill and the consumer then reads.
pub(crate) struct SharedBatch {
    config: Arc<ResolvedConfig>,
    home: Weak<dyn Home>,
    /// Index into the replicas that this loader serves.
    pub(crate) replica: usize,
    pub(crate) epoch: u64,
    /// Number of positions of the epoch before this batch.
    pub(crate) p: u64,
    after: Position,
    /// The number of its bucket; 0 without buckets.
    bucket: usize,
    /// Whether it is the first batch of an epoch, or after a seek.
    pub(crate) first: bool,
    /// `None` only while it is dropped.
    memory: Option<BatchMemory>,
    /// The first row that no worker has claimed.
    unclaimed: AtomicUsize,
    /// Rows that are not done.
    left: AtomicUsize,
    cancelled: AtomicBool,
    table: OnceLock<Table>,
}

impl SharedBatch {
    pub(crate) fn new(
        config: &Arc<ResolvedConfig>,
        home: Weak<dyn Home>,
        replica: usize,
        walk: &Walk,
        (epoch, p): Position,
        first: bool,
        mut memory: BatchMemory,
    ) -> Self {
        let bucket = walk.bucket(p).unwrap_or(0);
        memory.plan.clear();
        memory.plan.extend(walk.rows(p));
        memory.divide(config, bucket);
        let n = memory.plan.len();
        SharedBatch {
            after: config.plan.schedule(epoch).after(epoch, p),
            bucket,
            config: config.clone(),
            home,
            replica,
            epoch,
            p,
            first,
            memory: Some(memory),
            unclaimed: AtomicUsize::new(0),
            left: AtomicUsize::new(n),
            cancelled: AtomicBool::new(false),
            table: OnceLock::new(),
        }
    }

    fn memory(&self) -> &BatchMemory {
        self.memory.as_ref().expect("taken only by drop")
    }

    /// The position after this batch.
    pub(crate) fn after(&self) -> Position {
        self.after
    }

    /// Claims the next `most` rows, or fewer at the end; `None` if every row is claimed.
    pub(crate) fn claim(&self, most: usize) -> Option<Range<usize>> {
        let n = self.memory().plan.len();
        if self.unclaimed.load(Ordering::Relaxed) >= n {
            return None;
        }
        let first = self.unclaimed.fetch_add(most, Ordering::Relaxed);
        (first < n).then(|| first..n.min(first + most))
    }

    /// Returns the number of its bucket; 0 without buckets.
    pub(crate) fn bucket(&self) -> usize {
        self.bucket
    }

    /// Returns what the order assigns to a row.
    pub(crate) fn planned(&self, row: usize) -> Row {
        self.memory().plan[row]
    }

    /// Returns the row's pixels for writing.
    ///
    /// # Panics
    /// If they were taken before.
    pub(crate) fn pixels(&self, row: usize) -> RowPixels<'_> {
        let BatchMemory { images, masks, arrays, .. } = self.memory();
        RowPixels {
            images: images.iter().map(|rows| rows.take(row)).collect(),
            masks: masks.iter().map(|rows| rows.take(row)).collect(),
            arrays: arrays.iter().map(|rows| rows.take(row)).collect(),
        }
    }

    /// Calls `f` with the other contents of the row.
    pub(crate) fn with_out<T>(&self, row: usize, f: impl FnOnce(&mut RowOut) -> T) -> T {
        f(&mut self.memory().outs[row].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Marks `rows` claimed rows as done. Returns whether every row is.
    pub(crate) fn done(&self, rows: usize) -> bool {
        self.left.fetch_sub(rows, Ordering::AcqRel) == rows
    }

    /// Gathers the columns and mixes the rows, which are all done. The batch is then complete, unless this fails.
    ///
    /// # Errors
    /// [`Error::Class`](crate::Error::Class) if a label of rows to mix is not a class; [`Error::Alloc`](crate::Error::Alloc).
    pub(crate) fn complete(&self) -> Result<()> {
        let mut table = self.gather()?;
        if !self.is_cancelled() {
            self.mix(&mut table)?;
        }
        let _ = self.table.set(table);
        Ok(())
    }

    /// Makes a batch that has failed complete, without columns: its consumer gets the error in its place.
    pub(crate) fn give_up(&self) {
        let _ = self.table.set(Table::default());
    }

    fn gather(&self) -> Result<Table> {
        let columns = &self.config.columns;
        let packed = self.config.plan.packing().is_some();
        let values = if packed { ResolvedColumn::ragged_values } else { ResolvedColumn::values };
        let mut table = Table { values: columns.iter().map(values).collect(), offsets: vec![0], ..Table::default() };
        for row in 0..self.memory().plan.len() {
            self.with_out(row, |out| {
                if packed {
                    table.ids.extend(out.parts.iter().map(|part| part.id));
                    table.tokens.extend(out.parts.iter().map(|part| part.tokens));
                    table.offsets.push(table.ids.len() as i64);
                } else {
                    table.ids.push(out.id);
                }
                table.valid.push(out.valid);
                table.values.iter_mut().zip(&out.cells).for_each(|(values, cell)| values.push(cell));
                table.unforeseen +=
                    out.cells.iter().zip(columns).map(|(cell, c)| c.unforeseen(cell.held())).sum::<u64>();
                if self.config.keeps_records {
                    table.unforeseen += out.record.as_ref().map_or(0, Record::buffer_bytes);
                    table.records.push(out.record.take());
                }
            });
        }
        self.gather_object_masks(&mut table)?;
        table.unforeseen += table.values.iter().zip(columns).map(|(v, c)| c.unforeseen(v.held())).sum::<u64>();
        let expected = self.config.expected * self.memory().plan.len() as u64;
        table.unforeseen = table.unforeseen.saturating_sub(expected);
        Ok(table)
    }

    /// Returns the bytes by which this complete batch exceeds its plan.
    pub(crate) fn unforeseen(&self) -> u64 {
        self.table().unforeseen
    }

    /// Returns the number of samples of this complete batch.
    pub(crate) fn samples(&self) -> u64 {
        let table = self.table();
        let rows = || table.valid.iter().filter(|valid| **valid).count();
        (if self.config.plan.packing().is_some() { table.ids.len() } else { rows() }) as u64
    }

    fn table(&self) -> &Table {
        self.table.get().expect("called for complete batches only")
    }
}

impl Work for SharedBatch {
    fn has_unclaimed(&self) -> bool {
        self.unclaimed.load(Ordering::Relaxed) < self.memory().plan.len()
    }

    fn is_complete(&self) -> bool {
        self.table.get().is_some()
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Drop for SharedBatch {
    fn drop(&mut self) {
        let Some(mut memory) = self.memory.take() else { return };
        let mut table = self.table.take();
        if self.config.release {
            let records = table.iter_mut().flat_map(|table| table.records.drain(..)).flatten();
            records.for_each(|record| record.shard().release(record.row()));
        }
        memory.images.iter_mut().chain(&mut memory.masks).chain(&mut memory.arrays).for_each(RowBuffer::reset);
        if let Some(bytes) = table.as_mut().and_then(|table| object_masks::bytes(&self.config, table)) {
            memory.spare = Mutex::new(bytes);
        }
        if let Some(home) = self.home.upgrade() {
            home.give_back(self.replica, memory);
        }
    }
}
