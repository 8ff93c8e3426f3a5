//! The row of one sample: its values obtained, planned, then written.

use super::attempt::{Attempt, RowMemory, Step, fill};
use super::frames::{Chosen, unread};
use super::{RowError, RowTarget, Worker, in_image};
use crate::arrays::PlannedArrays;
use crate::batch::SharedBatch;
use crate::batch_supply::BatchSupply;
use crate::cell::Cell;
use crate::engine::Engine;
use crate::error::{Error, SampleError};
use crate::groups::Images;
use crate::handover::Work;
use crate::image::{self, Decoding, PlannedClips, PlannedImage, SampleCache, SampleDraws, ScratchBytes};
use crate::memory_pressure::Refused;
use crate::meters::ReadTimer;
use crate::packing;
use crate::splits::RecordLocation;
use shardtool_order::Sample;
use shardtool_read::{Record, Shard};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a row needs of its record.
enum Needs {
    /// All of it, perhaps without the chunks of arrays that crops do not meet.
    Record,
    /// These frames, without the rest.
    Frames(Chosen),
}

/// What was obtained.
pub(super) enum Values {
    Record(Record),
    Frames(Vec<Vec<u8>>),
}

/// What is made of the values, once their scratch is admitted.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
enum Planned<'r> {
    /// Nothing but columns.
    Columns,
    Clips(PlannedClips<'r>),
    /// An image, arrays, or both; and the bytes that finding the positions of the image's pixels takes.
    Row {
        image: Option<PlannedImage<'r>>,
        arrays: Option<PlannedArrays<'r>>,
        positions: u64,
    },
}

/// A row that is filled with one sample.
pub(super) struct SampleRow<'w, 'e, 'b> {
    worker: &'w mut Worker<'e>,
    batch: &'w SharedBatch,
    sample: Sample,
    /// The row whose values may have been requested ahead.
    row: Option<usize>,
    at: &'w RecordLocation<'e>,
    shard: &'w Arc<Shard>,
    needs: Needs,
    /// Bytes of values that are not mapped, which count as scratch.
    values: u64,
    /// Bytes that the attempt was admitted.
    admitted: u64,
    target: &'w mut RowTarget<'b>,
}

impl Worker<'_> {
    /// Fills a row with the pixels, arrays, columns and id of a sample. `row` is the row whose record may have been requested ahead.
    pub(super) fn sample(
        &mut self,
        batch: &SharedBatch,
        sample: Sample,
        row: Option<usize>,
        target: &mut RowTarget<'_>,
    ) -> Result<(), RowError> {
        self.current = Some(sample.id);
        let config = &self.engine.config;
        let at = &match config.splits.locate(sample.id) {
            Ok(at) => at,
            // Which rows of the shard are deleted is unknown.
            Err(error) if error.is_bad_sample() => {
                let near = config.splits.near(sample.id).map_err(Error::from)?;
                return Err(RowError::of(sample.id, &near, error.into()));
            }
            Err(error) => return Err(RowError::Run(error.into())),
        };
        let shard = &at.open().map_err(|e| RowError::of(sample.id, at, e.into()))?;
        if config.is_exact() {
            shard.read_exactly();
        }
        let (needs, values, admitted) = (Needs::Record, 0, 0);
        let mut row = SampleRow { worker: self, batch, sample, row, at, shard, needs, values, admitted, target };
        row.choose()?;
        row.fill()
    }
}

impl<'e> SampleRow<'_, 'e, '_> {
    /// Fills the row.
    fn fill(mut self) -> Result<(), RowError> {
        let bytes = self.values;
        let filled = fill(&mut self, bytes)?;
        let engine = self.worker.engine;
        let read = match (&filled.values, &self.needs) {
            (Values::Record(record), _) => record.data().len() as u64 - record.unread_bytes(),
            (Values::Frames(_), Needs::Frames(chosen)) => chosen.bytes,
            (Values::Frames(_), Needs::Record) => 0,
        };
        self.worker.meters.bytes.fetch_add(read, Ordering::Relaxed);
        (self.target.out.id, self.target.out.valid) = (self.sample.id as i64, true);
        match filled.values {
            Values::Record(record) if engine.config.keeps_records => self.target.out.record = Some(record),
            _ if engine.config.release => self.shard.release(self.at.row),
            _ => {}
        }
        Ok(())
    }

    /// Chooses what to read: the frames of a clip alone, if the index has their ranges and every column; otherwise the record.
    fn choose(&mut self) -> Result<(), RowError> {
        let config = &self.worker.engine.config;
        if let Some(clip) = config.clip()
            && let Some(ranges) =
                self.shard.value_ranges(self.at.row, &clip.feature).map_err(|e| self.error(e.into()))?
            && self.columns_of_index()?
        {
            let chosen = Chosen::new(clip.frame_numbers(ranges.len(), self.draws()), &ranges);
            chosen.request_of_system(self.shard, self.at.row);
            self.values = chosen.bytes;
            self.needs = Needs::Frames(chosen);
            return Ok(());
        }
        self.choose_record()
    }

    /// Chooses the whole record. One that is not mapped is read into memory, which counts as scratch.
    fn choose_record(&mut self) -> Result<(), RowError> {
        self.needs = Needs::Record;
        self.values = match self.shard.bytes().mapped() {
            None if self.decodes() => {
                let frame = self.shard.frame(self.at.row).map_err(|e| self.error(e.into()))?;
                frame.end - frame.start
            }
            _ => 0,
        };
        Ok(())
    }

    /// Reads the columns from the index. Returns false if it lacks one.
    fn columns_of_index(&mut self) -> Result<bool, RowError> {
        for (column, cell) in self.worker.engine.config.columns.iter().zip(&mut self.target.out.cells) {
            let read = column.read_index(self.at.number, self.shard, self.at.row, cell);
            if !read.map_err(|e| RowError::of(self.sample.id, self.at, e))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether more than columns is made of the record.
    fn decodes(&self) -> bool {
        let config = &self.worker.engine.config;
        config.images().is_some() || !config.arrays.is_empty()
    }

    /// Reads the whole record, or makes it of its parts that were requested ahead.
    fn record(&mut self) -> Result<Step<Record>, RowError> {
        let Worker { engine, meters, .. } = *self.worker;
        let (shard, at, arrays) = (self.shard, self.at.row, &engine.config.arrays);
        let timer = ReadTimer::start(self.worker.reads);
        let fetcher = engine.fetcher.as_ref().zip(self.row);
        let fetched = fetcher.and_then(|(fetcher, row)| fetcher.fetched(self.batch, row, self.sample.id));
        if fetched.is_none() && self.batch.is_cancelled() {
            // The loader ends or has moved: the record is not needed, and reading it may take as long as a server does.
            return Err(RowError::Run(Error::Stopped));
        }
        let record = match fetched {
            Some(Ok(parts)) => shard.frame(at).and_then(|frame| match parts.bytes(&frame) {
                Some(bytes) => shard.record_in(at, bytes.to_vec()),
                None => arrays.record_of_parts(shard, at, |range| parts.bytes(range)),
            }),
            Some(Err(error)) => Err(unread(shard, error)),
            None => arrays.record(shard, at),
        };
        timer.stop(meters);
        let record = record.map_err(|e| self.error(e.into()))?;
        if self.decodes() && self.values == 0 && record.buffer_bytes() > 0 {
            // Its mapping could not be read, so it was read into memory after all.
            self.values = record.buffer_bytes();
            return Ok(Step::Again(self.values));
        }
        Ok(Step::Done(record))
    }

    /// Reads chosen frames; the whole record in their place if they were not requested ahead and no cache may have them.
    fn frames(&mut self) -> Result<Step<Values>, RowError> {
        let Needs::Frames(chosen) = &self.needs else { return Ok(Step::Again(self.values)) };
        let Worker { engine, meters, .. } = *self.worker;
        let Some(clip) = engine.config.clip() else { return Ok(Step::Again(self.values)) };
        let timer = ReadTimer::start(self.worker.reads);
        let fetched = match &engine.fetcher {
            Some(fetcher) => match self.row.and_then(|row| fetcher.fetched(self.batch, row, self.sample.id)) {
                Some(Ok(fetched)) => Some(fetched),
                Some(Err(error)) => return Err(self.error(SampleError::Read(unread(self.shard, error)))),
                None if self.batch.is_cancelled() => return Err(RowError::Run(Error::Stopped)),
                // A cache may have its blocks.
                None if self.shard.bytes().cached().is_some() => None,
                None => {
                    self.choose_record()?;
                    return Ok(Step::Again(self.values));
                }
            },
            None => None,
        };
        let values = chosen.read(clip, self.shard, self.at.row, fetched.as_ref());
        timer.stop(meters);
        let values = values.map_err(|e| self.error(e))?;
        self.shard.check_index_readable().map_err(|e| self.error(e.into()))?;
        Ok(Step::Done(Values::Frames(values)))
    }

    /// Reads the row's columns from its record, and plans the rest.
    fn plan<'r>(&mut self, values: &'r Values) -> Result<Planned<'r>, SampleError>
    where
        'e: 'r,
    {
        let engine = self.worker.engine;
        let config = &engine.config;
        let draws = self.draws();
        let clips = config.images().and_then(|images| Some((images, images.clip.as_ref()?)));
        let record = match (values, &self.needs, clips) {
            (Values::Record(record), ..) => record,
            (Values::Frames(values), Needs::Frames(chosen), Some((images, clip))) => {
                return Ok(Planned::Clips(PlannedClips::new(chosen.frames(values), images, clip, draws)?));
            }
            (Values::Frames(_), ..) => return Ok(Planned::Columns),
        };
        let cells = &mut self.target.out.cells;
        let mut example = None;
        for (column, cell) in config.columns.iter().zip(cells.iter_mut()) {
            column.read(self.at.number, record, &mut example, (Some(draws), cell))?;
        }
        if let Some(packing) = config.plan.packing() {
            let expected = packing.tokens(self.sample.source_position) as usize;
            packing::check_lengths(&config.columns, cells, expected, packing.capacity() as usize)?;
        }
        if let Some((images, clip)) = clips {
            return Ok(Planned::Clips(PlannedClips::of_record(record, images, clip, draws)?));
        }
        if !self.decodes() {
            return Ok(Planned::Columns);
        }
        let cells = &self.target.out.cells[..];
        let arrays = match (config.arrays.is_empty(), example) {
            (true, _) => None,
            (false, Some(example)) => Some(PlannedArrays::of(&example, &config.arrays, draws)?),
            (false, None) => Some(PlannedArrays::of(&record.example()?, &config.arrays, draws)?),
        };
        let objects = config.objects.as_ref();
        objects.map_or(Ok(()), |objects| objects.check(cells))?;
        let of_objects = objects.map(|objects| (objects, cells));
        let views = config.views.of(self.batch.bucket());
        let image = config.images().map(|images| PlannedImage::of(record, images, |_| views, draws, of_objects));
        let image = image.transpose()?;
        let positions = match (&arrays, &image) {
            (Some(arrays), Some(image)) => in_image::prepare(engine, arrays, image)?,
            _ => 0,
        };
        Ok(Planned::Row { image, arrays, positions })
    }

    /// Admits the scratch of what was planned, in addition to the row's values. Returns how many bytes the worker may keep afterwards.
    fn extend(
        &mut self,
        planned: &Planned<'_>,
        memory: &mut RowMemory<'e, BatchSupply>,
    ) -> Result<Step<u64>, RowError> {
        let scratch = planned.scratch();
        let kept = self.worker.engine.scratch.kept();
        self.worker.scratch.prepare(scratch, kept.saturating_sub(memory.values));
        let extended = memory.extend(self.batch, scratch.sum()).map_err(|refused| match refused {
            Refused::Cancelled => Error::Stopped,
            Refused::TooLarge(allowed) => {
                let (shard, record, needed) = (self.at.path(), self.at.row, memory.values + scratch.sum());
                if let Some(objects) = planned.masks_of(scratch.sum()) {
                    return Error::MaskScratch { shard, record, objects, needed, allowed };
                }
                match planned.image_size() {
                    Some((width, height)) => Error::Scratch { shard, record, width, height, needed, allowed },
                    None => Error::ArrayScratch { shard, record, needed, allowed },
                }
            }
        })?;
        Ok(match extended {
            Step::Done(()) => Step::Done(kept),
            Step::Again(bytes) => Step::Again(bytes),
        })
    }

    /// Writes what was planned into the row.
    fn write_planned(&mut self, planned: Planned<'_>, record: Option<&Record>) -> Result<(), SampleError> {
        let Worker { engine, meters, scratch, .. } = &mut *self.worker;
        let config = &engine.config;
        let RowTarget { pixels, out } = &mut *self.target;
        let decoding = config.images().map(|images| decoding(engine, images, (self.sample.id, record), meters));
        let (image, arrays) = match planned {
            Planned::Columns => return Ok(()),
            Planned::Clips(planned) => {
                let (Some(clip), Some(decoding)) = (config.clip(), decoding) else { return Ok(()) };
                return image::write_clips(&planned, clip, decoding, pixels, scratch);
            }
            Planned::Row { image, arrays, .. } => (image, arrays),
        };
        if let Some((arrays, record)) = arrays.zip(record) {
            let start = Instant::now();
            if let Some(planned) = &image {
                in_image::find_positions(engine, planned, scratch)?;
            }
            let read = arrays.write(record, &config.arrays, &mut scratch.arrays, &mut pixels.arrays)?;
            meters.bytes.fetch_add(read, Ordering::Relaxed);
            meters.decode.add(start.elapsed(), u64::from(image.is_none()));
        }
        let Some((planned, decoding)) = image.zip(decoding) else { return Ok(()) };
        if let Some(objects) = &config.objects {
            planned.map_objects(objects, &mut out.cells);
            if let Some(Cell::Maps(masks)) = objects.masks.map(|column| &mut out.cells[column]) {
                let start = Instant::now();
                image::write_object_masks(&planned, objects, masks, scratch)?;
                meters.decode.add(start.elapsed(), 0);
            }
        }
        image::write_row(planned, decoding, pixels, scratch)
    }

    /// Plans, extends the memory and writes.
    fn write_values(&mut self, values: &Values, memory: &mut RowMemory<'e, BatchSupply>) -> Result<Step<()>, RowError> {
        let planned = self.plan(values).map_err(|e| self.error(e))?;
        if let Planned::Columns = planned {
            return Ok(Step::Done(()));
        }
        let kept = match self.extend(&planned, memory)? {
            Step::Done(kept) => kept,
            Step::Again(bytes) => return Ok(Step::Again(bytes)),
        };
        let record = match values {
            Values::Record(record) => Some(record),
            Values::Frames(_) => None,
        };
        let written = self.write_planned(planned, record);
        self.worker.scratch.trim(kept);
        written.map_err(|e| self.error(e))?;
        Ok(Step::Done(()))
    }

    fn draws(&self) -> SampleDraws {
        let seed = self.worker.engine.config.plan.seed();
        SampleDraws { seed, epoch: self.batch.epoch, source_position: self.sample.source_position }
    }

    fn error(&self, error: SampleError) -> RowError {
        RowError::of(self.sample.id, self.at, error)
    }
}

impl<'e> Attempt for SampleRow<'_, 'e, '_> {
    type Memory = RowMemory<'e, BatchSupply>;
    type Values = Values;
    type Error = RowError;

    fn admit(&mut self, bytes: u64) -> Result<RowMemory<'e, BatchSupply>, RowError> {
        let engine = self.worker.engine;
        self.admitted = bytes;
        let memory = RowMemory::admit(&engine.scratch, self.batch, bytes, self.values);
        let memory = memory.ok_or(Error::Stopped)?;
        if self.values > 0 {
            // What earlier images left counts as well.
            self.worker.scratch.trim(engine.scratch.kept().saturating_sub(self.values));
        }
        Ok(memory)
    }

    fn obtain(&mut self) -> Result<Step<Values>, RowError> {
        self.worker.reads += 1;
        if let Needs::Frames(_) = self.needs {
            return self.frames();
        }
        Ok(match self.record()? {
            Step::Done(record) => Step::Done(Values::Record(record)),
            Step::Again(bytes) => Step::Again(bytes),
        })
    }

    fn write(&mut self, values: &Values, memory: &mut RowMemory<'e, BatchSupply>) -> Result<Step<()>, RowError> {
        let written = self.write_values(values, memory);
        if let Values::Record(record) = values
            && record.check_readable().is_err()
        {
            // What was written may be wrong. Unless it is the index, the record is read again without the mapping.
            self.shard.check_index_readable().map_err(|e| self.error(e.into()))?;
            return Ok(Step::Again(self.admitted));
        }
        written
    }
}

impl Planned<'_> {
    fn scratch(&self) -> ScratchBytes {
        match self {
            Planned::Columns => ScratchBytes::default(),
            Planned::Clips(clips) => ScratchBytes { images: clips.scratch, arrays: 0 },
            Planned::Row { image, arrays, positions } => ScratchBytes {
                images: positions + image.as_ref().map_or(0, |image| image.scratch),
                arrays: arrays.as_ref().map_or(0, |arrays| arrays.scratch),
            },
        }
    }

    /// Returns the number of objects whose masks are most of `scratch` bytes; `None` if they are not.
    fn masks_of(&self, scratch: u64) -> Option<usize> {
        let Planned::Row { image: Some(image), .. } = self else { return None };
        let (objects, bytes) = image.object_masks();
        (2 * bytes > scratch).then_some(objects)
    }

    /// Returns width and height of the image or the frames.
    fn image_size(&self) -> Option<(u32, u32)> {
        match self {
            Planned::Columns => None,
            Planned::Clips(clips) => Some(clips.size),
            Planned::Row { image, .. } => image.as_ref().map(PlannedImage::size),
        }
    }
}

/// Returns how the images of a sample are decoded. They lie in `record`, unless their bytes were copied.
fn decoding<'c>(
    engine: &'c Engine,
    images: &'c Images,
    (id, record): (u64, Option<&'c Record>),
    meters: &'c crate::meters::WorkerMeters,
) -> Decoding<'c> {
    let cache = engine.decoded.as_ref().map(|images| SampleCache { images, id, record });
    let (custom, format) = (images.pixels.custom.as_ref().map(|custom| &custom.0), images.pixel_format());
    Decoding { images, normalizer: engine.config.normalizer.as_ref(), custom, format, cache, meters }
}
