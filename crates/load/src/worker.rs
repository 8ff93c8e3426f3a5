//! A worker: claims rows in order, and makes each from its record.

use crate::ahead::{ReadAhead, cursor};
use crate::bad::{BadSample, Fault, OnBad};
use crate::batch::{RowOut, RowPixels, SharedBatch};
use crate::config::Content;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::handover::Work;
use crate::image::{self, Planned, Scratch};
use crate::input::Place;
use crate::pressure::{Admission, Refused};
use crate::stats::Reading;
use shardtool_order::{Sample, Walk};
use shardtool_read::Record;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct Worker {
    engine: Arc<Engine>,
    number: usize,
    /// For each replica, a cursor through the epoch it is in.
    cursors: Vec<Option<(u64, Walk)>>,
    read_ahead: ReadAhead,
    scratch: Scratch,
    /// What records are read into, where files are not mapped.
    buffer: Vec<u8>,
    /// Records read so far.
    reads: u64,
    /// The sample at hand, for when it panics.
    at: Option<u64>,
}

/// A row in the making.
struct Making<'a> {
    pixels: RowPixels<'a>,
    out: &'a mut RowOut,
}

/// Why a sample is not there.
enum Trouble {
    /// Its own fault.
    Bad(Box<BadSample>),
    /// Everybody's.
    Run(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Run(error)
    }
}

impl Worker {
    pub(crate) fn new(engine: Arc<Engine>, number: usize) -> Self {
        let cursors = engine.spec.ranks.iter().map(|_| None).collect();
        let read_ahead = ReadAhead::new(engine.spec.clone());
        Worker { engine, number, cursors, read_ahead, scratch: Scratch::default(), buffer: vec![], reads: 0, at: None }
    }

    /// Works until the loader ends.
    pub(crate) fn run(mut self) {
        let engine = self.engine.clone();
        let mut current = None;
        while let Some((batch, rows)) = self.next(current.take()) {
            self.fill(&batch, rows.clone());
            if batch.finish(rows.len()) {
                engine.handover.completed(&batch);
            }
            current = Some(batch);
        }
    }

    /// Claims rows, of the current batch if it has any left; `None` when the loader ends.
    fn next(&self, mut current: Option<Arc<SharedBatch>>) -> Option<(Arc<SharedBatch>, Range<usize>)> {
        let Engine { handover, spec, meters, .. } = &*self.engine;
        loop {
            if let Some(batch) = current
                && let Some(rows) = batch.claim(spec.claim())
            {
                return Some((batch, rows));
            }
            // The finished batch was dropped above, outside the lock, which returning its memory takes.
            let (batch, waited) = handover.next(self.number);
            if let Some(waited) = waited {
                meters.slot_wait.add(waited, 1);
            }
            current = Some(batch?);
        }
    }

    fn fill(&mut self, batch: &SharedBatch, rows: Range<usize>) {
        for row in rows {
            if batch.is_cancelled() {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| self.row(batch, row)));
            let error = match outcome {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(panic) => {
                    self.scratch = Scratch::default();
                    self.panic(&*panic)
                }
            };
            self.engine.handover.fail(batch.replica, batch, error);
        }
    }

    fn row(&mut self, batch: &SharedBatch, row: usize) -> Result<()> {
        let engine = self.engine.clone();
        let pixels = batch.pixels(row);
        batch.with_out(row, |out| {
            let making = &mut Making { pixels, out };
            let Some(q) = batch.planned(row).position() else {
                mask(&engine, making);
                return Ok(());
            };
            self.read_ahead.advance(batch, row);
            let sample = self.cursor(batch).sample(q);
            let bad = match self.sample(batch, sample, making) {
                Ok(()) => return Ok(()),
                Err(Trouble::Run(error)) => return Err(error),
                Err(Trouble::Bad(bad)) => *bad,
            };
            let bad = engine.add_bad(bad)?;
            match engine.spec.on_bad {
                OnBad::Error => Err(Error::BadSample(bad)),
                OnBad::Mask => {
                    mask(&engine, making);
                    Ok(())
                }
                OnBad::Substitute => {
                    let mut tried = 0;
                    for q in self.cursor(batch).substitutes(q) {
                        let sample = self.cursor(batch).sample(q);
                        tried += 1;
                        match self.sample(batch, sample, making) {
                            Ok(()) => return Ok(()),
                            Err(Trouble::Run(error)) => return Err(error),
                            Err(Trouble::Bad(bad)) => drop(engine.add_bad(*bad)?),
                        }
                    }
                    Err(Error::NoSubstitute { sample: bad, tried })
                }
            }
        })
    }

    /// Makes one sample: its pixels, columns and id.
    fn sample(
        &mut self,
        batch: &SharedBatch,
        Sample { place, id }: Sample,
        making: &mut Making<'_>,
    ) -> std::result::Result<(), Trouble> {
        self.at = Some(id);
        let engine = self.engine.clone();
        let spec = &engine.spec;
        let at = spec.input.locate(id).map_err(Error::from)?;
        let shard = at.open().map_err(|e| trouble(id, &at, e.into()))?;
        if spec.exact {
            shard.read_exactly();
        }
        // Where records are read into memory, room for this one is asked for before.
        let own = match spec.content {
            Content::Images(_) if shard.bytes().mapped().is_none() => {
                let frame = shard.frame(at.row).map_err(|e| trouble(id, &at, e.into()))?;
                frame.end - frame.start
            }
            _ => 0,
        };
        let mut room = own;
        let record = loop {
            let held = match engine.scratch.admit(batch, room) {
                Ok(held) => Some(held),
                Err(Refused::Cancelled) => return Err(Trouble::Run(Error::Stopped)),
                // What is wrong is told with the image's size, when that is known.
                Err(Refused::TooLarge(_)) => None,
            };
            self.reads += 1;
            let reading = Reading::begin(self.reads);
            let record = shard.record(at.row, std::mem::take(&mut self.buffer));
            reading.end(&engine.meters);
            let record = record.map_err(|e| trouble(id, &at, e.into()))?;
            match self.make(batch, place, &record, (own, held), &at, making) {
                Ok(()) => break record,
                Err(Made::Room(needed)) => room = needed,
                Err(Made::Fault(fault)) => return Err(trouble(id, &at, fault)),
                Err(Made::Run(error)) => return Err(Trouble::Run(error)),
                Err(Made::Void) => return Err(Trouble::Run(Error::Stopped)),
            }
        };
        engine.meters.bytes.fetch_add(record.data().len() as u64, Ordering::Relaxed);
        (making.out.id, making.out.valid) = (id as i64, true);
        if let Content::Records = spec.content {
            making.out.record = Some(record);
            return Ok(());
        }
        if own <= engine.scratch.kept() {
            self.buffer = record.into_buffer();
        }
        if spec.release {
            shard.release(at.row);
        }
        Ok(())
    }

    fn make(
        &mut self,
        batch: &SharedBatch,
        place: u64,
        record: &Record,
        (own, held): (u64, Option<Admission<'_>>),
        at: &Place<'_>,
        making: &mut Making<'_>,
    ) -> std::result::Result<(), Made> {
        let spec = &self.engine.spec;
        let mut example = None;
        for (column, cell) in spec.columns.iter().zip(&mut making.out.cells) {
            column.read(record, &mut example, cell)?;
        }
        let Content::Images(images) = &spec.content else { return Ok(()) };
        let rng = shardtool_order::Rng::augment(spec.plan.seed(), batch.epoch, place);
        let planned = Planned::of(record, images, &rng)?;
        let (needed, (width, height)) = (own + planned.scratch, planned.size());
        let _held = match held {
            Some(mut held) if own > 0 => match held.extend(needed) {
                true => held,
                // Who holds some must not wait for more: all of it is given back, and asked for at once.
                false => return Err(Made::Room(needed)),
            },
            _ => self.engine.scratch.admit(batch, needed).map_err(|refused| match refused {
                Refused::Cancelled => Made::Void,
                Refused::TooLarge(allowed) => {
                    Made::Run(Error::Scratch { shard: at.path(), record: at.row, width, height, needed, allowed })
                }
            })?,
        };
        let (normalizer, meters) = (spec.normalizer.as_ref(), &self.engine.meters);
        let placed = image::place(planned, images, normalizer, &mut making.pixels, &mut self.scratch, meters);
        if needed > self.engine.scratch.kept() {
            self.scratch = Scratch::default();
        }
        Ok(placed?)
    }

    /// The cursor through the epoch of this batch's replica.
    fn cursor(&mut self, batch: &SharedBatch) -> &mut Walk {
        cursor(&self.engine.spec, &mut self.cursors[batch.replica], batch)
    }

    fn panic(&self, panic: &(dyn std::any::Any + Send)) -> Error {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let id = self.at.unwrap_or(u64::MAX);
        let at = self.engine.spec.input.locate(id).ok();
        Error::Panic {
            id,
            shard: at.map(|p| p.path()).unwrap_or_default(),
            record: at.map_or(0, |p| p.row),
            message: message.unwrap_or_else(|| "a value that is no text".to_owned()),
        }
    }
}

/// Why a sample could not be made from its record.
enum Made {
    Fault(Fault),
    Run(Error),
    /// Its batch is not wanted any more.
    Void,
    /// So many bytes are needed in all, and are not free.
    Room(u64),
}

impl<E: Into<Fault>> From<E> for Made {
    fn from(fault: E) -> Self {
        Made::Fault(fault.into())
    }
}

/// Sorts a fault: damage is the sample's own, what the system refuses is not.
fn trouble(id: u64, at: &Place<'_>, fault: Fault) -> Trouble {
    match fault {
        Fault::Read(error) if !error.is_bad_sample() => Trouble::Run(error.into()),
        fault => {
            let key = at.open().ok().and_then(|s| s.key(at.row).ok().map(|k| k.into_owned())).filter(|k| !k.is_empty());
            Trouble::Bad(Box::new(BadSample { id, shard: at.path(), record: at.row, key, fault }))
        }
    }
}

/// What a label map holds where there is no sample: what loss functions are told to ignore.
const MASKED_LABEL: u8 = 255;

/// Makes a row that shows no sample.
fn mask(engine: &Engine, Making { pixels, out }: &mut Making<'_>) {
    pixels.image.iter_mut().for_each(|image| match &engine.spec.normalizer {
        None => image.fill(0),
        Some(normalizer) => normalizer.write_black(image),
    });
    pixels.mask.iter_mut().for_each(|mask| mask.fill(MASKED_LABEL));
    (out.id, out.valid, out.record) = (-1, false, None);
    engine.spec.columns.iter().zip(&mut out.cells).for_each(|(column, cell)| column.mask(cell));
}
