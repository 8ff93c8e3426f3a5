//! Every sample in proportion to its weight.

use super::crc32c_numbers;
use crate::Error;
use crate::permutation::MAX;
use crate::prf::{Domain, key};

/// Systematic sampling: the source positions select points at equal distances on the running sum of the weights, with
/// an offset that changes with the epoch. With weights that sum to T, a sample of weight g is shown ⌊gN ÷ T⌋ or ⌈gN ÷ T⌉ times per epoch, and on average
/// exactly gN ÷ T times. Holds 8 bytes per id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighted {
    /// Running sums of the weights.
    sums: Box<[u64]>,
    /// N, the number of source positions.
    draws: u64,
}

impl Weighted {
    /// Samples the ids 0, 1, … by these weights; `draws` source positions per epoch, or as many as there are weights.
    ///
    /// # Errors
    /// [`Error::WeightSum`] if the weights sum to 0 or to more than 2⁶³.
    pub fn new(weights: impl IntoIterator<Item = u64>, draws: Option<u64>) -> Result<Self, Error> {
        let mut sum = 0u128;
        let sums: Box<[u64]> = weights
            .into_iter()
            .map(|w| {
                sum += u128::from(w);
                sum as u64
            })
            .collect();
        if sum == 0 || sum > u128::from(MAX) {
            return Err(Error::WeightSum { sum });
        }
        Ok(Weighted { draws: draws.unwrap_or(sums.len() as u64), sums })
    }

    pub(super) fn len(&self) -> u64 {
        self.draws
    }

    #[inline]
    pub(super) fn id(&self, seed: u64, epoch: u64, v: u64) -> u64 {
        let total = self.sums[self.sums.len() - 1];
        let offset = key(Domain::Weighted, seed, epoch, 0) % total;
        let cut = match v.checked_mul(total).and_then(|x| x.checked_add(offset)) {
            Some(x) => x / self.draws,
            None => ((u128::from(v) * u128::from(total) + u128::from(offset)) / u128::from(self.draws)) as u64,
        };
        self.sums.partition_point(|&sum| sum <= cut) as u64
    }

    pub(super) fn canonical_json(&self) -> String {
        let before = std::iter::once(0).chain(self.sums.iter().copied());
        let crc = crc32c_numbers(self.sums.iter().zip(before).map(|(sum, before)| sum - before));
        let count = self.sums.len();
        format!(r#"{{"source":"weighted","count":{count},"draws":{},"crc32c":"{crc:08x}"}}"#, self.draws)
    }

    pub(super) fn numbers(&self) -> u64 {
        self.sums.len() as u64
    }
}
