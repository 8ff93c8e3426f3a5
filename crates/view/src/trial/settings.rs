//! What the loader is tried with: a form, as the configuration of a loader and as Python.

use crate::query::last;
use shardtool_decode::Pipeline;
use shardtool_load::{Config, Field, Image, Members, Stages, Start};
use shardtool_order::Order;
use shardtool_read::Split;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::time::Duration;

/// Consecutive records that the interleaved order keeps together, and runs that it mixes: those of `bench`.
const RUN: NonZeroU32 = NonZeroU32::new(64).expect("not zero");
const WINDOW: NonZeroU32 = NonZeroU32::new(256).expect("not zero");
/// Longest trial in seconds, and longest training step in milliseconds.
pub(crate) const MAX_SECONDS: u32 = 300;
pub(crate) const MAX_STEP: u32 = 60_000;

/// What is done with each record, as `bench --work` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Train,
    Eval,
    Read,
}

/// The order of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordering {
    Shuffled,
    Interleaved,
    Sequential,
}

impl Work {
    pub(crate) const ALL: [(Work, &'static str, &'static str); 3] = [
        (Work::Train, "train", "train: RandomResizedCrop, flip"),
        (Work::Eval, "eval", "eval: Resize, CenterCrop"),
        (Work::Read, "read", "read: records only"),
    ];
}

impl Ordering {
    pub(crate) const ALL: [(Ordering, &'static str, &'static str); 3] = [
        (Ordering::Shuffled, "shuffled", "shuffled"),
        (Ordering::Interleaved, "interleaved", "interleaved, 64 × 256"),
        (Ordering::Sequential, "sequential", "sequential"),
    ];
}

/// The settings of a trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) work: Work,
    /// Side of the images in a batch, in pixels.
    pub(crate) size: u32,
    pub(crate) batch: u32,
    pub(crate) order: Ordering,
    /// Stages as `--schedule` of `bench` has them; empty for each sample once.
    pub(crate) schedule: String,
    /// Whether the classes are the members of the schedule.
    pub(crate) by_class: bool,
    /// As in a loader's configuration; `None` is its default.
    pub(crate) workers: Option<usize>,
    pub(crate) prefetch: Option<usize>,
    /// In MiB.
    pub(crate) budget: Option<u64>,
    /// How long each batch is held, in milliseconds: a training step.
    pub(crate) step: u32,
    pub(crate) seconds: u32,
}

/// Returns the pipeline of a recipe: that of `bench --work train` or `eval`.
///
/// # Errors
/// If the size is 0.
pub(crate) fn recipe(eval: bool, size: u32) -> Result<Pipeline, String> {
    let pipeline = if eval { Pipeline::eval(resized(size), size) } else { Pipeline::train(size) };
    pipeline.map_err(|error| error.to_string())
}

/// Returns the shorter side to which the evaluation recipe resizes before it crops `size` pixels: 256 for 224.
fn resized(size: u32) -> u32 {
    size.saturating_mul(8) / 7
}

impl Settings {
    /// Returns the settings that the page begins with.
    pub(crate) fn for_split(split: &Split) -> Self {
        Settings {
            work: if split.manifest().has_images() { Work::Train } else { Work::Read },
            size: 224,
            batch: split.len().clamp(1, 256) as u32,
            order: Ordering::Shuffled,
            schedule: String::new(),
            by_class: false,
            workers: None,
            prefetch: None,
            budget: None,
            step: 0,
            seconds: 10,
        }
    }

    /// Reads the settings of a form; what it lacks is as in `self`.
    pub(crate) fn with(mut self, pairs: &[(String, String)]) -> Self {
        fn number<T: std::str::FromStr>(pairs: &[(String, String)], name: &str) -> Option<T> {
            last(pairs, name).and_then(|text| text.trim().parse().ok())
        }
        fn chosen<T: Copy>(all: &[(T, &'static str, &'static str)], name: Option<&str>, default: T) -> T {
            all.iter().find(|(_, stable, _)| Some(*stable) == name).map_or(default, |(value, ..)| *value)
        }
        self.work = chosen(&Work::ALL, last(pairs, "work"), self.work);
        self.order = chosen(&Ordering::ALL, last(pairs, "order"), self.order);
        self.schedule = last(pairs, "schedule").unwrap_or_default().trim().to_owned();
        self.by_class = last(pairs, "members") == Some("classes");
        self.size = number(pairs, "size").unwrap_or(self.size);
        self.batch = number(pairs, "batch").unwrap_or(self.batch);
        self.workers = number(pairs, "workers");
        self.prefetch = number(pairs, "prefetch");
        self.budget = number(pairs, "budget");
        self.step = number(pairs, "step").unwrap_or(self.step).min(MAX_STEP);
        self.seconds = number(pairs, "seconds").unwrap_or(self.seconds).clamp(1, MAX_SECONDS);
        self
    }

    /// Returns the form's pairs.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let work = Work::ALL.iter().find(|(work, ..)| *work == self.work).map_or("", |(_, name, _)| name);
        let order = Ordering::ALL.iter().find(|(order, ..)| *order == self.order).map_or("", |(_, name, _)| name);
        let mut pairs = vec![
            ("work", work.to_owned()),
            ("size", self.size.to_string()),
            ("batch", self.batch.to_string()),
            ("order", order.to_owned()),
            ("step", self.step.to_string()),
            ("seconds", self.seconds.to_string()),
        ];
        if !self.schedule.is_empty() {
            pairs.push(("schedule", self.schedule.clone()));
        }
        if self.by_class {
            pairs.push(("members", "classes".to_owned()));
        }
        pairs.extend(self.workers.map(|n| ("workers", n.to_string())));
        pairs.extend(self.prefetch.map(|n| ("prefetch", n.to_string())));
        pairs.extend(self.budget.map(|n| ("budget", n.to_string())));
        pairs
    }

    /// Returns how long the consumer holds a batch.
    pub(crate) fn step(&self) -> Duration {
        Duration::from_millis(self.step.into())
    }

    /// Returns the stages; `None` without a schedule.
    fn stages(&self) -> Result<Option<Stages>, String> {
        if self.schedule.is_empty() {
            return Ok(None);
        }
        let members = if self.by_class { Members::Classes } else { Members::Splits };
        Ok(Some(self.schedule.parse::<Stages>()?.with_members(members)))
    }

    /// Returns the configuration of the loader.
    ///
    /// # Errors
    /// A message for the user. The loader checks the rest.
    pub(crate) fn config(&self, split: &Split) -> Result<Config, String> {
        let field = match self.work {
            Work::Read => Field::Record,
            Work::Train | Work::Eval => Image::new(recipe(self.work == Work::Eval, self.size)?).into(),
        };
        let mut config = Config::new(split.clone(), [field], self.batch);
        config.order = match self.order {
            Ordering::Shuffled => Order::Shuffled,
            Ordering::Interleaved => Order::Interleaved { run: RUN, window: WINDOW },
            Ordering::Sequential => Order::Sequential,
        };
        config.stages = self.stages()?;
        (config.workers, config.prefetch.batches) = (self.workers, self.prefetch);
        config.memory = self.budget.map(|mib| mib.saturating_mul(1 << 20));
        Ok(config)
    }

    /// Returns the same loader as a Python program.
    pub(crate) fn python(&self, split: &Split, path: &str) -> String {
        let literal = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!(
            "import shardtool as st\n\nsplit = st.Dataset({})[{}]\nloader = st.Loader(\n    split,\n    batch_size={},\n",
            literal(path),
            literal(split.name()),
            self.batch
        );
        let mut argument = |name: &str, value: &str| {
            let _ = writeln!(text, "    {name}={value},");
        };
        match self.work {
            Work::Train => argument("fields", &format!("[st.RandomResizedCrop({}), st.HorizontalFlip()]", self.size)),
            Work::Eval => {
                argument("fields", &format!("[st.Resize({}), st.CenterCrop({})]", resized(self.size), self.size))
            }
            Work::Read => {}
        }
        match self.order {
            Ordering::Shuffled => {}
            Ordering::Interleaved => argument("order", &format!("st.Interleaved({RUN}, {WINDOW})")),
            Ordering::Sequential => argument("order", "st.Sequential()"),
        }
        if let Ok(Some(stages)) = self.stages() {
            argument("source", &scheduled(&stages));
        }
        if let Some(workers) = self.workers {
            argument("workers", &workers.to_string());
        }
        if let Some(prefetch) = self.prefetch {
            argument("prefetch", &prefetch.to_string());
        }
        if let Some(mib) = self.budget {
            argument("memory", &format!("\"{mib}MiB\""));
        }
        text + ")\nfor batch in loader:  # one epoch\n    ...\n"
    }
}

/// Returns stages as Python.
fn scheduled(stages: &Stages) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let stage = |stage: &shardtool_load::MemberStage| {
        let start = match stage.start {
            Start::Epochs(epochs) => epochs.to_string(),
            start => text(&start.to_string()),
        };
        let weights: Vec<String> = stage.weights.iter().map(ToString::to_string).collect();
        let weights = format!("[{}]", weights.join(", "));
        let conditions: Vec<String> = stage.conditions.iter().map(|condition| text(condition)).collect();
        match conditions.is_empty() {
            true => format!("{start}: {weights}"),
            false => format!("{start}: st.Stage({weights}, where=[{}])", conditions.join(", ")),
        }
    };
    let all: Vec<String> = stages.stages.iter().map(stage).collect();
    let members = if stages.members == Members::Classes { ", members=\"classes\"" } else { "" };
    format!("st.Scheduled({{{}}}{members})", all.join(", "))
}
