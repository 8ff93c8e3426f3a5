//! A trial of the loader: a consumer that takes batches for some seconds, while the page shows what bounds the rate.

mod settings;

pub(crate) use settings::{MAX_SECONDS, MAX_STEP, Ordering, Settings, Work, recipe};

use crate::turn::Turn;
use shardtool_host::system_memory;
use shardtool_load::{Error, Loader, Monitor, Stats};
use shardtool_read::Split;
use std::path::Path;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two points of the curves, and the longest wait before a trial that is to end sees it.
const INTERVAL: Duration = Duration::from_millis(250);
const PULSE: Duration = Duration::from_millis(20);

/// What is running, or ran last.
#[derive(Default)]
pub(crate) struct Trial {
    state: Mutex<Option<State>>,
    stop: AtomicBool,
}

/// The state of a trial.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) split: String,
    pub(crate) settings: Settings,
    pub(crate) running: bool,
    pub(crate) cancelled: bool,
    /// From the start to the first batch.
    pub(crate) first_batch: Option<Duration>,
    pub(crate) points: Vec<Point>,
    /// The loader's statistics, the last ones if it has ended.
    pub(crate) stats: Option<Stats>,
    /// Why it ended before its time.
    pub(crate) problem: Option<String>,
}

/// What was seen at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Seconds since the start.
    pub(crate) at: f64,
    /// Samples per second since the point before.
    pub(crate) rate: f64,
    /// Batches that are complete but not delivered.
    pub(crate) ready: usize,
    /// Anonymous memory that this process has taken since the start, in bytes.
    pub(crate) memory: u64,
}

impl Trial {
    pub(crate) fn state(&self) -> Option<State> {
        self.lock().clone()
    }

    /// Ends what is running.
    pub(crate) fn cancel(&self) {
        self.stop.store(true, atomic::Ordering::Relaxed);
    }

    /// Starts a trial in the background.
    pub(crate) fn start(self: &Arc<Self>, turn: Turn, split: Split, settings: Settings) {
        self.stop.store(false, atomic::Ordering::Relaxed);
        *self.lock() = Some(State {
            split: split.name().to_owned(),
            settings: settings.clone(),
            running: true,
            cancelled: false,
            first_batch: None,
            points: vec![],
            stats: None,
            problem: None,
        });
        let trial = self.clone();
        std::thread::spawn(move || {
            let _turn = turn;
            let ended = Ended(&trial);
            if let Err(problem) = trial.run(&split, &settings) {
                trial.update(|state| state.problem = Some(problem));
            }
            drop(ended);
        });
    }

    fn run(&self, split: &Split, settings: &Settings) -> Result<(), String> {
        let config = settings.config(split)?;
        let before = anonymous();
        let start = Instant::now();
        let mut loader = Loader::new(&config).map_err(|error| error.to_string())?;
        let mut curves = Curves { trial: self, monitor: loader.monitor(), start, before, delivered: 0, last: start };
        let until = start + Duration::from_secs(settings.seconds.into());
        let over = || self.stop.load(atomic::Ordering::Relaxed) || Instant::now() >= until;
        let mut empty = 0;
        while !over() && empty < 2 {
            let next = loader.next_batch_unless(&mut || {
                curves.follow();
                over()
            });
            let batch = match next {
                Ok(Some(batch)) => batch,
                Ok(None) => {
                    empty += 1;
                    continue;
                }
                Err(Error::Interrupted) => break,
                Err(error) => return Err(error.to_string()),
            };
            empty = 0;
            self.update(|state| {
                state.first_batch.get_or_insert_with(|| start.elapsed());
            });
            let held = Instant::now() + settings.step();
            loop {
                curves.follow();
                let left = held.saturating_duration_since(Instant::now());
                if left.is_zero() || over() {
                    break;
                }
                std::thread::sleep(left.min(PULSE));
            }
            drop(batch);
        }
        curves.point();
        self.update(|state| state.cancelled = self.stop.load(atomic::Ordering::Relaxed));
        Ok(())
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.lock().as_mut() {
            change(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the trial as ended, also after a panic.
struct Ended<'t>(&'t Trial);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.update(|state| state.running = false);
    }
}

/// Draws the curves.
struct Curves<'t> {
    trial: &'t Trial,
    monitor: Monitor,
    start: Instant,
    /// Anonymous memory before the loader.
    before: u64,
    /// Samples, and the time, of the last point.
    delivered: u64,
    last: Instant,
}

impl Curves<'_> {
    /// Adds a point when it is time.
    fn follow(&mut self) {
        if self.last.elapsed() >= INTERVAL {
            self.point();
        }
    }

    fn point(&mut self) {
        let (now, stats) = (Instant::now(), self.monitor.stats());
        let passed = now.duration_since(self.last).as_secs_f64().max(1e-3);
        let point = Point {
            at: now.duration_since(self.start).as_secs_f64(),
            rate: stats.samples.saturating_sub(self.delivered) as f64 / passed,
            ready: stats.ready,
            memory: anonymous().saturating_sub(self.before),
        };
        (self.delivered, self.last) = (stats.samples, now);
        self.trial.update(|state| {
            state.points.push(point);
            state.stats = Some(stats);
        });
    }
}

fn anonymous() -> u64 {
    system_memory::anonymous(Path::new("/"))
}
