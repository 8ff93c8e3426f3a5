//! A stage: from where on which member has which weight.

use super::member::Member;
use super::turns::{MAX_TURNS, Turns};
use crate::Error;
use crate::prf::{Domain, key};
use crate::rng::Rng;

/// From which position of a run on its members have which weights. Position g of a run is position g mod N of its epoch ⌊g ÷ N⌋.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageWeights {
    /// Where the stage begins.
    pub start: u64,
    /// One weight for each member, in any unit; 0 leaves it out.
    pub weights: Vec<u64>,
}

/// A stage with its turns.
#[derive(Debug)]
pub(super) struct TimedStage {
    pub(super) start: u64,
    /// Without a common divisor.
    pub(super) weights: Box<[u64]>,
    pub(super) turns: Turns,
}

impl TimedStage {
    pub(super) fn new(
        number: usize,
        stage: &StageWeights,
        preceding: Option<&TimedStage>,
        members: &[Member],
    ) -> Result<Self, Error> {
        if preceding.map_or(stage.start != 0, |preceding| stage.start <= preceding.start) {
            return Err(Error::StageStart { stage: number, start: Some(stage.start) });
        }
        if stage.weights.len() != members.len() {
            let (weights, members) = (stage.weights.len(), members.len());
            return Err(Error::StageMembers { stage: number, weights, members });
        }
        let divisor = stage.weights.iter().fold(0, |a, b| gcd(a, *b)).max(1);
        let weights: Box<[u64]> = stage.weights.iter().map(|weight| weight / divisor).collect();
        let sum: u128 = weights.iter().copied().map(u128::from).sum();
        if sum == 0 || sum > MAX_TURNS.into() {
            return Err(Error::StageWeights { stage: number, sum });
        }
        if let Some(member) = (0..members.len()).find(|&d| weights[d] > 0 && members[d].len() == 0) {
            return Err(Error::EmptyMember { stage: number, member });
        }
        let turns = Turns::new(&weights);
        Ok(TimedStage { start: stage.start, weights, turns })
    }

    /// Returns whose turn position g of the run is, and the number of its turns before in the stage.
    #[inline]
    pub(super) fn turn(&self, seed: u64, g: u128) -> (usize, u128) {
        let (period, k) = self.split(g);
        let (member, number) = self.turns.get(self.first(seed, period), k);
        (member, period * u128::from(self.weights[member]) + u128::from(number))
    }

    /// Counts the turns of a member in the stage before position g of the run.
    pub(super) fn count(&self, seed: u64, g: u128, member: usize) -> u128 {
        let (period, k) = self.split(g);
        let weight = self.weights[member];
        if weight == 0 {
            return 0;
        }
        period * u128::from(weight) + u128::from(self.turns.count(member, self.first(seed, period), k))
    }

    /// Returns the turn with which a period begins.
    #[inline]
    fn first(&self, seed: u64, period: u128) -> u32 {
        match self.turns.firsts() {
            [only] => *only,
            firsts => {
                let key = key(Domain::Phase, seed, self.start, period as u64);
                firsts[Rng::new(key).below(firsts.len() as u32) as usize]
            }
        }
    }

    /// Returns the period, and the position in it.
    #[inline]
    fn split(&self, g: u128) -> (u128, u32) {
        let (u, turns) = (g - u128::from(self.start), self.turns.len());
        match u64::try_from(u) {
            Ok(u) => (u128::from(u / turns), (u % turns) as u32),
            Err(_) => (u / u128::from(turns), (u % u128::from(turns)) as u32),
        }
    }

    pub(super) fn canonical_json(&self) -> String {
        let used = self.used_members();
        let weights: Vec<String> = self.weights[..used].iter().map(u64::to_string).collect();
        format!(r#"{{"start":{},"weights":[{}]}}"#, self.start, weights.join(","))
    }

    /// Returns one past the last member with a weight.
    pub(super) fn used_members(&self) -> usize {
        self.weights.iter().rposition(|weight| *weight > 0).map_or(0, |last| last + 1)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.turns.bytes() + 8 * self.weights.len() as u64
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
