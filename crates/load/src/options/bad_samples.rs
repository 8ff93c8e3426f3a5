//! What happens to samples that cannot be read or decoded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to samples that cannot be read or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BadSamples {
    /// `"error"` ends the run, `"mask"` masks the row, and `"substitute"` fills it with another sample. Default: `"mask"` if the
    /// remainder is masked, else `"substitute"`.
    #[schemars(extend("x-positional" = true))]
    pub on_bad: Option<OnBad>,
    /// The run ends when more samples than this are bad, each counted once. Default: 1 % of the samples, at least 16.
    pub max_bad: Option<u64>,
}

/// What happens to a sample that cannot be read or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnBad {
    /// The run ends with [`Error::BadSample`](crate::Error::BadSample).
    Error,
    /// Its row is masked: zero and not valid. Other rows are unaffected.
    Mask,
    /// A substitute fills its row. It depends only on seed, epoch and position; the batch has the substitute's id.
    Substitute,
}

impl BadSamples {
    /// Returns how many samples of a source of `samples` may be bad.
    pub(crate) fn most(self, samples: u64) -> u64 {
        self.max_bad.unwrap_or((samples / 100).max(16))
    }
}
