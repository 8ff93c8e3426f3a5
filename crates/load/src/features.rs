//! The features of a dataset, and checks of images and byte strings against them.

use crate::classes::describe;
use crate::error::{Error, Result};
use crate::splits::Splits;
use shardtool_format::manifest::DType;
use shardtool_format::names;
use shardtool_read::Split;

/// Checks that the records have images. Opaque records are images themselves.
pub(crate) fn check_images(splits: &Splits) -> Result<()> {
    match splits.as_slice().iter().find(|split| !split.manifest().has_images()) {
        Some(split) => {
            let (feature, known) = (names::IMAGE_ENCODED.to_owned(), Features::new(split).names());
            Err(Error::NoFeature { split: describe(split), feature, known })
        }
        None => Ok(()),
    }
}

/// Checks that all splits have a feature of byte strings, for `what`.
pub(crate) fn check_bytes(feature: &str, what: &'static str, splits: &Splits) -> Result<()> {
    splits.as_slice().iter().try_for_each(|split| {
        let known = Features::new(split);
        match known.dtype(feature) {
            Some((DType::Bytes, _)) => Ok(()),
            Some((dtype, _)) => Err(wrong_layout(feature, dtype, what)),
            None => Err(Error::NoFeature { split: describe(split), feature: feature.to_owned(), known: known.names() }),
        }
    })
}

/// How many shards, evenly spaced, are asked whether each of their records has one value; in a store only the first, since an index
/// there is a request.
const ASKED: usize = 256;
const ASKED_IN_STORE: usize = 1;

/// The features of a split.
pub(crate) struct Features<'s> {
    split: &'s Split,
    /// Name, type, and of a bare file whether its first record holds exactly one value.
    features: Vec<(String, DType, Option<bool>)>,
}

impl<'s> Features<'s> {
    /// Takes types from the manifest; for bare files, which have none, from the first record.
    pub(crate) fn new(split: &'s Split) -> Self {
        let listed = &split.manifest().features;
        let mut features: Vec<_> = listed.iter().map(|f| (f.name.clone(), f.dtype, None)).collect();
        if features.is_empty() {
            let record = split.get(0).ok();
            let example = record.as_ref().and_then(|r| r.example().ok());
            features.extend(
                example.iter().flat_map(|e| e.features()).filter_map(|(name, feature)| {
                    Some((name.to_string(), feature.dtype()?, Some(feature.count() == 1)))
                }),
            );
        }
        Features { split, features }
    }

    /// Returns the type of a feature, and whether it is scalar: every record holds exactly one value.
    pub(crate) fn dtype(&self, feature: &str) -> Option<(DType, bool)> {
        let (name, dtype, is_scalar) = self.features.iter().find(|(name, ..)| name == feature)?;
        Some((*dtype, is_scalar.unwrap_or_else(|| has_one_value_each(self.split, name))))
    }

    /// Returns the names of all features.
    pub(crate) fn names(&self) -> Vec<String> {
        self.features.iter().map(|(name, ..)| name.clone()).collect()
    }
}

/// Returns whether each record has one value of a feature, by the indexes: a feature that has several in one shard is a list in all.
fn has_one_value_each(split: &Split, feature: &str) -> bool {
    let shards: Vec<_> =
        (0..split.entry().shards.len()).filter(|n| split.entry().shards[*n].live_records() > 0).collect();
    let most = if split.is_in_store() { ASKED_IN_STORE } else { ASKED };
    let asked = shards.len().min(most);
    let mut answers = (0..asked).map(|at| {
        let shard = shards[at * (shards.len() - 1) / (asked - 1).max(1)];
        split.has_one_value_each(shard, feature)
    });
    // The code that reads the column reports damage; the first shard must be known.
    answers.next().is_some_and(|first| first.unwrap_or(false)) && !answers.any(|answer| matches!(answer, Ok(false)))
}

/// The error of a feature whose type does not fit a layout.
pub(crate) fn wrong_layout(feature: &str, dtype: DType, layout: &'static str) -> Error {
    Error::Layout { feature: feature.to_owned(), dtype: dtype.name(), layout }
}
