//! The turns of a stage: members in proportion to whole weights, so that after each turn every member has had its share to within
//! one, whatever turn of some is the first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// The largest number of turns, S: the sum of a stage's weights without their common divisor.
pub(super) const MAX_TURNS: u64 = 1 << 20;

/// Whose turn it is, S turns that repeat.
#[derive(Debug)]
pub(super) struct Turns {
    /// Member of each turn.
    members: Box<[u16]>,
    /// The turns of each member, ascending, member after member.
    places: Box<[u32]>,
    /// Where those of each member begin in `places`, then S.
    starts: Box<[u32]>,
    /// The turns that may be the first of a period, ascending.
    firsts: Box<[u32]>,
}

impl Turns {
    /// Makes the turns for weights whose sum is 1 to [`MAX_TURNS`], of at most 2¹⁶ members.
    pub(super) fn new(weights: &[u64]) -> Self {
        let members = quota_method(weights);
        let mut starts = Vec::with_capacity(weights.len() + 1);
        let mut start = 0;
        for weight in weights {
            starts.push(start);
            start += *weight as u32;
        }
        starts.push(start);
        let (mut places, mut next) = (vec![0; members.len()].into_boxed_slice(), starts.clone());
        for (k, member) in (0..).zip(&members) {
            let next = &mut next[usize::from(*member)];
            places[*next as usize] = k;
            *next += 1;
        }
        let firsts = firsts(weights, |d| &places[starts[d] as usize..starts[d + 1] as usize], members.len());
        Turns { members: members.into(), places, starts: starts.into(), firsts }
    }

    /// Returns S.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.members.len() as u64
    }

    /// Returns the turns that may be the first of a period, ascending; the first of them is 0.
    #[inline]
    pub(super) fn firsts(&self) -> &[u32] {
        &self.firsts
    }

    /// Returns the member of turn `k` of a period that begins with turn `first`, and the number of its turns before in the period.
    #[inline]
    pub(super) fn get(&self, first: u32, k: u32) -> (usize, u64) {
        let turn = self.turn(first, k);
        let member = usize::from(self.members[turn as usize]);
        (member, self.count(member, first, k))
    }

    /// Returns the number of turns of a member among the first `k` < S of a period that begins with turn `first`.
    #[inline]
    pub(super) fn count(&self, member: usize, first: u32, k: u32) -> u64 {
        let places = &self.places[self.starts[member] as usize..self.starts[member + 1] as usize];
        let before = |turn: u32| places.partition_point(|place| *place < turn);
        let end = self.turn(first, k);
        let wrapped = if end < first { places.len() } else { 0 };
        (wrapped + before(end) - before(first)) as u64
    }

    #[inline]
    fn turn(&self, first: u32, k: u32) -> u32 {
        let (turn, len) = (first + k, self.members.len() as u32);
        if turn >= len { turn - len } else { turn }
    }

    pub(super) fn bytes(&self) -> u64 {
        6 * self.len() + 4 * (self.starts.len() + self.firsts.len()) as u64
    }
}

/// Returns whose turn it is, S times.
///
/// The next turn of a member is due when its share has grown by one since the last, and may be taken as soon as its share exceeds
/// what it had. Of those that may be taken, the one that is due first is taken. This is the quota method of M. L. Balinski and
/// H. P. Young ("The quota method of apportionment", 1975): after k turns a member of weight w had ⌊kw ÷ S⌋ or ⌈kw ÷ S⌉ of them.
fn quota_method(weights: &[u64]) -> Vec<u16> {
    let sum: u64 = weights.iter().sum();
    let mut waiting: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut ready: BinaryHeap<Due> = BinaryHeap::new();
    waiting.extend((0..weights.len()).filter(|&d| weights[d] > 0).map(|d| Reverse((0, d))));
    let (mut members, mut taken) = (Vec::with_capacity(sum as usize), vec![0; weights.len()]);
    for k in 0..sum {
        while let Some(&Reverse((first, d))) = waiting.peek()
            && first <= k
        {
            waiting.pop();
            ready.push(Due { count: taken[d] + 1, weight: weights[d], member: d });
        }
        let Some(Due { count, weight, member }) = ready.pop() else {
            unreachable!("the shares that have grown by k + 1 turns exceed the k turns that were taken")
        };
        members.push(member as u16);
        taken[member] = count;
        if count < weight {
            // count · S < (k + 1) · weight from this turn on.
            waiting.push(Reverse((count * sum / weight, member)));
        }
    }
    members
}

/// Returns the turns k from which on every member has had its share to within one after each turn. With the excess E(k) = S · (turns
/// of the member before k) − k · weight, these are those with max E − S < E(k) < min E + S for every member.
fn firsts<'p>(weights: &[u64], places: impl Fn(usize) -> &'p [u32], len: usize) -> Box<[u32]> {
    let sum = len as i64;
    // How many members forbid each turn, as differences.
    let mut forbidden = vec![0i64; len + 1];
    for (d, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
        let weight = weight as i64;
        // The excess at a turn of the member, before it, and after it: between them it falls by the weight with each turn.
        let turns = || places(d).iter().zip(0..).map(|(&k, had)| (i64::from(k), sum * had - i64::from(k) * weight));
        let least = turns().map(|(_, excess)| excess).min().unwrap_or(0);
        let most = turns().map(|(_, excess)| excess + sum - weight).max().unwrap_or(0).max(0);
        let (least, most) = (least.min(0), most);
        let mut from = (0, 0);
        for (k, excess) in turns().chain([(sum, 0)]) {
            // At turn j of from.0 ..= k the excess is from.1 − (j − from.0) · weight.
            let (first, start) = from;
            let end = if k == sum { sum } else { k + 1 };
            // Too high until it is below least + S, too low from most − S on.
            let high = start - (least + sum) + 1;
            let too_high = if high > 0 { (high + weight - 1) / weight } else { 0 };
            let low = start - (most - sum);
            let in_range = if low > 0 { (low + weight - 1) / weight } else { 0 };
            let (too_high, in_range) = (too_high.min(end - first), in_range.min(end - first));
            for (from, to) in [(first, first + too_high), (first + in_range.max(too_high), end)] {
                if from < to {
                    forbidden[from as usize] += 1;
                    forbidden[to as usize] -= 1;
                }
            }
            from = (k + 1, excess + sum - weight);
        }
    }
    let mut forbids = 0;
    let allowed = (0u32..).zip(&forbidden[..len]).filter_map(|(k, change)| {
        forbids += change;
        (forbids == 0).then_some(k)
    });
    allowed.collect()
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
