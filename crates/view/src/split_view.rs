//! A split as the pages show it, and what is kept of it between requests.

use crate::columns::{self, Column};
use crate::query::{Query, segment};
use crate::selection::Selections;
use crate::summary::{self, Sizes, Summary};
use shardtool_format::manifest::Keypoints;
use shardtool_read::Split;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a page waits for summaries.
const PATIENCE: Duration = Duration::from_millis(700);

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

    /// Returns what the dataset says of keypoints.
    pub(crate) fn keypoints(&self) -> Option<&Keypoints> {
        self.split.manifest().keypoints.as_ref()
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
