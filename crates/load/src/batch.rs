//! A batch, from its first claimed row until its memory returns to the pool.

use crate::budget::{Live, Reservation};
use crate::buffer::{BatchBuffer, RowBuffer, RowPixels};
use crate::column_values::Values;
use crate::columns::{Cell, Column};
use crate::error::{Error, Result};
use crate::handover::{Position, Work};
use crate::mixing;
use crate::objects::ObjectRole;
use crate::resolved_config::ResolvedConfig;
use shardtool_decode::{LabelDtype, Normalizer, Output};
use shardtool_format::array::ArrayDtype;
use shardtool_order::{Bucket, ResumeState, Row, Walk};
use shardtool_read::Record;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A batch of N rows. Dropping it returns its memory to the loader. It can be kept for any time, outlives the loader,
/// and can be read from any thread, but counts against a given memory budget.
pub struct Batch(Arc<SharedBatch>);

/// One array of images of a batch.
pub struct Pictures<'b> {
    /// The feature of a further image or of clips; `None` for the record's image.
    pub feature: Option<&'b str>,
    /// The name of the view; empty if it has none.
    pub view: &'b str,
    /// `[N, H, W, 3]`, or `[N, 3, H, W]` if that is the layout of [`Batch::output`]. With clips, N is the number of all
    /// frames of the batch.
    pub shape: [usize; 4],
    /// Clips of a row, and frames of each; `None` without clips.
    pub clips: Option<[usize; 2]>,
    /// The memory of the pixels, as its allocator returned it.
    pub buffer: &'b dyn BatchBuffer,
    /// As [`Batch::images`].
    pub bytes: &'b [u8],
}

/// One array of a batch, other than images and columns: see [`Config::arrays`](crate::Config::arrays).
pub struct Array<'b> {
    /// The feature.
    pub feature: &'b str,
    /// The type of the elements, which are little-endian.
    pub dtype: ArrayDtype,
    /// `[N, …]`.
    pub shape: Vec<usize>,
    /// The memory of the elements, aligned to 64 bytes.
    pub buffer: &'b dyn BatchBuffer,
    /// The elements in C order; zeros in rows without a sample.
    pub bytes: &'b [u8],
}

impl Pictures<'_> {
    /// Returns the shape with a dimension for the frames of a clip, and one before it for clips, if a row has several:
    /// `[N, clips, frames, H, W, 3]`.
    pub fn dimensions(&self) -> Vec<usize> {
        let [images, rest @ ..] = self.shape;
        let rows = match self.clips {
            None => vec![images],
            Some([1, frames]) => vec![images / frames, frames],
            Some([clips, frames]) => vec![images / (clips * frames), clips, frames],
        };
        rows.into_iter().chain(rest).collect()
    }
}

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
    records: Vec<Option<Record>>,
    /// Bytes of ragged values, and of records read into memory, beyond the batch's plan.
    unforeseen: u64,
}

/// The contents of one row except its pixels. Written by one worker, so its lock is never contended.
pub(crate) struct RowOut {
    pub(crate) id: i64,
    pub(crate) valid: bool,
    pub(crate) cells: Vec<Cell>,
    pub(crate) record: Option<Record>,
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
        let cells = || config.columns.iter().map(Column::cell).collect();
        let out = || RowOut { id: -1, valid: false, cells: cells(), record: None };
        BatchMemory {
            images,
            masks,
            arrays,
            outs: (0..config.batch).map(|_| Mutex::new(out())).collect(),
            plan: Vec::with_capacity(config.batch),
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
        self.masks.iter_mut().for_each(|masks| masks.divide(rows, config.mask_bytes(bucket)));
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
            after: config.plan.schedule().after(epoch, p),
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

    /// Marks `rows` claimed rows as done. With the last ones, gathers the columns and mixes the rows, after which the batch is
    /// complete, and returns true.
    ///
    /// # Errors
    /// [`Error::Class`] if a label of rows to mix is not a class.
    pub(crate) fn finish(&self, rows: usize) -> Result<bool> {
        if self.left.fetch_sub(rows, Ordering::AcqRel) != rows {
            return Ok(false);
        }
        let mut table = self.gather();
        let mixed = if self.is_cancelled() { Ok(()) } else { self.mix(&mut table) };
        let _ = self.table.set(table);
        mixed.map(|()| true)
    }

    /// Mixes the rows, if the configuration says so.
    fn mix(&self, table: &mut Table) -> Result<()> {
        let Some((mixing, label)) = self.config.mixing() else { return Ok(()) };
        let Some(picture) = self.config.pictures(self.bucket).next() else { return Ok(()) };
        let size = picture.view.pipeline.output_size();
        // Without a position every row is masked, and none is mixed.
        let first = self.planned(0).position().unwrap_or(self.p);
        let drawn = mixing.draw(self.config.plan.seed(), self.epoch, first, size);
        let partners = mixing::partners(&table.valid);
        let Values::Int64(labels) = &table.values[label] else { return Ok(()) };
        let soft = mixing::soft_labels(labels, &table.valid, &partners, drawn.share, mixing.classes);
        let soft = soft.map_err(|label| {
            let row = labels.iter().position(|found| *found == label);
            Error::Class { label, id: row.map_or(-1, |row| table.ids[row]), classes: mixing.classes }
        })?;
        table.values[label] = Values::Float(soft);
        let output = self.config.normalizer.as_ref().map(Normalizer::output);
        self.memory().images[0].change_all(|images| mixing::mix_images(images, size, output, &drawn, &partners));
        Ok(())
    }

    fn gather(&self) -> Table {
        let columns = &self.config.columns;
        let mut table = Table { values: columns.iter().map(Column::values).collect(), ..Table::default() };
        for row in 0..self.memory().plan.len() {
            self.with_out(row, |out| {
                table.ids.push(out.id);
                table.valid.push(out.valid);
                table.values.iter_mut().zip(&out.cells).for_each(|(values, cell)| values.push(cell));
                table.unforeseen +=
                    out.cells.iter().zip(columns).map(|(cell, c)| c.unforeseen(cell.held())).sum::<u64>();
                if self.config.keeps_records() {
                    table.unforeseen += out.record.as_ref().map_or(0, Record::buffer_bytes);
                    table.records.push(out.record.take());
                }
            });
        }
        table.unforeseen += table.values.iter().zip(columns).map(|(v, c)| c.unforeseen(v.held())).sum::<u64>();
        let expected = self.config.expected * self.memory().plan.len() as u64;
        table.unforeseen = table.unforeseen.saturating_sub(expected);
        table
    }

    /// Returns the bytes by which this complete batch exceeds its plan.
    pub(crate) fn unforeseen(&self) -> u64 {
        self.table().unforeseen
    }

    /// Returns the number of rows of this complete batch that have a sample.
    pub(crate) fn valid_rows(&self) -> u64 {
        self.table().valid.iter().filter(|v| **v).count() as u64
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
        if self.config.release {
            let records = self.table.take().into_iter().flat_map(|table| table.records).flatten();
            records.for_each(|record| record.shard().release(record.row()));
        }
        memory.images.iter_mut().chain(&mut memory.masks).chain(&mut memory.arrays).for_each(RowBuffer::reset);
        if let Some(home) = self.home.upgrade() {
            home.give_back(self.replica, memory);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(home) = self.0.home.upgrade() {
            home.release(self.0.replica);
        }
    }
}

impl Batch {
    /// Wraps a complete batch, which the hand-over counts as held.
    pub(crate) fn new(batch: Arc<SharedBatch>) -> Self {
        Batch(batch)
    }

    /// Returns N, including rows without a sample.
    #[expect(clippy::len_without_is_empty, reason = "a batch has at least one row")]
    pub fn len(&self) -> usize {
        self.0.table().ids.len()
    }

    /// Returns the pixels of the first view, aligned to 64 bytes: u8 RGB, or the little-endian values of [`Batch::output`], in
    /// the order of [`Batch::image_shape`]. `None` if the loader delivers no images.
    pub fn images(&self) -> Option<&[u8]> {
        self.0.memory().images.first().and_then(RowBuffer::bytes)
    }

    /// Returns every array of images: each view of the image, then each view of further images.
    pub fn pictures(&self) -> impl Iterator<Item = Pictures<'_>> {
        let arrays = self.0.config.pictures(self.0.bucket).zip(&self.0.memory().images);
        arrays.map(|(picture, rows)| Pictures {
            feature: picture.feature,
            view: &picture.view.name,
            shape: self.shape_of(picture.view.pipeline.output_size()),
            clips: self.0.config.clip().map(|clip| [clip.clips as usize, clip.frames as usize]),
            buffer: rows.buffer(),
            bytes: rows.bytes().unwrap_or_default(),
        })
    }

    /// Returns the arrays of [`Config::arrays`](crate::Config::arrays), in their order.
    pub fn arrays(&self) -> impl Iterator<Item = Array<'_>> {
        let arrays = self.0.config.arrays.with_shapes().zip(&self.0.memory().arrays);
        arrays.map(|((array, shape), rows)| Array {
            feature: &array.feature,
            dtype: array.dtype,
            shape: [self.len()].into_iter().chain(shape.iter().map(|length| *length as usize)).collect(),
            buffer: rows.buffer(),
            bytes: rows.bytes().unwrap_or_default(),
        })
    }

    /// Returns the label maps of the feature with this number, `[N, H, W]`, aligned to 64 bytes: u8, or little-endian u16 if
    /// [`mask_dtype`](Self::mask_dtype) is. Rows without a sample hold the largest label, 255 or 65535; loss functions
    /// ignore 255 by convention. `None` if [`Images::masks`](crate::Images::masks) has no such number.
    pub fn mask(&self, number: usize) -> Option<&[u8]> {
        self.0.memory().masks.get(number).and_then(RowBuffer::bytes)
    }

    /// Returns type, layout and normalisation of the pixels; `None` for u8.
    pub fn output(&self) -> Option<&Output> {
        self.0.config.normalizer.as_ref().map(Normalizer::output)
    }

    /// Returns the shape of [`Batch::images`]: `[N, H, W, 3]`, or `[N, 3, H, W]` if that is the layout of [`Batch::output`];
    /// `None` without images. With clips, N is the number of all frames ([`Pictures::dimensions`]).
    pub fn image_shape(&self) -> Option<[usize; 4]> {
        let first = self.0.config.pictures(self.0.bucket).next()?;
        Some(self.shape_of(first.view.pipeline.output_size()))
    }

    fn shape_of(&self, (width, height): (u32, u32)) -> [usize; 4] {
        let shape = [self.len() * self.0.config.row_frames(), height as usize, width as usize, 3];
        self.output().map_or(shape, |output| output.layout().shape(shape))
    }

    /// Returns the type of the labels; `None` without label maps.
    pub fn mask_dtype(&self) -> Option<LabelDtype> {
        self.0.config.mask_dtype()
    }

    /// Returns `[N, H, W]`; `None` without label maps.
    pub fn mask_shape(&self) -> Option<[usize; 3]> {
        let (width, height) = self.0.config.pictures(self.0.bucket).next()?.view.pipeline.output_size();
        self.0.memory().masks.first().map(|_| [self.len(), height as usize, width as usize])
    }

    /// Returns the memory of the pixels, as its allocator returned it.
    pub fn buffer(&self) -> Option<&dyn BatchBuffer> {
        self.0.memory().images.first().map(RowBuffer::buffer)
    }

    /// Returns the features of the label maps, and the memory of each.
    pub fn masks(&self) -> impl Iterator<Item = (&str, &dyn BatchBuffer)> {
        let features = self.0.config.images().map_or(&[][..], |images| &images.masks);
        features.iter().map(String::as_str).zip(self.0.memory().masks.iter().map(RowBuffer::buffer))
    }

    /// Returns the id of each row's sample, `[N]`; −1 in rows without one. Ids count through the loader's splits.
    pub fn ids(&self) -> &[i64] {
        &self.0.table().ids
    }

    /// Returns whether each row has a sample, `[N]`.
    pub fn valid(&self) -> &[bool] {
        &self.0.table().valid
    }

    /// Returns the names of the columns, in the order of the configuration.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.config.columns.iter().map(|c| c.feature.as_str())
    }

    /// Returns the values of a column; `None` if the batch has no such column. In rows without a sample, integer labels
    /// are −100, other numbers 0, and ragged values and byte strings empty.
    pub fn column(&self, feature: &str) -> Option<&Values> {
        let at = self.columns().position(|name| name == feature)?;
        self.0.table().values.get(at)
    }

    /// Returns the numbers per row of a column, of mixed labels the number of classes; `None` for ragged columns and bytes.
    pub fn column_width(&self, feature: &str) -> Option<usize> {
        let column = self.columns().position(|name| name == feature)?;
        match self.0.config.mixing() {
            Some((mixing, label)) if label == column => Some(mixing.classes as usize),
            _ => self.0.config.columns[column].width(),
        }
    }

    /// Returns what a column holds of the objects in the image; `None` for other columns.
    pub fn column_role(&self, feature: &str) -> Option<ObjectRole> {
        let position = self.columns().position(|name| name == feature)?;
        self.0.config.objects.as_ref()?.role(position)
    }

    /// Returns the records, `[N]`, `None` in rows without a sample; empty unless the loader delivers records.
    pub fn records(&self) -> &[Option<Record>] {
        &self.0.table().records
    }

    /// Returns the bucket of its rows; `None` without buckets.
    pub fn bucket(&self) -> Option<Bucket> {
        self.0.config.plan.buckets().map(|buckets| buckets.as_slice()[self.0.bucket])
    }

    /// Returns the epoch, from 0.
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// Returns the number of positions of the epoch before this batch; with buckets, of bucket batches.
    pub fn position(&self) -> u64 {
        self.0.p
    }

    /// Returns the state to resume from after this batch.
    pub fn state_after(&self) -> ResumeState {
        self.0.config.state(self.0.after)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Batch");
        f.field("epoch", &self.0.epoch).field("position", &self.0.p).field("ids", &self.ids()).finish_non_exhaustive()
    }
}
