//! Fills a row with clips from single values of its record.

use super::{FillError, RowError, RowMemory, RowTarget, Worker, decoding};
use crate::batch::SharedBatch;
use crate::clip::distinct;
use crate::error::{Error, SampleError};
use crate::handover::Work;
use crate::image::{self, Frame, PlannedClips, SampleDraws, ScratchBytes};
use crate::memory_pressure::Refused;
use crate::meters::ReadTimer;
use crate::splits::RecordLocation;
use shardtool_format::index::ValueRange;
use shardtool_order::Sample;
use shardtool_read::{Record, Shard};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The frames of a row that are read, each once.
struct Chosen {
    /// The numbers of the row's frames, clip after clip.
    numbers: Vec<usize>,
    /// The frames to read, by increasing number, and where they lie.
    ranges: Vec<(usize, ValueRange)>,
    /// Bytes of these frames.
    bytes: u64,
}

impl Worker<'_> {
    /// Fills a row with clips whose frames are read by their ranges in the index, without the rest of their record. Each
    /// frame's CRC takes the place of the record's. Those of a dataset in an object store were requested ahead, for the row
    /// with number `row`. Returns false, with nothing filled, if the whole record is needed: the index has no ranges, a column
    /// needs the record, or nothing was requested ahead.
    pub(super) fn row_of_frames(
        &mut self,
        batch: &SharedBatch,
        (sample, row): (Sample, Option<usize>),
        shard: &Arc<Shard>,
        at: &RecordLocation<'_>,
        target: &mut RowTarget<'_>,
    ) -> Result<bool, RowError> {
        let Sample { source_position, id } = sample;
        let engine = self.engine;
        let config = &engine.config;
        let Some((images, clip)) = config.images().and_then(|images| Some((images, images.clip.as_ref()?))) else {
            return Ok(false);
        };
        let bad = |error: SampleError| RowError::of(id, at, error);
        let Some(ranges) = shard.value_ranges(at.row, &clip.feature).map_err(|e| bad(e.into()))? else {
            return Ok(false);
        };
        for (column, cell) in config.columns.iter().zip(&mut target.out.cells) {
            if !column.read_index(at.number, shard, at.row, cell).map_err(bad)? {
                return Ok(false);
            }
        }
        let draws = SampleDraws { seed: config.plan.seed(), epoch: batch.epoch, source_position };
        let chosen = Chosen::new(clip.frame_numbers(ranges.len(), draws), &ranges);
        chosen.ranges.iter().for_each(|(_, range)| shard.will_need_value(at.row, *range));
        let mut needed = chosen.bytes;
        loop {
            let admission = match engine.scratch.admit(batch, needed) {
                Ok(admission) => Some(admission),
                Err(Refused::Cancelled) => return Err(RowError::Run(Error::Stopped)),
                // `admit_scratch` reports this with the size of the frames.
                Err(Refused::TooLarge(_)) => None,
            };
            // What earlier images left counts as well.
            self.scratch.trim(engine.scratch.kept().saturating_sub(chosen.bytes));
            // The values are dropped before the memory that counts them.
            let mut memory = RowMemory { pool: &engine.scratch, record: chosen.bytes, admission };
            self.reads += 1;
            let timer = ReadTimer::start(self.reads);
            let fetched = match engine.fetcher.as_ref() {
                Some(fetcher) => match row.and_then(|row| fetcher.fetched(batch, row, id)) {
                    Some(Ok(fetched)) => Some(fetched),
                    Some(Err(error)) => return Err(bad(SampleError::Read(unread(shard, error)))),
                    None if batch.is_cancelled() => return Err(RowError::Run(Error::Stopped)),
                    // A cache may have its blocks.
                    None if shard.bytes().cached().is_some() => None,
                    None => return Ok(false),
                },
                None => None,
            };
            let read = |(number, range): &(usize, ValueRange)| {
                let error = |source: shardtool_read::Error| match source.is_bad_sample() {
                    true => SampleError::FrameBytes {
                        feature: clip.feature.clone(),
                        number: *number,
                        source: Box::new(source),
                    },
                    false => SampleError::Read(source),
                };
                let bytes = || fetched.as_ref()?.bytes(&shard.value_in_shard(at.row, *range).ok()?);
                match bytes() {
                    Some(bytes) => shard.value_in(at.row, *range, bytes).map_err(error),
                    None => shard.value_at(at.row, *range).map_err(error),
                }
            };
            let values = chosen.ranges.iter().map(read).collect::<Result<Vec<_>, _>>();
            timer.stop(self.meters);
            let values = values.map_err(bad)?;
            shard.check_index_readable().map_err(|e| bad(e.into()))?;
            let planned = PlannedClips::new(chosen.frames(&values), images, clip, draws).map_err(bad)?;
            match self.fill_clips(batch, &planned, None, &mut memory, at, target) {
                Ok(()) => break,
                Err(FillError::NeedsScratch(bytes)) => needed = bytes,
                Err(FillError::Sample(error)) => return Err(bad(error)),
                Err(FillError::Run(error)) => return Err(RowError::Run(error)),
                Err(FillError::Cancelled) => return Err(RowError::Run(Error::Stopped)),
            }
        }
        self.meters.bytes.fetch_add(chosen.bytes, Ordering::Relaxed);
        (target.out.id, target.out.valid) = (id as i64, true);
        if config.release {
            shard.release(at.row);
        }
        Ok(true)
    }

    /// Decodes planned clips into their row once their scratch is admitted, in addition to the bytes of the frames, which lie in
    /// `record` unless they were copied.
    pub(super) fn fill_clips(
        &mut self,
        batch: &SharedBatch,
        planned: &PlannedClips<'_>,
        record: Option<&Record>,
        memory: &mut RowMemory<'_>,
        at: &RecordLocation<'_>,
        target: &mut RowTarget<'_>,
    ) -> Result<(), FillError> {
        let engine = self.engine;
        let config = &engine.config;
        let (Some(images), Some(clip)) = (config.images(), config.clip()) else { return Ok(()) };
        let scratch = ScratchBytes { images: planned.scratch, arrays: 0 };
        let kept = self.admit_scratch(batch, memory, scratch, Some(planned.size), at)?;
        let decoding = decoding((engine, self.meters), images, self.current.unwrap_or(u64::MAX), record);
        let written = image::write_clips(planned, clip, decoding, &mut target.pixels, &mut self.scratch);
        self.scratch.trim(kept);
        Ok(written?)
    }
}

/// Returns the error of a request that was made ahead.
pub(super) fn unread(shard: &Shard, source: io::Error) -> shardtool_read::Error {
    shardtool_read::Error::Io { action: "read", path: shard.path().to_owned(), source }
}

impl Chosen {
    fn new(numbers: Vec<usize>, ranges: &[ValueRange]) -> Self {
        let ranges: Vec<_> = distinct(numbers.clone()).into_iter().map(|number| (number, ranges[number])).collect();
        Chosen { bytes: ranges.iter().map(|(_, range)| u64::from(range.length)).sum(), numbers, ranges }
    }

    /// Returns the row's frames. `values` are the bytes of those that were read.
    fn frames<'v>(&self, values: &'v [Vec<u8>]) -> Vec<Frame<'v>> {
        let place = |number: usize| self.ranges.partition_point(|(other, _)| *other < number);
        self.numbers.iter().map(|number| (*number, &*values[place(*number)])).collect()
    }
}
