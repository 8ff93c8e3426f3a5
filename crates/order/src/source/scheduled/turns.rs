//! The turns of a stage: members in proportion to whole weights, so that after each turn every member has had its share to within one.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The largest number of turns, S: the sum of a stage's weights without their common divisor.
pub(super) const MAX_TURNS: u64 = 1 << 20;

/// Whose turn it is, S turns that repeat.
#[derive(Debug)]
pub(super) struct Turns {
    /// Member of each turn.
    members: Box<[u16]>,
    /// Number of the turn among those of its member.
    numbers: Box<[u32]>,
}

impl Turns {
    /// Makes the turns for weights whose sum is 1 to [`MAX_TURNS`], of at most 2¹⁶ members.
    ///
    /// The next turn of a member is due when its share has grown by one since the last, and may be taken as soon as its share
    /// exceeds what it had. Of those that may be taken, the one that is due first is taken. This is the quota method of
    /// M. L. Balinski and H. P. Young ("The quota method of apportionment", 1975): after k turns a member of weight w had
    /// ⌊kw ÷ S⌋ or ⌈kw ÷ S⌉ of them.
    pub(super) fn new(weights: &[u64]) -> Self {
        let sum: u64 = weights.iter().sum();
        let mut waiting: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut ready: BinaryHeap<Due> = BinaryHeap::new();
        let mut taken = vec![0u32; weights.len()];
        waiting.extend((0..weights.len()).filter(|&d| weights[d] > 0).map(|d| Reverse((0, d))));
        let (mut members, mut numbers) = (Vec::with_capacity(sum as usize), Vec::with_capacity(sum as usize));
        for k in 0..sum {
            while let Some(&Reverse((first, d))) = waiting.peek()
                && first <= k
            {
                waiting.pop();
                ready.push(Due { count: u64::from(taken[d]) + 1, weight: weights[d], member: d });
            }
            let Some(Due { count, weight, member }) = ready.pop() else {
                unreachable!("the shares that have grown by k + 1 turns exceed the k turns that were taken")
            };
            members.push(member as u16);
            numbers.push(taken[member]);
            taken[member] += 1;
            if count < weight {
                // count · S < (k + 1) · weight from this turn on.
                waiting.push(Reverse((count * sum / weight, member)));
            }
        }
        Turns { members: members.into(), numbers: numbers.into() }
    }

    /// Returns S.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.members.len() as u64
    }

    /// Returns the member of turn `k`, and the number of its turns before.
    #[inline]
    pub(super) fn get(&self, k: usize) -> (usize, u32) {
        (usize::from(self.members[k]), self.numbers[k])
    }

    pub(super) fn bytes(&self) -> u64 {
        6 * self.len()
    }
}

/// A turn that may be taken: it is due at count · S ÷ weight. The greatest is the one due first, of several the first member.
#[derive(PartialEq, Eq)]
struct Due {
    count: u64,
    weight: u64,
    member: usize,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        let (own, others) = (self.count * other.weight, other.count * self.weight);
        others.cmp(&own).then(other.member.cmp(&self.member))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
