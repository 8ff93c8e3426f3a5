//! Several datasets, each with its share of an epoch.

use super::rotate;
use crate::Error;
use crate::permutation::MAX;

/// Each dataset has a share of the source positions and cycles through its samples; an epoch continues where the
/// preceding one stopped. Ids count through the datasets: those of the second begin where those of the first end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixture {
    parts: Box<[Part]>,
    /// N, the number of source positions.
    draws: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    share: u64,
    /// Samples in the dataset.
    size: u64,
    /// The dataset's first id.
    first_id: u64,
    /// Source positions of the dataset per epoch.
    turns: u64,
    /// End of its source positions.
    end: u64,
}

impl Mixture {
    /// Mixes datasets given as (samples, share), the shares in any unit, into `draws` source positions per epoch; without
    /// `draws`, as many as the datasets have samples. Each dataset gets its share rounded down; the remaining positions go
    /// one each to the largest remainders, the earlier dataset first if they are equal.
    ///
    /// # Errors
    /// If a dataset with a share has no samples, every share is 0, or samples or source positions exceed 2⁶³.
    pub fn new(datasets: &[(u64, u64)], draws: Option<u64>) -> Result<Self, Error> {
        if let Some(index) = datasets.iter().position(|&(size, share)| size == 0 && share > 0) {
            return Err(Error::EmptyDataset { index, share: datasets[index].1 });
        }
        let total = datasets.iter().fold(0u64, |sum, d| sum.saturating_add(d.0));
        let draws = draws.unwrap_or(total);
        let turns = apportion(draws, datasets.iter().map(|d| d.1)).ok_or(Error::NoShare)?;
        if let Some(&len) = [total, draws].iter().find(|&&n| n > MAX) {
            return Err(Error::TooManySamples { len });
        }
        let (mut first_id, mut end) = (0, 0);
        let parts = datasets.iter().zip(turns).map(|(&(size, share), turns)| {
            end += turns;
            first_id += size;
            Part { share, size, first_id: first_id - size, turns, end }
        });
        Ok(Mixture { parts: parts.collect(), draws })
    }

    pub(super) fn len(&self) -> u64 {
        self.draws
    }

    #[inline]
    pub(super) fn id(&self, epoch: u64, v: u64) -> u64 {
        let part = &self.parts[self.parts.partition_point(|part| part.end <= v)];
        let j = v - (part.end - part.turns);
        part.first_id + rotate(j, epoch, part.turns, part.size)
    }

    pub(super) fn canonical_json(&self) -> String {
        let datasets: Vec<String> =
            self.parts.iter().map(|p| format!(r#"{{"size":{},"share":{}}}"#, p.size, p.share)).collect();
        format!(r#"{{"source":"mixture","draws":{},"datasets":[{}]}}"#, self.draws, datasets.join(","))
    }

    pub(super) fn numbers(&self) -> u64 {
        5 * self.parts.len() as u64
    }
}

/// Splits `draws` by shares with the largest-remainder method; `None` if the shares sum to 0.
fn apportion(draws: u64, shares: impl Iterator<Item = u64> + Clone) -> Option<Vec<u64>> {
    let sum: u128 = shares.clone().map(u128::from).sum();
    if sum == 0 {
        return None;
    }
    let quotas: Vec<u128> = shares.map(|share| u128::from(draws) * u128::from(share)).collect();
    let mut turns: Vec<u64> = quotas.iter().map(|q| (q / sum) as u64).collect();
    let left = draws - turns.iter().sum::<u64>();
    let mut by_remainder: Vec<usize> = (0..turns.len()).collect();
    by_remainder.sort_by_key(|&i| (std::cmp::Reverse(quotas[i] % sum), i));
    by_remainder.into_iter().take(left as usize).for_each(|i| turns[i] += 1);
    Some(turns)
}
