//! Random parameters of steps: each function draws from the step's stream and returns what is to be done.
//!
//! Logarithm, exponential and trigonometric functions are those of `libm`, not the system's, whose rounding differs between
//! machines: the same seed must give the same pixels everywhere.

pub(crate) mod colour;
pub(crate) mod crop;
pub(crate) mod distributions;
pub(crate) mod policy;
pub(crate) mod tables;
pub(crate) mod warp;

use super::random::Random;

/// Returns a uniform number of a range.
pub(crate) fn uniform([low, high]: [f64; 2], random: &mut dyn Random) -> f64 {
    low + (high - low) * random.unit()
}

/// Returns true with probability `p`.
pub(crate) fn chance(p: f64, random: &mut dyn Random) -> bool {
    random.unit() < p
}
