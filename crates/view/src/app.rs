//! The dataset, and what is kept between requests.

use crate::check::Check;
use crate::columns::{self, Column};
use crate::guard::Guarded;
use crate::query::{Query, segment};
use crate::selection::Selections;
use crate::summary::{self, Sizes, Summary};
use crate::trial::Trial;
use crate::turn::Turns;
use crate::versions::Versions;
use shardtool_read::{Dataset, Split};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a page waits for summaries.
const PATIENCE: Duration = Duration::from_millis(700);

/// What the pages show.
pub(crate) struct App {
    pub(crate) dataset: Dataset,
    pub(crate) splits: Vec<Arc<SplitView>>,
    /// Number of the split that the first page shows.
    pub(crate) first: usize,
    pub(crate) guarded: Arc<Guarded>,
    /// Pictures that are decoded at once.
    pub(crate) decoders: Arc<tokio::sync::Semaphore>,
    /// Of the check and the trial, one runs at a time.
    pub(crate) turns: Turns,
    pub(crate) check: Arc<Check>,
    pub(crate) trial: Arc<Trial>,
    /// Other versions, for comparisons.
    pub(crate) versions: Versions,
}

impl App {
    /// Prepares a dataset for its pages: a server's, or those of a report, whose parts do not link to other pages.
    ///
    /// # Panics
    /// If the dataset has no split of the name `first`.
    pub(crate) fn new(dataset: Dataset, first: Option<&str>, guarded: Guarded, links: bool) -> Self {
        let view = |split: &Split| Arc::new(SplitView::new(split.clone(), links));
        let splits: Vec<_> = dataset.splits().iter().map(view).collect();
        let position = |name: &str| dataset.splits().iter().position(|split| split.name() == name);
        let first = match first {
            Some(name) => position(name).expect("the caller has checked the name"),
            None => position("train").unwrap_or(0),
        };
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        App {
            check: Arc::new(Check::new(&dataset)),
            dataset,
            splits,
            first,
            guarded: Arc::new(guarded),
            decoders: Arc::new(tokio::sync::Semaphore::new(threads)),
            turns: Turns::default(),
            trial: Arc::default(),
            versions: Versions::default(),
        }
    }

    pub(crate) fn split(&self, name: &str) -> Option<&Arc<SplitView>> {
        self.splits.iter().find(|view| view.split.name() == name)
    }

    /// Returns the dataset's name: the last part of its path.
    pub(crate) fn name(&self) -> String {
        let path = self.dataset.path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        crate::text::printable(name.as_encoded_bytes())
    }
}

/// A split, and what is known of it.
pub(crate) struct SplitView {
    pub(crate) split: Split,
    /// Whether there are other pages to link to: not in a report.
    links: bool,
    columns: OnceLock<Vec<Column>>,
    labels: OnceLock<Option<BTreeMap<i64, u64>>>,
    pub(crate) selections: Selections,
    summaries: Mutex<Summaries>,
    summarized: Condvar,
}

/// Summaries of columns, as far as they are computed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summaries {
    pub(crate) started: bool,
    pub(crate) columns: Vec<Summary>,
    pub(crate) sizes: Option<Sizes>,
    pub(crate) done: bool,
}

impl SplitView {
    pub(crate) fn new(split: Split, links: bool) -> Self {
        SplitView {
            split,
            links,
            columns: OnceLock::new(),
            labels: OnceLock::new(),
            selections: Selections::default(),
            summaries: Mutex::default(),
            summarized: Condvar::new(),
        }
    }

    /// Returns the URL of the gallery of the records that meet all conditions, if there is one.
    pub(crate) fn link(&self, filters: Vec<String>) -> Option<String> {
        let url = || Query { filters, ..Query::default() }.url(&format!("/{}", segment(self.split.name())), &[]);
        self.links.then(url)
    }

    /// Returns the URL of a record's page, if there is one.
    pub(crate) fn record_link(&self, id: u64) -> Option<String> {
        self.links.then(|| format!("/{}/record/{id}", segment(self.split.name())))
    }

    pub(crate) fn columns(&self) -> &[Column] {
        self.columns.get_or_init(|| columns::columns(&self.split))
    }

    /// Returns the column of labels, if the indexes hold it.
    pub(crate) fn label_column(&self) -> Option<&Column> {
        let name = self.split.manifest().label.as_ref()?;
        self.columns().iter().find(|column| column.name == *name && column.indexed)
    }

    /// Returns the number of records of each stored label.
    pub(crate) fn labels(&self) -> Option<&BTreeMap<i64, u64>> {
        self.labels.get_or_init(|| summary::labels(&self.split, self.columns())).as_ref()
    }

    /// Returns the name of a stored label's class, or its number.
    pub(crate) fn class_name(&self, label: i64) -> String {
        let manifest = self.split.manifest();
        let class = label.checked_sub(manifest.label_offset).and_then(|class| usize::try_from(class).ok());
        match class.and_then(|class| manifest.classes.get(class)) {
            Some(name) => crate::text::printable_text(name).into_owned(),
            None => label.to_string(),
        }
    }

    /// Returns the summaries of all columns, as far as they are computed in the time that a page may take.
    pub(crate) fn summaries(self: &Arc<Self>) -> Summaries {
        let mut summaries = self.lock_summaries();
        if !summaries.started {
            summaries.started = true;
            let view = self.clone();
            rayon::spawn(move || view.summarize());
        }
        let until = Instant::now() + PATIENCE;
        while !summaries.done {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            summaries = self.summarized.wait_timeout(summaries, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        summaries.clone()
    }

    fn summarize(&self) {
        let sizes = summary::sizes(&self.split, self.columns());
        self.lock_summaries().sizes = sizes;
        for column in self.columns() {
            let summary = summary::summarize(&self.split, column);
            self.lock_summaries().columns.push(summary);
            self.summarized.notify_all();
        }
        self.lock_summaries().done = true;
        self.summarized.notify_all();
    }

    fn lock_summaries(&self) -> std::sync::MutexGuard<'_, Summaries> {
        self.summaries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
