//! A worker thread: claims rows in order, and fills each from its record.

mod clip;
mod in_image;
mod mask;
mod packed;

use crate::arrays::PlannedArrays;
use crate::bad_samples::bad_sample;
use crate::batch::{RowOut, SharedBatch};
use crate::buffer::RowPixels;
use crate::engine::Engine;
use crate::error::{BadSample, Error, Result, SampleError};
use crate::groups::Images;
use crate::handover::Work;
use crate::image::{self, DecodeScratch, Decoding, PlannedClips, PlannedImage, SampleCache, SampleDraws, ScratchBytes};
use crate::memory_pressure::{Admission, Refused, ScratchAdmission};
use crate::meters::{ReadTimer, WorkerMeters};
use crate::options::OnBad;
use crate::packing;
use crate::plan::Walk;
use crate::read_ahead::{ReadAhead, cursor};
use crate::splits::RecordLocation;
use mask::mask;
use shardtool_order::{PackedSample, Sample};
use shardtool_read::Record;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(crate) struct Worker<'e> {
    /// Not a counted reference: all workers would write its count for each sample.
    engine: &'e Engine,
    meters: &'e WorkerMeters,
    number: usize,
    /// For each replica, a cursor through the epoch it is in.
    cursors: Vec<Option<(u64, Walk)>>,
    read_ahead: ReadAhead,
    scratch: DecodeScratch,
    /// One sample of a packed row, and the samples of the row.
    part: Option<RowOut>,
    samples: Vec<PackedSample>,
    /// Records read so far.
    reads: u64,
    /// The id of the current sample, for the error message of a panic.
    current: Option<u64>,
}

/// Where one row is written.
struct RowTarget<'a> {
    pixels: RowPixels<'a>,
    out: &'a mut RowOut,
}

/// The memory of a row that is being filled, beyond its place in the batch.
struct RowMemory<'e> {
    pool: &'e ScratchAdmission,
    /// Bytes of a record that is not mapped; 0 if it is.
    record: u64,
    /// `None` if the record alone is too large.
    admission: Option<Admission<'e>>,
}

/// Why a row has no sample.
enum RowError {
    /// The sample is bad.
    Bad(Box<BadSample>),
    /// The run ends.
    Run(Error),
}

impl From<Error> for RowError {
    fn from(error: Error) -> Self {
        RowError::Run(error)
    }
}

impl RowError {
    /// Classifies an error on a record as a bad sample or the end of the run.
    fn of(id: u64, at: &RecordLocation<'_>, error: SampleError) -> Self {
        match bad_sample(id, at, error) {
            Ok(bad) => RowError::Bad(Box::new(bad)),
            Err(error) => RowError::Run(error),
        }
    }
}

/// Why a row could not be filled from its record.
enum FillError {
    Sample(SampleError),
    Run(Error),
    /// The batch was cancelled.
    Cancelled,
    /// The row needs this many bytes of scratch in total, which are not free.
    NeedsScratch(u64),
}

impl<E: Into<SampleError>> From<E> for FillError {
    fn from(error: E) -> Self {
        FillError::Sample(error.into())
    }
}

impl<'e> Worker<'e> {
    pub(crate) fn new(engine: &'e Engine, number: usize) -> Self {
        let cursors = engine.config.ranks.iter().map(|_| None).collect();
        let read_ahead = ReadAhead::new(engine.config.clone());
        let scratch = DecodeScratch::default();
        let meters = engine.meters.worker(number);
        Worker {
            engine,
            meters,
            number,
            cursors,
            read_ahead,
            scratch,
            part: None,
            samples: vec![],
            reads: 0,
            current: None,
        }
    }

    /// Runs until the loader ends.
    pub(crate) fn run(mut self) {
        let engine = self.engine;
        let mut current = None;
        while let Some((batch, rows)) = self.next(current.take()) {
            self.fill(&batch, rows.clone());
            match batch.finish(rows.len()) {
                Ok(true) => engine.handover.completed(&batch),
                Ok(false) => {}
                Err(error) => {
                    engine.handover.fail(batch.replica, &batch, error);
                    engine.handover.completed(&batch);
                }
            }
            current = Some(batch);
        }
    }

    /// Claims rows, of the current batch if it has any left; `None` when the loader ends.
    fn next(&self, mut current: Option<Arc<SharedBatch>>) -> Option<(Arc<SharedBatch>, Range<usize>)> {
        let Engine { handover, config, meters, .. } = self.engine;
        loop {
            if let Some(batch) = current
                && let Some(rows) = batch.claim(config.rows_per_claim)
            {
                return Some((batch, rows));
            }
            // The finished batch was dropped above: returning its memory takes the lock that `next` takes.
            let (batch, waited) = handover.next(self.number);
            if let Some(waited) = waited {
                meters.buffer_wait.add(waited, 1);
            }
            current = Some(batch?);
        }
    }

    /// Fills claimed rows; the first one that fails cancels the batch.
    fn fill(&mut self, batch: &SharedBatch, rows: Range<usize>) {
        if rows.len() > 1 {
            // A panic is met again by the row.
            let _ = catch_unwind(AssertUnwindSafe(|| self.prefetch(batch, rows.clone())));
        }
        for row in rows {
            if batch.is_cancelled() {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| self.row(batch, row)));
            let error = match outcome {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(panic) => {
                    self.scratch = DecodeScratch::default();
                    self.panicked(&*panic)
                }
            };
            self.engine.handover.fail(batch.replica, batch, error);
        }
    }

    /// Hints that the records of claimed rows are read soon.
    fn prefetch(&mut self, batch: &SharedBatch, rows: Range<usize>) {
        for row in rows {
            if let Some(q) = batch.planned(row).position() {
                let sample = self.cursor(batch).sample(q);
                self.engine.config.splits.prefetch(sample.id);
            }
        }
    }

    fn row(&mut self, batch: &SharedBatch, row: usize) -> Result<()> {
        let engine = self.engine;
        let pixels = batch.pixels(row);
        batch.with_out(row, |out| {
            let target = &mut RowTarget { pixels, out };
            let Some(q) = batch.planned(row).position() else {
                mask(engine, batch.bucket(), target);
                return Ok(());
            };
            self.read_ahead.advance(batch, row);
            if engine.config.plan.packing().is_some() {
                return self.packed_row(batch, q, target.out);
            }
            let sample = self.cursor(batch).sample(q);
            self.sample_or_substitute(batch, q, sample, Some(row), target)
        })
    }

    /// Fills a row with the sample at position `q`; if it is bad, with what the configuration says. `row` is as for `sample`.
    fn sample_or_substitute(
        &mut self,
        batch: &SharedBatch,
        q: u64,
        sample: Sample,
        row: Option<usize>,
        target: &mut RowTarget<'_>,
    ) -> Result<()> {
        let engine = self.engine;
        let filled = self.sample(batch, sample, row, target);
        if let Some((fetcher, row)) = engine.fetcher.as_ref().zip(row) {
            fetcher.done(batch, row);
        }
        let bad = match filled {
            Ok(()) => return Ok(()),
            Err(RowError::Run(error)) => return Err(error),
            Err(RowError::Bad(bad)) => engine.add_bad(*bad)?,
        };
        match engine.config.on_bad {
            OnBad::Error => Err(Error::BadSample(bad)),
            OnBad::Mask => {
                mask(engine, batch.bucket(), target);
                Ok(())
            }
            OnBad::Substitute => {
                let mut tried = 0;
                for q in self.cursor(batch).substitutes(q) {
                    let sample = self.cursor(batch).sample(q);
                    tried += 1;
                    match self.sample(batch, sample, None, target) {
                        Ok(()) => return Ok(()),
                        Err(RowError::Run(error)) => return Err(error),
                        Err(RowError::Bad(bad)) => drop(engine.add_bad(*bad)?),
                    }
                }
                Err(Error::NoSubstitute { sample: bad, tried })
            }
        }
    }

    /// Reads one sample and fills a row with its pixels, columns and id. `row` is the row whose record may have been
    /// requested ahead.
    fn sample(
        &mut self,
        batch: &SharedBatch,
        Sample { source_position, id }: Sample,
        row: Option<usize>,
        target: &mut RowTarget<'_>,
    ) -> std::result::Result<(), RowError> {
        self.current = Some(id);
        let engine = self.engine;
        let config = &engine.config;
        let at = config.splits.locate(id).map_err(Error::from)?;
        let shard = at.open().map_err(|e| RowError::of(id, &at, e.into()))?;
        if config.is_exact() {
            shard.read_exactly();
        }
        if self.row_of_frames(batch, (Sample { source_position, id }, row), &shard, &at, target)? {
            return Ok(());
        }
        let decodes = config.images().is_some() || !config.arrays.is_empty();
        // A record that is not mapped is read into memory, which counts as scratch.
        let mut record_bytes = match shard.bytes().mapped() {
            None if decodes => {
                let frame = shard.frame(at.row).map_err(|e| RowError::of(id, &at, e.into()))?;
                frame.end - frame.start
            }
            _ => 0,
        };
        let mut needed = record_bytes;
        // The record is dropped before the memory that counts it.
        let (_memory, record) = loop {
            let admission = match engine.scratch.admit(batch, needed) {
                Ok(admission) => Some(admission),
                Err(Refused::Cancelled) => return Err(RowError::Run(Error::Stopped)),
                // `decode` reports this with the image's size.
                Err(Refused::TooLarge(_)) => None,
            };
            if record_bytes > 0 {
                // What earlier images left counts as well.
                self.scratch.trim(engine.scratch.kept().saturating_sub(record_bytes));
            }
            let mut memory = RowMemory { pool: &engine.scratch, record: record_bytes, admission };
            self.reads += 1;
            let timer = ReadTimer::start(self.reads);
            let fetched = engine.fetcher.as_ref().zip(row).and_then(|(fetcher, row)| fetcher.fetched(batch, row, id));
            if fetched.is_none() && batch.is_cancelled() {
                // The loader ends or has moved: the record is not needed, and reading it may take as long as a server does.
                return Err(RowError::Run(Error::Stopped));
            }
            let record = match fetched {
                Some(Ok(parts)) => shard.frame(at.row).and_then(|frame| match parts.bytes(&frame) {
                    Some(bytes) => shard.record_in(at.row, bytes.to_vec()),
                    None => config.arrays.record_of_parts(&shard, at.row, |range| parts.bytes(range)),
                }),
                Some(Err(error)) => Err(clip::unread(&shard, error)),
                None => config.arrays.record(&shard, at.row),
            };
            timer.stop(self.meters);
            let record = record.map_err(|e| RowError::of(id, &at, e.into()))?;
            if decodes && record_bytes == 0 && record.buffer_bytes() > 0 {
                // Its mapping could not be read, so it was read into memory after all.
                record_bytes = record.buffer_bytes();
                needed = record_bytes;
                continue;
            }
            let decoded = self.decode(batch, source_position, &record, &mut memory, &at, target);
            if record.check_readable().is_err() {
                // What was decoded may be wrong. Unless it is the index, the record is read again without the mapping.
                shard.check_index_readable().map_err(|e| RowError::of(id, &at, e.into()))?;
                continue;
            }
            match decoded {
                Ok(()) => break (memory, record),
                Err(FillError::NeedsScratch(bytes)) => needed = bytes,
                Err(FillError::Sample(error)) => return Err(RowError::of(id, &at, error)),
                Err(FillError::Run(error)) => return Err(RowError::Run(error)),
                Err(FillError::Cancelled) => return Err(RowError::Run(Error::Stopped)),
            }
        };
        let read = record.data().len() as u64 - record.unread_bytes();
        self.meters.bytes.fetch_add(read, Ordering::Relaxed);
        (target.out.id, target.out.valid) = (id as i64, true);
        if config.keeps_records {
            target.out.record = Some(record);
            return Ok(());
        }
        if config.release {
            shard.release(at.row);
        }
        Ok(())
    }

    /// Fills a row's columns from a record, then its pixels once their scratch is admitted, in addition to the record's
    /// own bytes.
    fn decode(
        &mut self,
        batch: &SharedBatch,
        source_position: u64,
        record: &Record,
        memory: &mut RowMemory<'_>,
        at: &RecordLocation<'_>,
        target: &mut RowTarget<'_>,
    ) -> std::result::Result<(), FillError> {
        let engine = self.engine;
        let config = &engine.config;
        let mut example = None;
        for (column, cell) in config.columns.iter().zip(&mut target.out.cells) {
            column.read(at.number, record, &mut example, cell)?;
        }
        if let Some(packing) = config.plan.packing() {
            let (expected, capacity) = (packing.tokens(source_position) as usize, packing.capacity() as usize);
            packing::check_lengths(&config.columns, &target.out.cells, expected, capacity)?;
        }
        if config.images().is_none() && config.arrays.is_empty() {
            return Ok(());
        }
        let draws = SampleDraws { seed: config.plan.seed(), epoch: batch.epoch, source_position };
        if let Some((images, clip)) = config.images().and_then(|images| Some((images, images.clip.as_ref()?))) {
            let planned = PlannedClips::of_record(record, images, clip, draws)?;
            return self.fill_clips(batch, &planned, Some(record), memory, at, target);
        }
        let arrays = match (config.arrays.is_empty(), example) {
            (true, _) => None,
            (false, Some(example)) => Some(PlannedArrays::of(&example, &config.arrays, draws)?),
            (false, None) => Some(PlannedArrays::of(&record.example()?, &config.arrays, draws)?),
        };
        let objects = config.objects.as_ref();
        objects.map_or(Ok(()), |objects| objects.check(&target.out.cells))?;
        let of_objects = objects.map(|objects| (objects, &target.out.cells[..]));
        let views = config.views.of(batch.bucket());
        let image = match config.images() {
            Some(images) => Some((images, PlannedImage::of(record, images, |_| views, draws, of_objects)?)),
            None => None,
        };
        let positions = match (&arrays, &image) {
            (Some(arrays), Some((_, planned))) => in_image::prepare(engine, arrays, planned)?,
            _ => 0,
        };
        let scratch = ScratchBytes {
            images: positions + image.as_ref().map_or(0, |(_, planned)| planned.scratch),
            arrays: arrays.as_ref().map_or(0, |arrays| arrays.scratch),
        };
        let size = image.as_ref().map(|(_, planned)| planned.size());
        let kept = self.admit_scratch(batch, memory, scratch, size, at)?;
        let sample = (self.current.unwrap_or(u64::MAX), record);
        let written = write((engine, self.meters), sample, image, arrays.as_ref(), &mut self.scratch, target);
        self.scratch.trim(kept);
        Ok(written?)
    }

    /// Admits scratch to a record, with an image of this width and height if it has one, in addition to the record's own bytes.
    /// Returns how many bytes the worker may keep afterwards.
    fn admit_scratch(
        &mut self,
        batch: &SharedBatch,
        memory: &mut RowMemory<'_>,
        scratch: ScratchBytes,
        size: Option<(u32, u32)>,
        at: &RecordLocation<'_>,
    ) -> std::result::Result<u64, FillError> {
        let needed = memory.record + scratch.sum();
        let kept = memory.pool.kept();
        self.scratch.prepare(scratch, kept.saturating_sub(memory.record));
        match &mut memory.admission {
            // To avoid deadlock, a worker never waits while it holds scratch: it returns all of it and requests the sum.
            Some(admission) if memory.record > 0 => {
                if !admission.extend(needed) {
                    return Err(FillError::NeedsScratch(needed));
                }
            }
            admission => {
                *admission = Some(memory.pool.admit(batch, needed).map_err(|refused| match refused {
                    Refused::Cancelled => FillError::Cancelled,
                    Refused::TooLarge(allowed) => {
                        let (shard, record) = (at.path(), at.row);
                        FillError::Run(match size {
                            Some((width, height)) => Error::Scratch { shard, record, width, height, needed, allowed },
                            None => Error::ArrayScratch { shard, record, needed, allowed },
                        })
                    }
                })?);
            }
        }
        Ok(kept)
    }

    /// Returns the cursor through the epoch of this batch's replica.
    fn cursor(&mut self, batch: &SharedBatch) -> &mut Walk {
        cursor(&self.engine.config, &mut self.cursors[batch.replica], batch.replica, batch.epoch)
    }

    fn panicked(&self, panic: &(dyn std::any::Any + Send)) -> Error {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let id = self.current.unwrap_or(u64::MAX);
        let at = self.engine.config.splits.locate(id).ok();
        Error::Panic {
            id,
            shard: at.map(|p| p.path()).unwrap_or_default(),
            record: at.map_or(0, |p| p.row),
            message: message.unwrap_or_else(|| "(the panic's value is not text)".to_owned()),
        }
    }
}

/// Writes the image and the arrays of the record of sample `id`, whose scratch was admitted, into its row.
fn write(
    (engine, meters): (&Engine, &WorkerMeters),
    (id, record): (u64, &Record),
    image: Option<(&Images, PlannedImage<'_>)>,
    arrays: Option<&PlannedArrays<'_>>,
    scratch: &mut DecodeScratch,
    target: &mut RowTarget<'_>,
) -> std::result::Result<(), SampleError> {
    let config = &engine.config;
    if let Some(arrays) = arrays {
        let start = Instant::now();
        if let Some((_, planned)) = &image {
            in_image::find_positions(engine, planned, scratch)?;
        }
        let read = arrays.write(record, &config.arrays, &mut scratch.arrays, &mut target.pixels.arrays)?;
        meters.bytes.fetch_add(read, Ordering::Relaxed);
        meters.decode.add(start.elapsed(), u64::from(image.is_none()));
    }
    let Some((images, planned)) = image else { return Ok(()) };
    if let Some(objects) = &config.objects {
        planned.map_objects(objects, &mut target.out.cells);
    }
    let decoding = decoding((engine, meters), images, id, Some(record));
    image::write_row(planned, decoding, &mut target.pixels, scratch)
}

/// Returns how the images of sample `id` are decoded. They lie in `record`, unless their bytes were copied.
fn decoding<'c>(
    (engine, meters): (&'c Engine, &'c WorkerMeters),
    images: &'c Images,
    id: u64,
    record: Option<&'c Record>,
) -> Decoding<'c> {
    let cache = engine.decoded.as_ref().map(|images| SampleCache { images, id, record });
    let (custom, format) = (images.pixels.custom.as_ref().map(|custom| &custom.0), images.pixel_format());
    Decoding { images, normalizer: engine.config.normalizer.as_ref(), custom, format, cache, meters }
}
