//! A batch, from its first row's claim to its return to the pool.

use crate::budget::Live;
use crate::columns::{Cell, Column, Values};
use crate::engine::Engine;
use crate::error::Error;
use crate::memory::{BatchBuffer, RowMut, Rows};
use shardtool_decode::{Normalizer, Output};
use shardtool_order::{ResumeState, Row};
use shardtool_read::Record;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A batch of N rows. Its memory goes back to the loader when it is dropped. It may be held as long as the consumer likes,
/// outlives the loader, and may be read from any thread, but counts against a given memory budget.
pub struct Batch(pub(crate) Arc<Slot>);

/// The rows of a batch as they are gathered once all are done.
#[derive(Default)]
pub(crate) struct Table {
    ids: Vec<i64>,
    valid: Vec<bool>,
    values: Vec<Values>,
    records: Vec<Option<Record>>,
    /// Bytes of ragged values and of records read into memory, which no plan can foresee.
    unforeseen: u64,
}

/// What one row holds beside its pixels. Written by one worker, so that its lock is never waited for.
pub(crate) struct RowOut {
    pub(crate) id: i64,
    pub(crate) valid: bool,
    pub(crate) cells: Vec<Cell>,
    pub(crate) record: Option<Record>,
}

/// Where the pixels of one row are written; empty where the batch has none of the kind.
#[derive(Default)]
pub(crate) struct RowPixels<'a> {
    /// `[H, W, 3]`.
    pub(crate) image: Option<RowMut<'a>>,
    /// `[H, W]`.
    pub(crate) mask: Option<RowMut<'a>>,
}

/// Memory of a batch, used again and again.
pub(crate) struct Memory {
    images: Option<Rows>,
    masks: Option<Rows>,
    outs: Box<[Mutex<RowOut>]>,
    plan: Vec<Row>,
    /// Allocated beyond the budget, for a consumer that keeps batches: freed when it returns.
    pub(crate) extra: bool,
    _live: Live,
}

impl Memory {
    /// Memory for `n` rows; images and masks where the batch has any.
    pub(crate) fn new(n: usize, columns: &[Column], images: Option<Rows>, masks: Option<Rows>, extra: bool) -> Self {
        let bytes: u64 = images.iter().chain(&masks).map(|rows| rows.buffer().len() as u64).sum();
        let out = || RowOut { id: -1, valid: false, cells: columns.iter().map(Column::cell).collect(), record: None };
        Memory {
            images,
            masks,
            outs: (0..n).map(|_| Mutex::new(out())).collect(),
            plan: Vec::with_capacity(n),
            extra,
            // Extra batches count as the consumer's memory, not as part of a budget.
            _live: Live::new(if extra { 0 } else { bytes }),
        }
    }
}

/// A batch being built, then delivered.
pub(crate) struct Slot {
    engine: Arc<Engine>,
    pub(crate) lane: usize,
    pub(crate) epoch: u64,
    pub(crate) p: u64,
    /// (epoch, p) once it is delivered.
    pub(crate) after: (u64, u64),
    /// It is the first of its lane's way through the epoch.
    pub(crate) fresh: bool,
    /// `None` only while it is dropped.
    memory: Option<Memory>,
    /// The first row that nobody has claimed.
    next: AtomicUsize,
    /// Rows not done.
    left: AtomicUsize,
    /// Rows no longer wanted, after an error or when the loader went elsewhere.
    void: AtomicBool,
    failure: Mutex<Option<Error>>,
    table: OnceLock<Table>,
}

impl Slot {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        lane: usize,
        (epoch, p): (u64, u64),
        after: (u64, u64),
        fresh: bool,
        mut memory: Memory,
    ) -> Self {
        memory.plan.clear();
        memory.plan.extend(engine.spec.plan.schedule().rows(p, engine.spec.ranks[lane]));
        let n = memory.plan.len();
        Slot {
            engine: engine.clone(),
            lane,
            epoch,
            p,
            after,
            fresh,
            memory: Some(memory),
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(n),
            void: AtomicBool::new(false),
            failure: Mutex::new(None),
            table: OnceLock::new(),
        }
    }

    fn memory(&self) -> &Memory {
        self.memory.as_ref().expect("there until it is dropped")
    }

    /// The next `most` rows that nobody has claimed; `None` when all are.
    pub(crate) fn claim(&self, most: usize) -> Option<Range<usize>> {
        let n = self.memory().plan.len();
        if self.next.load(Ordering::Relaxed) >= n {
            return None;
        }
        let first = self.next.fetch_add(most, Ordering::Relaxed);
        (first < n).then(|| first..n.min(first + most))
    }

    pub(crate) fn unclaimed(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.memory().plan.len()
    }

    /// What stands in a row.
    pub(crate) fn planned(&self, row: usize) -> Row {
        self.memory().plan[row]
    }

    /// The row's pixels.
    pub(crate) fn pixels(&self, row: usize) -> RowPixels<'_> {
        let Memory { images, masks, .. } = self.memory();
        RowPixels { image: images.as_ref().map(|r| r.take(row)), mask: masks.as_ref().map(|r| r.take(row)) }
    }

    /// The rest of the row.
    pub(crate) fn with_out<T>(&self, row: usize, f: impl FnOnce(&mut RowOut) -> T) -> T {
        f(&mut self.memory().outs[row].lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_void(&self) -> bool {
        self.void.load(Ordering::Relaxed)
    }

    pub(crate) fn make_void(&self) {
        self.void.store(true, Ordering::Relaxed);
    }

    /// Ends the batch with an error; the first one counts.
    pub(crate) fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.make_void();
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Says that so many rows are done; gathers the batch and returns true when they were the last.
    pub(crate) fn finish(&self, rows: usize) -> bool {
        if self.left.fetch_sub(rows, Ordering::AcqRel) != rows {
            return false;
        }
        self.gather();
        true
    }

    fn gather(&self) {
        let columns = &self.engine.spec.columns;
        let mut table = Table { values: columns.iter().map(Column::values).collect(), ..Table::default() };
        for row in 0..self.memory().outs.len() {
            self.with_out(row, |out| {
                table.ids.push(out.id);
                table.valid.push(out.valid);
                table.values.iter_mut().zip(&out.cells).for_each(|(values, cell)| values.push(cell));
                table.unforeseen +=
                    out.cells.iter().zip(columns).map(|(cell, c)| c.unforeseen(cell.held())).sum::<u64>();
                if self.engine.spec.keeps_records() {
                    table.unforeseen += out.record.as_ref().map_or(0, own_bytes);
                    table.records.push(out.record.take());
                }
            });
        }
        table.unforeseen += table.values.iter().zip(columns).map(|(v, c)| c.unforeseen(v.held())).sum::<u64>();
        let expected = self.engine.spec.expected * self.engine.spec.batch as u64;
        table.unforeseen = table.unforeseen.saturating_sub(expected);
        let _ = self.table.set(table);
    }

    /// Bytes that this batch takes beyond what was planned for it.
    pub(crate) fn unforeseen(&self) -> u64 {
        self.table().unforeseen
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.table.get().is_some()
    }

    pub(crate) fn valid_rows(&self) -> u64 {
        self.table().valid.iter().filter(|v| **v).count() as u64
    }

    fn table(&self) -> &Table {
        self.table.get().expect("a batch is delivered when it is complete")
    }
}

/// Bytes of memory that a record was read into; none where its file is mapped.
fn own_bytes(record: &Record) -> u64 {
    if record.shard().bytes().mapped().is_some() { 0 } else { record.data().len() as u64 }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(mut memory) = self.memory.take() else { return };
        if self.engine.spec.release {
            let records = self.table.take().into_iter().flat_map(|table| table.records).flatten();
            records.for_each(|record| record.shard().release(record.row()));
        }
        memory.images.iter_mut().chain(&mut memory.masks).for_each(Rows::reset);
        self.engine.give_back(self.lane, memory);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.0.engine.release(self.0.lane);
    }
}

impl Batch {
    /// N, rows that show no sample included.
    #[expect(clippy::len_without_is_empty, reason = "a batch has at least one row")]
    pub fn len(&self) -> usize {
        self.0.table().ids.len()
    }

    /// Pixels at a multiple of 64 bytes: u8 RGB, or the little-endian values of [`Batch::output`], in the order of
    /// [`Batch::image_shape`]. `None` where the loader makes no images.
    pub fn images(&self) -> Option<&[u8]> {
        self.0.memory().images.as_ref().and_then(Rows::bytes)
    }

    /// Label maps, `[N, H, W]` u8, at a multiple of 64 bytes; 255 in rows that show no sample, what loss functions are told
    /// to ignore. `None` where the loader was not asked for them ([`Images::mask`](crate::Images::mask)).
    pub fn masks(&self) -> Option<&[u8]> {
        self.0.memory().masks.as_ref().and_then(Rows::bytes)
    }

    /// What the pixels became; `None` for u8.
    pub fn output(&self) -> Option<&Output> {
        self.0.engine.spec.normalizer.as_ref().map(Normalizer::output)
    }

    /// `[N, H, W, 3]`, or `[N, 3, H, W]` where [`Batch::output`] says so; `None` where the loader makes no images.
    pub fn image_shape(&self) -> Option<[usize; 4]> {
        let (height, width) = self.0.engine.spec.image_size()?;
        let shape = [self.len(), height, width, 3];
        Some(self.output().map_or(shape, |output| output.layout().shape(shape)))
    }

    /// `[N, H, W]`; `None` where the loader makes no label maps.
    pub fn mask_shape(&self) -> Option<[usize; 3]> {
        let (height, width) = self.0.engine.spec.image_size()?;
        self.0.memory().masks.as_ref().map(|_| [self.len(), height, width])
    }

    /// The memory of the pixels, as its allocator made it.
    pub fn buffer(&self) -> Option<&dyn BatchBuffer> {
        self.0.memory().images.as_ref().map(Rows::buffer)
    }

    /// The memory of the label maps.
    pub fn mask_buffer(&self) -> Option<&dyn BatchBuffer> {
        self.0.memory().masks.as_ref().map(Rows::buffer)
    }

    /// Id of each row's sample, `[N]`; −1 where a row shows none. With several splits ids count through them.
    pub fn ids(&self) -> &[i64] {
        &self.0.table().ids
    }

    /// Whether each row shows a sample, `[N]`.
    pub fn valid(&self) -> &[bool] {
        &self.0.table().valid
    }

    /// Names of the columns, in the order of the configuration.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.engine.spec.columns.iter().map(|c| c.feature.as_str())
    }

    /// Values of a column; `None` where the batch has none of that name. Rows without a sample hold zeros or nothing,
    /// integer labels −100.
    pub fn column(&self, feature: &str) -> Option<&Values> {
        let at = self.columns().position(|name| name == feature)?;
        self.0.table().values.get(at)
    }

    /// Numbers a row of a column of numbers; `None` for ragged ones and bytes.
    pub fn column_width(&self, feature: &str) -> Option<usize> {
        self.0.engine.spec.columns.iter().find(|c| c.feature == feature)?.width()
    }

    /// The records, `[N]`, where the loader delivers them; `None` in rows that show no sample.
    pub fn records(&self) -> &[Option<Record>] {
        &self.0.table().records
    }

    /// The epoch, from 0.
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// Positions delivered before this batch.
    pub fn position(&self) -> u64 {
        self.0.p
    }

    /// The state to resume from after this batch.
    pub fn state_after(&self) -> ResumeState {
        self.0.engine.spec.state(self.0.after)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Batch");
        f.field("epoch", &self.0.epoch).field("position", &self.0.p).field("ids", &self.ids()).finish_non_exhaustive()
    }
}
