//! The loader: what a trainer calls.

use crate::bad::BadSample;
use crate::batch::Batch;
use crate::budget::{Arithmetic, DEPTH, Limits};
use crate::config::Config;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::share::{self, Share};
use crate::spec::Spec;
use crate::stats::Stats;
use crate::tune::{Fixed, Tuning};
use crate::worker::Worker;
use shardtool_order::{ResumeState, Schedule};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Delivers batches in order while workers build the next ones. Dropping it ends and joins its workers; batches that the
/// caller still holds stay valid.
pub struct Loader {
    /// First, so that workers end before anything else is dropped.
    _workers: Arc<WorkerPool>,
    engine: Arc<Engine>,
    /// Which of the replicas that the workers serve.
    replica: usize,
    /// When the caller was last given something.
    returned: Option<Instant>,
}

/// The workers; joined when the last loader of a group is dropped.
struct WorkerPool {
    engine: Arc<Engine>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.engine.handover.close();
        for thread in self.threads.drain(..) {
            // A worker catches panics itself.
            let _ = thread.join();
        }
    }
}

impl Loader {
    /// A loader of [`Config::replica`]. Its workers start at once.
    ///
    /// # Errors
    /// A configuration that contradicts itself or the dataset, or does not fit its memory ([`Error::Budget`]).
    pub fn new(config: &Config) -> Result<Self> {
        let mut group = Self::group(config, &[config.replica.rank()])?;
        Ok(group.remove(0))
    }

    /// Loaders for several replicas of one process, fed by one set of workers: one for each of `ranks`, of
    /// [`Config::replica`]'s world. The memory budget is for all of them together.
    ///
    /// # Errors
    /// As [`Loader::new`]; [`Error::Ranks`].
    pub fn group(config: &Config, ranks: &[u32]) -> Result<Vec<Self>> {
        let limits = Limits::find(&config.system_root);
        let (spec, arithmetic) = settle(config, ranks, &limits)?;
        let count = arithmetic.workers as usize;
        let fixed = Fixed { workers: config.workers.is_some(), depth: config.depth.is_some() };
        let tuning = Tuning::new(count, config.depth.unwrap_or(DEPTH), fixed);
        let engine = Engine::new(spec, arithmetic, limits, tuning, config.alloc.clone());
        let mut workers = WorkerPool { engine: engine.clone(), threads: Vec::with_capacity(count) };
        for number in 0..count {
            let worker = Worker::new(engine.clone(), number);
            let thread = std::thread::Builder::new().name(format!("shardtool-load-{number}"));
            workers.threads.push(thread.spawn(|| worker.run()).map_err(Error::Thread)?);
        }
        let workers = Arc::new(workers);
        let loader = |replica| Loader { _workers: workers.clone(), engine: engine.clone(), replica, returned: None };
        Ok((0..ranks.len()).map(loader).collect())
    }

    /// Checks a configuration against its dataset: neither memory is reserved nor a thread started.
    ///
    /// # Errors
    /// As [`Loader::new`], except for memory.
    pub fn check(config: &Config, ranks: &[u32]) -> Result<Checked> {
        Spec::new(config, ranks).map(Checked)
    }

    /// What a configuration comes to, without starting anything.
    ///
    /// # Errors
    /// As [`Loader::new`].
    pub fn plan(config: &Config) -> Result<LoadPlan> {
        Self::plan_group(config, &[config.replica.rank()])
    }

    /// The same for several replicas of one process, as [`Loader::group`] makes them.
    ///
    /// # Errors
    /// As [`Loader::group`].
    pub fn plan_group(config: &Config, ranks: &[u32]) -> Result<LoadPlan> {
        let limits = Limits::find(&config.system_root);
        let (spec, memory) = settle(config, ranks, &limits)?;
        let schedule = spec.plan.schedule().clone();
        Ok(LoadPlan { schedule, memory })
    }

    /// What each replica of a configuration will do in an epoch, in order of their ranks. Takes time in proportion to the
    /// samples (some 10 million a second); opens no shard.
    ///
    /// # Errors
    /// As [`Loader::new`], but for memory.
    pub fn shares(config: &Config) -> Result<Vec<Share>> {
        share::shares(config)
    }

    /// The next batch; `None` at an epoch's end, after which the next call begins the next epoch. Waits for it.
    ///
    /// # Errors
    /// Whatever ended the run, once everything before it was delivered; [`Error::Starved`] when the consumer holds every
    /// batch that a given budget or the memory limit allows, after which it may drop some and call again.
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        self.next_batch_unless(&mut || false)
    }

    /// The same; while it waits, `interrupted` is asked every tenth of a second whether to stop waiting.
    ///
    /// # Errors
    /// As [`Loader::next_batch`]; [`Error::Interrupted`].
    pub fn next_batch_unless(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Batch>> {
        if let Some(returned) = self.returned.take() {
            self.engine.meters.caller_busy.add(returned.elapsed(), 1);
        }
        let batch = self.engine.next(self.replica, interrupted)?;
        self.returned = Some(Instant::now());
        Ok(batch)
    }

    /// Goes to the beginning of an epoch. What was built ahead is kept where it is that epoch's.
    pub fn start_epoch(&mut self, epoch: u64) {
        self.engine.handover.start_epoch(self.replica, epoch);
    }

    /// The state to resume from: counts what was delivered, not what was built ahead.
    pub fn state(&self) -> ResumeState {
        self.engine.spec.state(self.engine.delivered(self.replica))
    }

    /// Goes on from a state, of this or any other number of replicas, batch size or threads.
    ///
    /// # Errors
    /// A state of another dataset, source, order or seed.
    pub fn load_state(&mut self, state: &ResumeState) -> Result<()> {
        let at = self.engine.spec.plan.resume(state, self.engine.spec.fingerprint)?;
        self.engine.seek(self.replica, at);
        Ok(())
    }

    /// Steps of an epoch, the same for every replica.
    #[expect(clippy::len_without_is_empty, reason = "an epoch without a step is refused")]
    pub fn len(&self) -> u64 {
        self.engine.spec.plan.schedule().steps(0)
    }

    /// Steps left in the epoch at hand.
    pub fn steps_left(&self) -> u64 {
        self.engine.spec.plan.schedule().steps(self.engine.delivered(self.replica).1)
    }

    /// What was done so far, by all replicas that this loader's workers serve.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The bad samples of this run so far, each once, by all its replicas in this process.
    pub fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        self.engine.bad.list()
    }

    /// Takes what happened since the last call and a person should hear of. It is logged as well (crate `log`).
    pub fn notices(&self) -> Vec<Notice> {
        self.engine.notices.take()
    }

    /// Returns a handle with statistics, bad samples and notices, for a loader that moves to another thread.
    pub fn monitor(&self) -> Monitor {
        Monitor(self.engine.clone())
    }
}

/// A configuration that fits its dataset, before a loader is made of it.
pub struct Checked(Spec);

impl Checked {
    /// Steps of an epoch, the same for every replica.
    #[expect(clippy::len_without_is_empty, reason = "an epoch without a step is refused")]
    pub fn len(&self) -> u64 {
        self.steps_left(0)
    }

    /// Steps of an epoch from position `p` on.
    pub fn steps_left(&self, p: u64) -> u64 {
        self.0.plan.schedule().steps(p)
    }

    /// The state of a run that has delivered everything before position `p` of an epoch.
    pub fn state(&self, epoch: u64, p: u64) -> ResumeState {
        self.0.state((epoch, p))
    }

    /// Returns the epoch and position at which a state resumes.
    ///
    /// # Errors
    /// A state of another dataset, source, order or seed.
    pub fn resume(&self, state: &ResumeState) -> Result<(u64, u64)> {
        Ok(self.0.plan.resume(state, self.0.fingerprint)?)
    }
}

/// Looks at a loader from elsewhere. Keeps no worker alive; after the loader's end it says how things stood.
#[derive(Clone)]
pub struct Monitor(Arc<Engine>);

impl Monitor {
    /// As [`Loader::stats`].
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// As [`Loader::bad_samples`].
    pub fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        self.0.bad.list()
    }

    /// As [`Loader::notices`].
    pub fn notices(&self) -> Vec<Notice> {
        self.0.notices.take()
    }
}

/// What a configuration comes to.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// Steps, samples of each replica, what is dropped.
    pub schedule: Schedule,
    /// The memory it takes.
    pub memory: Arithmetic,
}

fn settle(config: &Config, ranks: &[u32], limits: &Limits) -> Result<(Spec, Arithmetic)> {
    let mut spec = Spec::new(config, ranks)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = config.workers.unwrap_or((processors / config.local_world as usize).max(1));
    let arithmetic = Arithmetic::new(config, &spec, workers, limits)?;
    // Pages read ahead must still be there when their turn comes.
    spec.bound_ahead(arithmetic.beside() / 4);
    Ok((spec, arithmetic))
}
