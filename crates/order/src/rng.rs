//! The stream of draws behind one key.

use crate::prf::{Domain, GAMMA, key, mix, scale};

/// SplitMix64 started at a key. A value of two words, made anew for every sample: what a sample draws depends on
/// (seed, epoch, place) and never on what was drawn before it, so any sample's pixels can be reproduced alone.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream of a key.
    pub fn new(key: u64) -> Self {
        Rng { state: key }
    }

    /// The stream that augments the sample at `place` of the source in this epoch.
    pub fn augment(seed: u64, epoch: u64, place: u64) -> Self {
        Rng::new(key(Domain::Augment, seed, epoch, place))
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// The next number in `[0, 1)`: a multiple of 2⁻⁵³, so every language computes the same double.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The next integer in `[0, n)`; 0 when `n` is 0. No value's probability is off by more than 2⁻³².
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        scale(self.next_u64(), u64::from(n)) as u32
    }
}
