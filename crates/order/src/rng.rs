//! The random stream of one key.

use crate::prf::{Domain, GAMMA, key, mix, scale};

/// SplitMix64 seeded with a key. Each sample has its own stream, which depends on (seed, epoch, source position) only, so
/// that any sample's pixels can be reproduced alone.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Starts the stream of a key.
    pub fn new(key: u64) -> Self {
        Rng { state: key }
    }

    /// Starts the stream that augments the sample at `source_position` in this epoch.
    pub fn augment(seed: u64, epoch: u64, source_position: u64) -> Self {
        Rng::new(key(Domain::Augment, seed, epoch, source_position))
    }

    /// Starts the stream of one step of one view of the sample at `source_position` in this epoch. Steps are numbered from 0
    /// in each view, views from 0 in each sample.
    pub fn step(seed: u64, epoch: u64, source_position: u64, view: u64, step: u64) -> Self {
        let sample = key(Domain::Step, seed, epoch, source_position);
        Rng::new(key(Domain::Step, sample, view, step))
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Returns the next number in `[0, 1)`: a multiple of 2⁻⁵³, which every language computes as the same double.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns the next integer in `[0, n)`, or 0 if `n` is 0. The probability of a value is off by at most 2⁻³².
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        scale(self.next_u64(), u64::from(n)) as u32
    }
}
