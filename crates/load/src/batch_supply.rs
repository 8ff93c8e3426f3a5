//! When a replica's next batch may begin, and with which memory: the policy behind the [`Handover`](crate::handover).
//!
//! A replica may have as many batches in memory as the budget allows, fewer under memory pressure. With a default
//! budget, batches that the consumer keeps in addition to the one it works on do not count: the supply allocates others
//! instead, until a limit of the system is reached.

use crate::autotune::Autotune;
use crate::batch::{BatchMemory, Home, SharedBatch};
use crate::budget::{MemoryPlan, Reservation, SystemLimits, Usage};
use crate::buffer::{BatchAlloc, HostAlloc, RowBuffer};
use crate::error::{Error, Result};
use crate::handover::{Begin, Position, Queue, Supply};
use crate::memory_pressure::{Lender, Pressure};
use crate::notices::{Notice, Notices};
use crate::plan::Walk;
use crate::read_ahead::cursor;
use crate::resolved_config::ResolvedConfig;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The queue of one replica's batches.
pub(crate) type BatchQueue = Queue<SharedBatch, Error>;

/// Decides when batches begin, and keeps memory that is not in use.
pub(crate) struct BatchSupply {
    config: Arc<ResolvedConfig>,
    plan: MemoryPlan,
    limits: SystemLimits,
    alloc: Arc<dyn BatchAlloc>,
    notices: Arc<Notices>,
    /// Where batches return their memory.
    home: Weak<dyn Home>,
    reservation: Arc<Reservation>,
    pub(crate) autotune: Autotune,
    pressure: Pressure,
    free: Vec<BatchMemory>,
    /// Batches of the budget whose memory exists, free or in use.
    planned: usize,
    /// Batches beyond the budget that are in memory.
    extra: usize,
    /// The largest number of bytes by which a batch has exceeded its plan so far.
    unforeseen: u64,
    /// Bytes by which the budget has grown for images larger than planned.
    grown: u64,
    /// For each replica, the limit that its next batch would exceed.
    refused: Vec<Option<Usage>>,
    /// For each replica, the epoch it is in.
    walks: Vec<Option<(u64, Walk)>>,
}

impl BatchSupply {
    pub(crate) fn new(
        config: Arc<ResolvedConfig>,
        plan: MemoryPlan,
        limits: SystemLimits,
        alloc: Arc<dyn BatchAlloc>,
        notices: Arc<Notices>,
        autotune: Autotune,
        home: Weak<dyn Home>,
    ) -> Self {
        BatchSupply {
            reservation: Arc::new(Reservation::new(plan.budget)),
            refused: vec![None; config.ranks.len()],
            walks: config.ranks.iter().map(|_| None).collect(),
            config,
            plan,
            limits,
            alloc,
            notices,
            home,
            autotune,
            pressure: Pressure::default(),
            free: vec![],
            planned: 0,
            extra: 0,
            unforeseen: 0,
            grown: 0,
        }
    }

    /// Returns how many batches of each replica the budget allows in memory.
    pub(crate) fn batches_per_replica(&self) -> usize {
        self.plan.batches_per_replica(self.unforeseen)
    }

    /// Returns the number of batches in memory beyond the budget.
    pub(crate) fn extra(&self) -> usize {
        self.extra
    }

    /// Returns the bytes by which the budget has grown for images larger than planned.
    pub(crate) fn grown(&self) -> u64 {
        self.grown
    }

    /// Takes memory for the next batch of a replica. If this replica has its share and another one does not, allocates
    /// beyond the budget, otherwise uses the budget first. `None` if another batch would exceed a limit.
    fn take_memory(&mut self, queues: &[BatchQueue], replica: usize, share: usize) -> Result<Option<BatchMemory>> {
        let has_share = queues[replica].live() >= share;
        let others_lack = queues.iter().enumerate().any(|(n, queue)| n != replica && queue.live() < share);
        if !(has_share && others_lack) {
            if let Some(memory) = self.free.pop() {
                return Ok(Some(memory));
            }
            if self.planned < self.batches() {
                let memory = self.allocate(&*self.alloc, false)?;
                self.planned += 1;
                return Ok(Some(memory));
            }
        }
        // Batches that are being built may not have touched their pages, so the system does not count those as used
        // yet.
        let building: usize = queues.iter().map(|queue| queue.queued() - queue.ready()).sum();
        self.refused[replica] = self.limits.exceeded_by((building as u64 + 1) * self.config.batch_bytes());
        if self.refused[replica].is_some() {
            return Ok(None);
        }
        let memory = self.allocate(&HostAlloc, true)?;
        self.extra += 1;
        let held = queues.iter().map(Queue::held).sum();
        self.notices.add(Notice::Growth { held, batch: self.config.batch_bytes() });
        Ok(Some(memory))
    }

    fn allocate(&self, alloc: &dyn BatchAlloc, extra: bool) -> Result<BatchMemory> {
        let config = &self.config;
        // Enough for the largest batch; each is divided when it begins.
        let rows = |alloc: &dyn BatchAlloc, row_bytes: &dyn Fn(usize) -> usize| {
            let bytes = config.buckets().map(|bucket| config.rows(bucket) * row_bytes(bucket)).max().unwrap_or(0);
            let buffer = alloc.alloc(bytes).map_err(|source| Error::Alloc { bytes, source })?;
            Result::Ok(RowBuffer::new(buffer, config.rows(0), row_bytes(0)))
        };
        let picture_bytes = |number, bucket| config.pictures(bucket).nth(number).map_or(0, |p| config.picture_bytes(p));
        let images = (0..config.pictures(0).count()).map(|n| rows(alloc, &|bucket| picture_bytes(n, bucket)));
        let images = images.collect::<Result<_>>()?;
        let masks = config.masks().iter().map(|mask| rows(&HostAlloc, &|bucket| config.mask_bytes(mask, bucket)));
        let masks = masks.collect::<Result<_>>()?;
        let arrays = config.arrays.outputs().map(|array| rows(&HostAlloc, &|_| array.row_bytes));
        let arrays = arrays.collect::<Result<_>>()?;
        Ok(BatchMemory::new(config, [images, masks, arrays], extra, self.reservation.clone()))
    }
}

impl Supply for BatchSupply {
    type Work = SharedBatch;
    type Buffer = BatchMemory;
    type Error = Error;
    /// Batches that the budget allows, and the limit that stops a default budget from growing.
    type Exhausted = (usize, Option<Usage>);

    fn is_active(&self, worker: usize) -> bool {
        worker < self.autotune.workers
    }

    fn ends_before(&self, (epoch, _): Position) -> bool {
        self.config.epochs.is_some_and(|epochs| epoch >= epochs)
    }

    fn begin(&mut self, queues: &[BatchQueue], replica: usize) -> Begin<SharedBatch, Error> {
        let share = self.pressure.batches_per_replica(self.batches_per_replica(), queues.len());
        let queue = &queues[replica];
        // With a default budget, batches that the consumer keeps in addition to the one it works on do not count.
        let kept = if self.plan.given { 0 } else { queue.kept().saturating_sub(1) };
        if queue.live() >= share + kept || queue.queued() >= self.autotune.prefetch {
            return Begin::Later;
        }
        match self.take_memory(queues, replica, share) {
            Err(error) => Begin::Failed(error),
            Ok(None) => Begin::Later,
            Ok(Some(memory)) => {
                self.refused[replica] = None;
                let (position, first) = (queue.next(), queue.is_first());
                let walk = cursor(&self.config, &mut self.walks[replica], replica, position.0);
                let batch = SharedBatch::new(&self.config, self.home.clone(), replica, walk, position, first, memory);
                let after = batch.after();
                Begin::Work(Arc::new(batch), after)
            }
        }
    }

    fn exhausted(&self, queue: &BatchQueue, replica: usize) -> Option<(usize, Option<Usage>)> {
        let (allowed, refused) = (self.batches_per_replica(), &self.refused[replica]);
        let exhausted = refused.is_some() || (self.plan.given && queue.live() >= allowed);
        exhausted.then(|| (allowed, refused.clone()))
    }

    fn completed(&mut self, batch: &SharedBatch) {
        self.unforeseen = self.unforeseen.max(batch.unforeseen());
    }

    fn delivered(&mut self, waited: Duration, ready: usize) -> bool {
        let (batches, active) = (self.batches_per_replica(), self.autotune.workers);
        self.autotune.delivered(waited, ready, batches);
        self.autotune.workers > active
    }

    fn give_back(&mut self, memory: BatchMemory, closed: bool) -> Option<BatchMemory> {
        if memory.extra {
            self.extra -= 1;
            Some(memory)
        } else if closed || self.planned > self.batches() {
            self.planned -= 1;
            Some(memory)
        } else {
            self.free.push(memory);
            None
        }
    }

    fn drain(&mut self) -> Vec<BatchMemory> {
        self.planned -= self.free.len();
        std::mem::take(&mut self.free)
    }
}

impl Lender for BatchSupply {
    fn replica(batch: &SharedBatch) -> usize {
        batch.replica
    }

    fn batches(&self) -> usize {
        self.batches_per_replica() * self.config.ranks.len()
    }

    fn live(&self, queues: &[BatchQueue]) -> usize {
        queues.iter().map(Queue::live).sum::<usize>() - self.extra
    }

    fn pressure(&mut self) -> &mut Pressure {
        &mut self.pressure
    }

    fn grow_scratch(&mut self, bytes: u64) -> bool {
        let planned = bytes <= self.plan.max_growth().saturating_sub(self.grown);
        let grows = planned || (!self.plan.given && self.limits.exceeded_by(bytes).is_none());
        if grows {
            self.grown += bytes;
            self.reservation.grow(bytes);
        }
        grows
    }
}
