//! Conditions on features, such as `source=flickr`: which records a command shows.

use crate::headings;
use shardtool_format::manifest::Manifest;
use shardtool_pack::Selection;
use shardtool_read::{Conditions, Shard, Split};
use std::sync::Arc;

/// The flag `--where`.
#[derive(clap::Args)]
pub(crate) struct WhereArgument {
    /// Take only records for which this holds
    ///
    /// CONDITION is FEATURE, one of = != < <= > >= ~, and a value, such as source=flickr; ~ finds text that contains it. Without
    /// a value, = finds records that lack the number. May be repeated: all must hold. A record with several values of FEATURE is
    /// an error.
    #[arg(long = "where", value_name = "CONDITION", help_heading = headings::RECORDS)]
    conditions: Vec<String>,
}

impl WhereArgument {
    /// Parses the conditions on records of a dataset.
    pub(crate) fn conditions(&self, manifest: &Manifest) -> anyhow::Result<Conditions> {
        let texts = self.conditions.iter().map(String::as_str);
        Conditions::parse(texts, manifest).map_err(|(text, error)| anyhow::anyhow!("--where `{text}`: {error}"))
    }

    /// Returns the records of splits to take; `None` for all.
    ///
    /// # Errors
    /// If no record is to be taken.
    pub(crate) fn selection(&self, splits: &[Split]) -> anyhow::Result<Option<Selection>> {
        let Some(first) = splits.first().filter(|_| !self.conditions.is_empty()) else { return Ok(None) };
        let conditions = self.conditions(first.manifest())?;
        if !some_hold(&conditions, splits)? {
            anyhow::bail!("--where {}: no record meets it", self.conditions.join(" --where "));
        }
        let holds = move |shard: &Arc<Shard>, row| conditions.hold(shard, row);
        Ok(Some(Selection::new(self.conditions.clone(), holds)))
    }
}

/// Returns whether a record of the splits meets the conditions.
fn some_hold(conditions: &Conditions, splits: &[Split]) -> anyhow::Result<bool> {
    for split in splits {
        for number in 0..split.entry().shards.len() {
            let shard = split.shard(number)?;
            for (_, row) in split.rows(number)? {
                if conditions.hold(&shard, row)? {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}
