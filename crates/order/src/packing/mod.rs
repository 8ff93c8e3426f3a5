//! Packing: several samples of tokens in one row.

mod epoch;
mod first_fit;
mod lengths;
mod plan;

pub use epoch::{PackedEpoch, PackedSample};
pub use lengths::{Packing, Truncation};
pub use plan::PackedPlan;
