//! The state that the workers and the consumers of a loader share.
//!
//! Ownership follows the arrows; batches return their memory through a weak reference ([`Home`]):
//!
//! ```text
//! Loader ─▶ worker threads ─▶ Engine ─▶ Handover ─▶ queues ─▶ SharedBatch ─▶ ResolvedConfig
//!                               │          └──────▶ BatchSupply: free memory, tuning, pressure
//!                               └─▶ ScratchAdmission, meters, bad samples, notices
//! ```

use crate::autotune::Autotune;
use crate::bad_samples::BadSamples;
use crate::batch::{Batch, BatchMemory, Home};
use crate::batch_supply::BatchSupply;
use crate::budget::{MemoryPlan, SystemLimits};
use crate::buffer::BatchAlloc;
use crate::decoded_cache::DecodedImages;
use crate::error::{BadSample, Error, Result};
use crate::fetch::Fetcher;
use crate::handover::{Delivery, Empty, Handover, Position, Queue};
use crate::memory_pressure::ScratchAdmission;
use crate::meters::Meters;
use crate::notices::{Notice, Notices};
use crate::resolved_config::ResolvedConfig;
use crate::stats::Stats;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

pub(crate) struct Engine {
    pub(crate) config: Arc<ResolvedConfig>,
    pub(crate) handover: Arc<Handover<BatchSupply>>,
    pub(crate) scratch: ScratchAdmission<BatchSupply>,
    /// For datasets in object stores.
    pub(crate) fetcher: Option<Arc<Fetcher>>,
    /// Decoded images, if they are cached.
    pub(crate) decoded: Option<DecodedImages>,
    pub(crate) meters: Meters,
    pub(crate) bad_samples: BadSamples,
    pub(crate) notices: Arc<Notices>,
    memory: MemoryPlan,
    start: Instant,
    /// Requests of the process before this loader.
    store_before: shardtool_store::Stats,
    /// Number of bad samples at the last notice.
    noticed: AtomicU64,
}

impl Engine {
    pub(crate) fn new(
        config: ResolvedConfig,
        memory: MemoryPlan,
        limits: SystemLimits,
        autotune: Autotune,
        alloc: Arc<dyn BatchAlloc>,
    ) -> Result<Arc<Self>> {
        let notices = Arc::new(Notices::default());
        let cache = config.images().and_then(|images| images.pixels.decoded_cache.as_ref());
        let decoded = cache.map(|cache| DecodedImages::new(cache, notices.clone())).transpose()?;
        Ok(Arc::new_cyclic(|engine: &Weak<Engine>| {
            let config = Arc::new(config);
            let (plan, home) = (memory.clone(), engine.clone());
            let supply = BatchSupply::new(config.clone(), plan, limits, alloc, notices.clone(), autotune, home);
            let handover = Arc::new(Handover::new(config.ranks.len(), supply));
            let (batch_bytes, patience, kept) = (config.batch_bytes(), config.starve_after, memory.kept_scratch());
            let pool = memory.scratch_bytes() - memory.workers * kept;
            Engine {
                scratch: ScratchAdmission::new(handover.clone(), pool, kept, batch_bytes, patience),
                fetcher: Fetcher::new(&config, &notices),
                meters: Meters::new(memory.workers as usize),
                bad_samples: BadSamples::new(config.max_bad),
                notices,
                start: Instant::now(),
                store_before: shardtool_store::stats(),
                noticed: AtomicU64::new(0),
                decoded,
                memory,
                handover,
                config,
            }
        }))
    }

    /// Waits for a replica's next batch and returns it; `None` at the end of an epoch.
    pub(crate) fn next(&self, replica: usize, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Batch>> {
        match self.handover.take(replica, self.config.starve_after, interrupted) {
            Ok(Delivery::Work(batch, waited)) => {
                self.meters.consumer_wait.add(waited, 1);
                self.meters.samples.fetch_add(batch.samples(), Ordering::Relaxed);
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
            Err(Empty::Starved { held, waited, why: (batches, usage) }) => {
                Err(Error::Starved { held, batches, waited, usage: usage.map(Box::new) })
            }
        }
    }

    /// Adds a notice if more bad samples were found since the last one.
    fn report_bad(&self, epoch: u64) {
        let count = self.bad_samples.count();
        // The first bad sample of a run has a separate notice.
        if count > self.noticed.fetch_max(count, Ordering::Relaxed).max(1) {
            self.notices.add(Notice::BadSamples { epoch, count });
        }
    }

    /// Adds a bad sample; the first one of the run is reported.
    pub(crate) fn add_bad(&self, sample: BadSample) -> Result<Arc<BadSample>> {
        let (sample, first) = self.bad_samples.add(sample)?;
        if first {
            self.notices.add(Notice::BadSample(sample.clone()));
        }
        Ok(sample)
    }

    /// Moves a replica to another position; batches begun for the old one are cancelled.
    pub(crate) fn seek(&self, replica: usize, (epoch, p): Position) {
        if let Some(fetcher) = &self.fetcher {
            fetcher.forget(replica);
        }
        self.handover.seek(replica, self.config.plan.schedule(epoch).normalize(epoch, p));
    }

    /// Returns the position of a replica's consumer.
    pub(crate) fn delivered(&self, replica: usize) -> Position {
        self.handover.read(|queues, _| queues[replica].delivered())
    }

    pub(crate) fn stats(&self) -> Stats {
        let meters = &self.meters;
        let members = self
            .config
            .members
            .as_ref()
            .map(|members| members.stats(self.config.plan.seed(), self.delivered(0)))
            .unwrap_or_default();
        self.handover.read(|queues, supply| Stats {
            elapsed: self.start.elapsed(),
            data_wait: meters.sum(|worker| &worker.data_wait),
            read: meters.sum(|worker| &worker.read),
            decode: meters.sum(|worker| &worker.decode),
            resize: meters.sum(|worker| &worker.resize),
            function: meters.sum(|worker| &worker.function),
            buffer_wait: meters.buffer_wait.get(),
            consumer_wait: meters.consumer_wait.get(),
            consumer_busy: meters.consumer_busy.get(),
            bytes: meters.count(|worker| &worker.bytes),
            samples: meters.samples.load(Ordering::Relaxed),
            bad: self.bad_samples.count(),
            filled: meters.count(|worker| &worker.filled),
            ready: queues.iter().map(Queue::ready).sum(),
            held: queues.iter().map(Queue::held).sum(),
            workers: supply.autotune.workers,
            max_workers: self.memory.workers as usize,
            prefetch: supply.autotune.prefetch,
            batches_per_replica: supply.batches_per_replica(),
            extra_batches: supply.extra(),
            tuning: supply.autotune.reason,
            memory: MemoryPlan { budget: self.memory.budget + supply.grown(), ..self.memory.clone() },
            store: self.fetcher.as_ref().map(|_| shardtool_store::stats().since(&self.store_before)),
            decoded_cache: self.decoded.as_ref().map(DecodedImages::stats),
            unit: if self.config.images().is_some() { "images" } else { "records" },
            members,
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
