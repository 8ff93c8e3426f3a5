//! Versions of the dataset other than the one that is shown, opened for a comparison.

use crate::split_view::SplitView;
use shardtool_read::{Dataset, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Versions that stay open: a comparison has two.
const OPEN: usize = 4;

/// A version, opened.
pub(crate) struct Version {
    pub(crate) dataset: Dataset,
    pub(crate) splits: Vec<Arc<SplitView>>,
}

impl Version {
    pub(crate) fn split(&self, name: &str) -> Option<&Arc<SplitView>> {
        self.splits.iter().find(|view| view.split.name() == name)
    }
}

/// The versions that were opened last.
#[derive(Default)]
pub(crate) struct Versions(Mutex<Vec<Arc<Version>>>);

impl Versions {
    /// Opens a version of a dataset, by its number.
    ///
    /// # Errors
    /// Those of [`Dataset::open_with`].
    pub(crate) fn open(&self, dataset: &Dataset, number: u64) -> Result<Arc<Version>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = open.iter().find(|version| version.dataset.version() == number) {
            return Ok(version.clone());
        }
        let dataset = dataset.at(&number.to_string())?;
        let splits = dataset.splits().iter().map(|split| Arc::new(SplitView::new(split.clone(), false))).collect();
        if open.len() >= OPEN {
            open.remove(0);
        }
        let version = Arc::new(Version { dataset, splits });
        open.push(version.clone());
        Ok(version)
    }
}
