//! A worker thread: claims rows in order, and fills each from its record.
//!
//! | module | content |
//! |---|---|
//! | this one | the thread; what becomes of a row whose sample is bad |
//! | `row` | a row of one sample: obtained, planned, written |
//! | `attempt` | the loop that does so, perhaps again, in bounded memory; model-checked |
//! | `frames` | the frames of clips, without the rest of their records |
//! | `in_image` | arrays that follow the geometry of their image |
//! | `packed` | a row of several samples |
//! | `mask` | a row without a sample |

mod attempt;
mod frames;
mod in_image;
mod mask;
mod packed;
mod row;

use crate::bad_samples::bad_sample;
use crate::batch::{RowOut, SharedBatch};
use crate::buffer::RowPixels;
use crate::engine::Engine;
use crate::error::{BadSample, Error, Result, SampleError};
use crate::handover::Work;
use crate::image::DecodeScratch;
use crate::meters::WorkerMeters;
use crate::options::OnBad;
use crate::plan::Walk;
use crate::read_ahead::{ReadAhead, cursor};
use crate::splits::RecordLocation;
use mask::mask;
use shardtool_order::{PackedSample, Sample};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
        let mut current = None;
        while let Some((batch, rows)) = self.next(current.take()) {
            self.fill(&batch, rows.clone());
            if batch.done(rows.len()) {
                self.complete(&batch);
            }
            current = Some(batch);
        }
    }

    /// Completes a batch whose rows are all done. If that fails, its consumer gets the error.
    fn complete(&self, batch: &SharedBatch) {
        let handover = &self.engine.handover;
        let completed = catch_unwind(AssertUnwindSafe(|| batch.complete())).unwrap_or_else(|panic| {
            Err(Error::BatchPanic { epoch: batch.epoch, position: batch.p, message: message(&*panic) })
        });
        if let Err(error) = completed {
            // First, so that the batch is not taken without its error.
            handover.fail(batch.replica, batch, error);
            batch.give_up();
        }
        handover.completed(batch);
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
                for sample in self.cursor(batch).substitutes(q) {
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

    /// Returns the cursor through the epoch of this batch's replica.
    fn cursor(&mut self, batch: &SharedBatch) -> &mut Walk {
        cursor(&self.engine.config, &mut self.cursors[batch.replica], batch.replica, batch.epoch)
    }

    fn panicked(&self, panic: &(dyn Any + Send)) -> Error {
        let id = self.current.unwrap_or(u64::MAX);
        let at = self.engine.config.splits.locate(id).ok();
        Error::Panic {
            id,
            shard: at.map(|p| p.path()).unwrap_or_default(),
            record: at.map_or(0, |p| p.row),
            message: message(panic),
        }
    }
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
    message.unwrap_or_else(|| "(the panic's value is not text)".to_owned())
}
