//! What becomes of the samples that do not fill the last step of an epoch.

use crate::Order;
use serde::{Deserialize, Serialize};

/// What happens to the last step of an epoch if the samples do not fill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Remainder {
    /// It is not delivered.
    Drop,
    /// It is filled by repeating the samples at positions 0, 1, …
    Pad,
    /// Its last rows are masked: zeros, marked as not valid.
    Mask,
}

impl Remainder {
    /// Returns whether rows of the last step repeat samples.
    pub fn repeats(self) -> bool {
        match self {
            Remainder::Pad => true,
            Remainder::Drop | Remainder::Mask => false,
        }
    }

    /// Returns the default for an order: `Drop` for training orders, `Mask` for the sequential order of an evaluation.
    pub fn default_for(order: Order) -> Self {
        match order {
            Order::Sequential => Remainder::Mask,
            Order::Shuffled | Order::Interleaved { .. } => Remainder::Drop,
        }
    }
}
