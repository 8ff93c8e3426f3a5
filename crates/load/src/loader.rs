//! The loader: what a trainer calls.

use crate::autotune::{Autotune, Fixed};
use crate::batch::Batch;
use crate::budget::{Demand, MemoryPlan, SystemLimits};
use crate::engine::Engine;
use crate::error::{BadSample, Error, Result};
use crate::fetch::{self, EpochRequests};
use crate::notices::Notice;
use crate::options::{Config, DEFAULT_BATCHES, DecodedCache};
use crate::replica_share::{self, ReplicaShare};
use crate::resolved_config::ResolvedConfig;
use crate::stages::{NamedMembers, PlannedStage};
use crate::stats::Stats;
use crate::worker::Worker;
use shardtool_decode::Decoder;
use shardtool_order::{Order, ResumeState, Schedule};
use shardtool_read::Split;
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Delivers batches in order while workers build the next ones.
///
/// Dropping it ends and joins its workers; batches that the consumer still holds stay valid.
///
/// ```no_run
/// use shardtool_decode::Pipeline;
/// use shardtool_load::{Config, Image, Loader};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let dataset = shardtool_read::Dataset::open("dataset")?;
/// let image = Image::new(Pipeline::train(224)?);
/// let mut loader = Loader::new(&Config::new(dataset.split("train")?.clone(), [image], 256))?;
/// for epoch in 0..90 {
///     for batch in loader.epoch() {
///         let batch = batch?;
///         let (pixels, shape) = (batch.images(), batch.image_shape()); // u8, [N, H, W, 3]
///         let labels = batch.labels(); // i64, [N]
///         // Train on them, and save this with the checkpoint:
///         let state = batch.state_after().to_string();
///     }
///     println!("epoch {epoch}: {}", loader.stats().bottleneck());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Loader {
    /// First, so that workers end before anything else is dropped.
    _workers: Arc<WorkerPool>,
    engine: Arc<Engine>,
    /// Index into the replicas that the workers serve.
    replica: usize,
    /// When the last call of `next_batch` returned.
    returned: Option<Instant>,
}

/// The worker threads, and the one that requests their records from object stores; joined when the last loader of a group
/// is dropped.
struct WorkerPool {
    engine: Arc<Engine>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    fn start(engine: &Arc<Engine>, count: usize) -> Result<Self> {
        let mut workers = WorkerPool { engine: engine.clone(), threads: Vec::with_capacity(count + 1) };
        if let Some(fetcher) = engine.fetcher.clone() {
            let thread = std::thread::Builder::new().name("shardtool-fetch".to_owned());
            workers.threads.push(thread.spawn(|| fetcher.run()).map_err(Error::Thread)?);
        }
        for number in 0..count {
            let engine = engine.clone();
            let thread = std::thread::Builder::new().name(format!("shardtool-load-{number}"));
            workers.threads.push(thread.spawn(move || Worker::new(&engine, number).run()).map_err(Error::Thread)?);
        }
        Ok(workers)
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.engine.handover.close();
        if let Some(fetcher) = &self.engine.fetcher {
            fetcher.close();
        }
        for thread in self.threads.drain(..) {
            // A worker catches panics itself.
            let _ = thread.join();
        }
    }
}

impl Loader {
    /// Creates the loader of [`Config::replica`] and starts its workers.
    ///
    /// # Errors
    /// If the configuration contradicts itself or the dataset, or does not fit its memory ([`Error::Budget`]).
    pub fn new(config: &Config) -> Result<Self> {
        let mut group = Self::group(config, &[config.replica.rank()])?;
        Ok(group.remove(0))
    }

    /// Creates one loader for each of `ranks`, in the world of [`Config::replica`]. They share the workers and the
    /// memory budget.
    ///
    /// # Errors
    /// As [`Loader::new`]; [`Error::Ranks`].
    pub fn group(config: &Config, ranks: &[u32]) -> Result<Vec<Self>> {
        let limits = SystemLimits::find(&config.system_root);
        let (resolved, memory) = plan(config, ranks, &limits)?;
        resolved.splits.as_slice().iter().try_for_each(Split::check_counts)?;
        let count = memory.workers as usize;
        let fixed = Fixed { workers: config.workers.is_some(), prefetch: config.prefetch.batches.is_some() };
        let autotune = Autotune::new(count, memory.prefetch as usize, fixed);
        let engine = Engine::new(resolved, memory, limits, autotune, config.alloc.clone())?;
        let workers = Arc::new(WorkerPool::start(&engine, count)?);
        let loader = |replica| Loader { _workers: workers.clone(), engine: engine.clone(), replica, returned: None };
        Ok((0..ranks.len()).map(loader).collect())
    }

    /// Checks a configuration against its dataset, without reserving memory or starting a thread.
    ///
    /// # Errors
    /// As [`Loader::new`], except for memory.
    pub fn check(config: &Config, ranks: &[u32]) -> Result<CheckedConfig> {
        ResolvedConfig::new(config, ranks).map(CheckedConfig)
    }

    /// Returns the schedule and memory plan of a configuration, without starting anything.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn plan(config: &Config) -> Result<LoadPlan> {
        Self::plan_group(config, &[config.replica.rank()])
    }

    /// Returns the schedule and memory plan of several replicas of one process, as [`Loader::group`] creates them.
    ///
    /// # Errors
    /// As [`Loader::group`].
    pub fn plan_group(config: &Config, ranks: &[u32]) -> Result<LoadPlan> {
        let limits = SystemLimits::find(&config.system_root);
        let (resolved, memory) = plan(config, ranks, &limits)?;
        let schedule = resolved.plan.schedule(0).into_owned();
        let stages = resolved.members.as_ref().map(NamedMembers::stages).unwrap_or_default();
        Ok(LoadPlan { schedule, memory, classes: resolved.class_names().to_vec(), stages })
    }

    /// Returns what each replica of a configuration will read in an epoch, in order of rank: counted, or estimated for an
    /// epoch of more than [`MAX_COUNTED_ROWS`](crate::MAX_COUNTED_ROWS) rows. Opens no shard.
    ///
    /// # Errors
    /// As [`Loader::new`], except for memory.
    pub fn shares(config: &Config) -> Result<Vec<ReplicaShare>> {
        replica_share::shares(config)
    }

    /// Counts what the replica of a configuration requests in its first epoch, if its datasets are in an object store: with
    /// the code that plans requests, which reads the indexes of up to 256 shards. Larger epochs are estimated.
    ///
    /// # Errors
    /// As [`Loader::new`], except for memory.
    pub fn epoch_requests(config: &Config) -> Result<EpochRequests> {
        fetch::epoch_requests(&in_store(config, config.order, requested_ahead(config)?)?)
    }

    /// Finds an interleaved order that needs at most one request per 4 MiB: runs of 4 MiB, of which two windows fit into the
    /// bytes that are requested ahead. Returns its requests; `None` if there is no such order.
    ///
    /// # Errors
    /// As [`Loader::epoch_requests`].
    pub fn fitting_order(config: &Config) -> Result<Option<EpochRequests>> {
        let ahead = requested_ahead(config)?;
        let resolve = |order| in_store(config, order, ahead);
        fetch::fitting_order(&resolve(config.order)?, resolve)
    }

    /// Waits for the next batch and returns it; `None` at the end of an epoch, after which the next call begins the
    /// next epoch. One loader has one consumer: threads that share it would each get some of its batches, and each end of an epoch
    /// once; [`Loader::group`] makes a loader for each. As an iterator: [`Loader::epoch`].
    ///
    /// # Errors
    /// The error that ended the run, after every batch before it was delivered. [`Error::Starved`] if the consumer
    /// holds every batch that a given budget or the memory limit allows; it can drop some batches and call again.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        self.next_batch_unless(&mut || false)
    }

    /// As [`next_batch`](Self::next_batch). While it waits, calls `interrupted` every 100 ms, and stops waiting once
    /// that returns true.
    ///
    /// # Errors
    /// As [`Loader::next_batch`]; [`Error::Interrupted`].
    pub fn next_batch_unless(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Batch>> {
        if let Some(returned) = self.returned.take() {
            self.engine.meters.consumer_busy.add(returned.elapsed(), 1);
        }
        let batch = self.engine.next(self.replica, interrupted)?;
        self.returned = Some(Instant::now());
        Ok(batch)
    }

    /// Moves to the beginning of an epoch. If the loader is already there, keeps the batches built ahead.
    pub fn start_epoch(&mut self, epoch: u64) {
        self.engine.handover.start_epoch(self.replica, epoch);
    }

    /// Takes the end of an epoch whose batches were all delivered. Returns the steps left in the epoch that follows.
    pub(crate) fn left_of_epoch(&mut self) -> u64 {
        let engine = self.engine.clone();
        if engine.handover.read(|queues, _| queues[self.replica].is_at_end()) {
            // Returns at once.
            let _ = self.next_batch();
        }
        if engine.handover.read(|queues, _| queues[self.replica].is_stopped()) {
            // The error that ended the run, or that it has ended.
            return 1;
        }
        let (epoch, _) = engine.delivered(self.replica);
        if engine.config.epochs.is_some_and(|epochs| epoch >= epochs) { 0 } else { self.steps_left() }
    }

    /// Returns the state to resume from. It counts delivered batches, not batches built ahead.
    pub fn state(&self) -> ResumeState {
        self.engine.config.state(self.engine.delivered(self.replica))
    }

    /// Resumes from a state. Number of replicas, batch size and number of workers may differ from those of the saved
    /// run. A batch transform and the exchange of mirrored points may differ at the start of an epoch only, which is reported
    /// ([`Notice::OtherTransform`]).
    ///
    /// # Errors
    /// If the state is of another dataset, source, order or seed, or inside an epoch with another batch transform or exchange of
    /// mirrored points ([`Error::StateTransform`](crate::Error::StateTransform)).
    pub fn load_state(&mut self, state: &ResumeState) -> Result<()> {
        let config = &self.engine.config;
        let at = config.resume(state)?;
        config.transforms.notices(state).into_iter().for_each(|notice| self.engine.notices.add(notice));
        self.engine.seek(self.replica, at);
        Ok(())
    }

    /// Returns the steps of an epoch, which are the same for every replica; with packing, of the current epoch.
    #[expect(clippy::len_without_is_empty, reason = "an epoch without a step is refused")]
    pub fn len(&self) -> u64 {
        self.engine.config.plan.schedule(self.engine.delivered(self.replica).0).steps(0)
    }

    /// Returns the steps left in the current epoch.
    pub fn steps_left(&self) -> u64 {
        let (epoch, p) = self.engine.delivered(self.replica);
        self.engine.config.plan.schedule(epoch).steps(p)
    }

    /// Returns the statistics so far, of all replicas that this loader's workers serve.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Returns the bad samples of this run so far, each once, of all its replicas in this process.
    pub fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        self.engine.bad_samples.list()
    }

    /// Returns and removes the notices since the last call. They are also logged (crate `log`).
    pub fn notices(&self) -> Vec<Notice> {
        self.engine.notices.take()
    }

    /// Returns a handle on statistics, bad samples and notices, for a loader that moves to another thread.
    pub fn monitor(&self) -> Monitor {
        Monitor(self.engine.clone())
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, position) = self.engine.delivered(self.replica);
        f.debug_struct("Loader").field("epoch", &epoch).field("position", &position).finish_non_exhaustive()
    }
}

/// A configuration that was checked against its dataset.
pub struct CheckedConfig(ResolvedConfig);

impl fmt::Debug for CheckedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedConfig").finish_non_exhaustive()
    }
}

impl CheckedConfig {
    /// Returns the steps from position `p` of an epoch on, which are the same for every replica. They depend on the epoch only
    /// with packing.
    pub fn steps_left(&self, epoch: u64, p: u64) -> u64 {
        self.0.plan.schedule(epoch).steps(p)
    }

    /// Returns the names of the classes that batches deliver, by class id; empty if they have numbers only, or if no column holds
    /// class ids.
    pub fn class_names(&self) -> &[String] {
        self.0.class_names()
    }

    /// Returns the state of a run that has delivered everything before position `p` of an epoch.
    pub fn state(&self, epoch: u64, p: u64) -> ResumeState {
        self.0.state((epoch, p))
    }

    /// Returns the epoch and position at which a state resumes.
    ///
    /// # Errors
    /// As [`Loader::load_state`].
    pub fn resume(&self, state: &ResumeState) -> Result<(u64, u64)> {
        self.0.resume(state)
    }
}

/// Observes a loader from another thread. Does not keep its workers running; its figures no longer change after the
/// loader was dropped.
#[derive(Clone)]
pub struct Monitor(Arc<Engine>);

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

impl Monitor {
    /// As [`Loader::stats`].
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// As [`Loader::bad_samples`].
    pub fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        self.0.bad_samples.list()
    }

    /// As [`Loader::notices`].
    pub fn notices(&self) -> Vec<Notice> {
        self.0.notices.take()
    }
}

/// The schedule and the memory plan of a configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadPlan {
    /// Steps, samples of each replica, samples that are dropped.
    pub schedule: Schedule,
    /// The memory plan.
    pub memory: MemoryPlan,
    /// Names of the classes that batches deliver, as [`CheckedConfig::class_names`].
    pub classes: Vec<String>,
    /// The stages of a scheduled source; empty with another source.
    pub stages: Vec<PlannedStage>,
}

fn plan(config: &Config, ranks: &[u32], limits: &SystemLimits) -> Result<(ResolvedConfig, MemoryPlan)> {
    let mut resolved = ResolvedConfig::new(config, ranks)?;
    let demand = demand(config, &resolved);
    let memory = MemoryPlan::new(demand, config.memory, config.local_world, limits).map_err(Error::Budget)?;
    // Pages read ahead must still be in the page cache when the workers read them.
    resolved.limit_read_ahead(memory.unreserved() / 4);
    resolved.limit_claims(memory.workers as usize);
    resolved.fetch = memory.fetch;
    Ok((resolved, memory))
}

/// Bytes that a worker notes of a sample (shapes, chunks, features) and of its shards, without images. Of three workers that read
/// arrays they were up to 9 kB more than the rest of the budget had left. The tables of a decoder are seldom full, and leave more.
const NOTES: usize = 16 << 10;

fn demand(config: &Config, resolved: &ResolvedConfig) -> Demand {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = config.workers.unwrap_or((cpus / config.local_world as usize).max(1));
    Demand {
        batch: resolved.batch_bytes(),
        replicas: resolved.ranks.len() as u64,
        workers: workers as u64,
        prefetch: config.prefetch.batches.unwrap_or(DEFAULT_BATCHES) as u64,
        // Each worker has a place in the epoch; so have each replica and, with read-ahead, each worker again.
        source: resolved.plan.bytes(2 * workers as u64 + resolved.ranks.len() as u64),
        scratch: resolved.scratch,
        tables: (workers * if resolved.images().is_some() { Decoder::TABLE_BYTES } else { NOTES }) as u64,
        decoded: resolved
            .images()
            .and_then(|images| images.pixels.decoded_cache.as_ref())
            .map_or(0, DecodedCache::memory),
        fetch: resolved.fetch,
        indexes: resolved.splits.index_bytes(),
    }
}

/// Returns the bytes that a loader would request ahead if its datasets were in an object store.
fn requested_ahead(config: &Config) -> Result<u64> {
    let resolved = ResolvedConfig::new(config, &[config.replica.rank()])?;
    let (fetch, indexes) = (config.prefetch.read_ahead, resolved.splits.index_bytes_in_store());
    let demand = Demand { fetch, indexes, ..demand(config, &resolved) };
    let limits = SystemLimits::find(&config.system_root);
    let memory = MemoryPlan::new(demand, config.memory, config.local_world, &limits);
    Ok(memory.unwrap_or_else(|too_large| *too_large).fetch)
}

/// Resolves a configuration in another order, as if its datasets were in an object store, with `ahead` bytes requested ahead.
fn in_store(config: &Config, order: Order, ahead: u64) -> Result<Arc<ResolvedConfig>> {
    let mut resolved = ResolvedConfig::new(&Config { order, ..config.clone() }, &[config.replica.rank()])?;
    if resolved.plan.packing().is_some() {
        return Err(Error::Packing {
            reason: "the records of packed rows are not requested ahead, so that requests cannot be planned",
        });
    }
    resolved.fetch = ahead;
    Ok(Arc::new(resolved))
}
