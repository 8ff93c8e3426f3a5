//! The dataset, and what is kept between requests.

use crate::check::Check;
use crate::guard::Guarded;
pub(crate) use crate::split_view::SplitView;
use crate::trial::Trial;
use crate::turn::Turns;
use crate::versions::Versions;
use shardtool_read::{Dataset, Split};
use std::sync::Arc;

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
