//! What the workers and the consumers of a loader share.
//!
//! Ownership goes one way. Batches refer back weakly, to return their memory ([`Home`]):
//!
//! ```text
//! Loader ─▶ worker threads ─▶ Engine ─▶ Handover ─▶ queues ─▶ SharedBatch ─▶ Spec
//!                               │          └──────▶ BatchSupply: free memory, tuning, pressure
//!                               └─▶ ScratchAdmission, meters, bad samples, notices
//! ```

use crate::bad::{BadList, BadSample};
use crate::batch::{Batch, BatchMemory, Home};
use crate::budget::{Arithmetic, Limits};
use crate::error::{Error, Result};
use crate::handover::{Delivery, Empty, Handover, Position, Queue};
use crate::memory::BatchAlloc;
use crate::notice::{Notice, Notices};
use crate::pressure::ScratchAdmission;
use crate::spec::Spec;
use crate::stats::{Meters, Stats};
use crate::supply::BatchSupply;
use crate::tune::Tuning;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

pub(crate) struct Engine {
    pub(crate) spec: Arc<Spec>,
    pub(crate) handover: Arc<Handover<BatchSupply>>,
    pub(crate) scratch: ScratchAdmission,
    pub(crate) meters: Meters,
    pub(crate) bad: BadList,
    pub(crate) notices: Arc<Notices>,
    arithmetic: Arithmetic,
    start: Instant,
    /// Bad samples at the last notice.
    noticed: AtomicU64,
}

impl Engine {
    pub(crate) fn new(
        spec: Spec,
        arithmetic: Arithmetic,
        limits: Limits,
        tuning: Tuning,
        alloc: Arc<dyn BatchAlloc>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|engine: &Weak<Engine>| {
            let (spec, notices) = (Arc::new(spec), Arc::new(Notices::default()));
            let (plan, home) = (arithmetic.clone(), engine.clone());
            let supply = BatchSupply::new(spec.clone(), plan, limits, alloc, notices.clone(), tuning, home);
            let handover = Arc::new(Handover::new(spec.ranks.len(), supply));
            let (batch_bytes, patience) = (spec.batch_bytes(), spec.starve_after);
            Engine {
                scratch: ScratchAdmission::new(handover.clone(), &arithmetic, batch_bytes, patience),
                meters: Meters::default(),
                bad: BadList::new(spec.max_bad),
                notices,
                start: Instant::now(),
                noticed: AtomicU64::new(0),
                arithmetic,
                handover,
                spec,
            }
        })
    }

    /// Takes a replica's next batch, waiting for it; `None` at the end of an epoch.
    pub(crate) fn next(&self, replica: usize, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Batch>> {
        match self.handover.take(replica, self.spec.starve_after, interrupted) {
            Ok(Delivery::Work(batch, waited)) => {
                self.meters.caller_wait.add(waited, 1);
                self.meters.samples.fetch_add(batch.valid_rows(), Ordering::Relaxed);
                Ok(Some(Batch::new(batch)))
            }
            Ok(Delivery::EpochEnd(epoch)) => {
                self.report_bad(epoch);
                Ok(None)
            }
            Ok(Delivery::End) => Ok(None),
            Err(Empty::Failed(error)) => Err(error),
            Err(Empty::Stopped) => Err(Error::Stopped),
            Err(Empty::Interrupted) => Err(Error::Interrupted),
            Err(Empty::Starved { held, waited, why: (slots, usage) }) => {
                Err(Error::Starved { held, slots, waited, usage: usage.map(Box::new) })
            }
        }
    }

    /// Reports bad samples that were found since the last notice.
    fn report_bad(&self, epoch: u64) {
        let count = self.bad.count();
        // The first one was reported by itself.
        if count > self.noticed.fetch_max(count, Ordering::Relaxed).max(1) {
            self.notices.add(Notice::BadSamples { epoch, count });
        }
    }

    /// Adds a bad sample; the first one of the run is reported.
    pub(crate) fn add_bad(&self, sample: BadSample) -> Result<Arc<BadSample>> {
        let (sample, first) = self.bad.add(sample)?;
        if first {
            self.notices.add(Notice::BadSample(sample.clone()));
        }
        Ok(sample)
    }

    /// Moves a replica to another position; batches begun for the old one are cancelled.
    pub(crate) fn seek(&self, replica: usize, (epoch, p): Position) {
        self.handover.seek(replica, self.spec.plan.schedule().settle(epoch, p));
    }

    /// Where a replica's consumer stands.
    pub(crate) fn delivered(&self, replica: usize) -> Position {
        self.handover.read(|queues, _| queues[replica].delivered())
    }

    pub(crate) fn stats(&self) -> Stats {
        let meters = &self.meters;
        self.handover.read(|queues, supply| Stats {
            elapsed: self.start.elapsed(),
            data_wait: meters.data_wait.get(),
            read: meters.read.get(),
            decode: meters.decode.get(),
            resize: meters.resize.get(),
            slot_wait: meters.slot_wait.get(),
            caller_wait: meters.caller_wait.get(),
            caller_busy: meters.caller_busy.get(),
            bytes: meters.bytes.load(Ordering::Relaxed),
            samples: meters.samples.load(Ordering::Relaxed),
            bad: self.bad.count(),
            ready: queues.iter().map(Queue::ready).sum(),
            held: queues.iter().map(Queue::held).sum(),
            workers: (supply.tuning.workers, self.arithmetic.workers as usize),
            depth: supply.tuning.depth,
            slots: supply.batches_per_replica(),
            extra: supply.extra(),
            why: supply.tuning.why,
            memory: Arithmetic { budget: self.arithmetic.budget + supply.grown(), ..self.arithmetic.clone() },
            unit: if self.spec.image_size().is_some() { "images" } else { "records" },
        })
    }
}

impl Home for Engine {
    fn release(&self, replica: usize) {
        self.handover.release(replica);
    }

    fn give_back(&self, replica: usize, memory: BatchMemory) {
        self.handover.give_back(replica, memory);
    }
}
