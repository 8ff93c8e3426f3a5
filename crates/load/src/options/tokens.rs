//! Rows of several samples of tokens.

use super::{Buckets, Config, Field, Longer, number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Puts the tokens of several samples into each row, so that little of it is padding.
///
/// A batch has rows of `capacity` tokens. Samples share a row if they are near each other in the order of the epoch; which ones they
/// are changes with the epoch, and so may its number of steps. A row never divides a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tokens {
    /// The integer feature with the number of tokens of each sample, a column of the index.
    #[schemars(extend("x-positional" = true))]
    pub feature: String,
    /// Tokens of a row.
    #[schemars(range(max = 2_147_483_647), extend("x-positional" = true))]
    pub capacity: NonZeroU32,
    /// Features of numbers with one value for each token, and the number after the last token of a row.
    #[serde(deserialize_with = "number::map")]
    pub padded: BTreeMap<String, f64>,
    /// Samples that are packed together: larger windows fill rows better, smaller ones take less time to seek to.
    #[serde(default = "default_window")]
    #[schemars(range(max = 65_536))]
    pub window: NonZeroU32,
    /// What happens to samples of more than `capacity` tokens: `"error"`, or `"cut"`: their first tokens fill a row.
    #[serde(default)]
    pub longer: Longer,
}

fn default_window() -> NonZeroU32 {
    const { NonZeroU32::new(4096).expect("not 0") }
}

impl Tokens {
    /// Returns packing in windows of 4096 samples, which refuses longer samples. `padded` are features of numbers with one value for
    /// each token.
    pub fn new(
        feature: impl Into<String>,
        capacity: NonZeroU32,
        padded: impl IntoIterator<Item = (String, f64)>,
    ) -> Self {
        let padded = padded.into_iter().collect();
        Tokens { feature: feature.into(), capacity, padded, window: default_window(), longer: Longer::Error }
    }
}

impl Config {
    /// Returns ragged columns that become arrays of one length, and the number after the values of a row: those of
    /// [`Tokens::padded`] and [`LengthBuckets::padded`](super::LengthBuckets::padded).
    pub fn padded(&self) -> Vec<(String, f64)> {
        let tokens = self.fields.iter().find_map(|field| match field {
            Field::Tokens(tokens) => Some(&tokens.padded),
            _ => None,
        });
        let buckets = self.buckets.as_ref().and_then(|buckets| match buckets {
            Buckets::Length(buckets) => Some(&buckets.padded),
            Buckets::AspectRatio(_) => None,
        });
        let padded = tokens.into_iter().chain(buckets).flatten();
        padded.map(|(feature, fill)| (feature.clone(), *fill)).collect()
    }
}
