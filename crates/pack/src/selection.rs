//! Which records of a dataset a command takes.

use serde_json::{Value, json};
use shardtool_read::{Shard, Split};
use std::fmt;
use std::sync::Arc;

/// Says whether a command takes the record of a row of a shard.
type Holds = dyn Fn(&Arc<Shard>, u64) -> shardtool_read::Result<bool> + Send + Sync;

/// The records that a command takes: those for which a function holds.
#[derive(Clone)]
pub struct Selection {
    /// Determines the function: it is recorded with what is written, so that another selection is not taken for the same.
    text: Vec<String>,
    holds: Arc<Holds>,
}

impl Selection {
    /// Returns a selection. Selections with the same `text` must hold for the same records.
    pub fn new(
        text: Vec<String>,
        holds: impl Fn(&Arc<Shard>, u64) -> shardtool_read::Result<bool> + Send + Sync + 'static,
    ) -> Self {
        Selection { text, holds: Arc::new(holds) }
    }

    /// Returns whether the command takes a record of a split.
    ///
    /// # Errors
    /// Those of the function, and of reading the index.
    pub(crate) fn takes(&self, split: &Split, id: u64) -> shardtool_read::Result<bool> {
        let (number, row) = split.locate(id)?;
        let shard = split.shard(number)?;
        let takes = (self.holds)(&shard, row)?;
        shard.check_index_readable()?;
        Ok(takes)
    }

    /// Returns what is recorded of a selection, if there is one.
    pub(crate) fn describe(selection: Option<&Self>) -> Option<(&'static str, Value)> {
        selection.map(|selection| ("selection", json!(selection.text)))
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Selection").field(&self.text).finish()
    }
}
