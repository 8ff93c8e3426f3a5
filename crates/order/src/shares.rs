//! Policy `shard`: the source positions of each replica, so that each reads only its own shards.

use crate::Error;
use crate::source::Source;

/// Shard i belongs to replica i mod R. The source positions of a replica are those of its shards, in the order of the
/// shards. Holds 16 bytes per shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardShares {
    world: u32,
    /// End of each shard in source positions.
    ends: Box<[u64]>,
    /// End of each shard among the source positions of its replica.
    own_ends: Box<[u64]>,
}

impl ShardShares {
    /// Computes the shares of `world` replicas (at least 1) in a source over shards with these numbers of records.
    ///
    /// # Errors
    /// If the source is neither everything nor a strictly ascending list, or the shards do not hold its split.
    pub(crate) fn new(source: &Source, records: &[u64], world: u32) -> Result<Self, Error> {
        let ends = match source {
            Source::All(split) => {
                let ends = running_sums(records);
                let shards = ends.last().copied().unwrap_or(0);
                if shards != *split {
                    return Err(Error::ShardTotal { shards, split: *split });
                }
                ends
            }
            Source::List(list) => {
                let ids = list.ids();
                if let Some(i) = ids.windows(2).position(|pair| pair[0] >= pair[1]) {
                    return Err(Error::ShardListOrder { index: i as u64 + 1 });
                }
                let ends = running_sums(records);
                let shards = ends.last().copied().unwrap_or(0);
                if let Some(&last) = ids.last().filter(|&&id| id >= shards) {
                    return Err(Error::ShardTotal { shards, split: last + 1 });
                }
                ends.iter().map(|&end| ids.partition_point(|&id| id < end) as u64).collect()
            }
            Source::Balanced(_) => return Err(Error::ShardSource { source_kind: "balanced" }),
            Source::Weighted(_) => return Err(Error::ShardSource { source_kind: "weighted" }),
            Source::Mixture(_) => return Err(Error::ShardSource { source_kind: "mixture" }),
            Source::Scheduled(_) => return Err(Error::ShardSource { source_kind: "scheduled" }),
        };
        let mut own_ends = ends.clone();
        for i in 0..ends.len() {
            let count = ends[i] - if i == 0 { 0 } else { ends[i - 1] };
            own_ends[i] = count + i.checked_sub(world as usize).map_or(0, |before| own_ends[before]);
        }
        Ok(ShardShares { world, ends: ends.into(), own_ends: own_ends.into() })
    }

    /// Returns the number of source positions of a replica.
    pub(crate) fn len(&self, rank: u32) -> u64 {
        let (rank, world) = (rank as usize, self.world as usize);
        match self.ends.len().checked_sub(rank + 1) {
            Some(after) => self.own_ends[rank + after / world * world],
            None => 0,
        }
    }

    /// Returns the replica's j-th source position.
    ///
    /// # Panics
    /// If `j` is [`len`](ShardShares::len) or more.
    pub(crate) fn source_position(&self, rank: u32, j: u64) -> u64 {
        let (rank, world) = (rank as usize, self.world as usize);
        let (mut low, mut high) = (0, self.ends.len().saturating_sub(rank).div_ceil(world));
        while low < high {
            let middle = (low + high) / 2;
            if self.own_ends[rank + middle * world] <= j {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let shard = rank + low * world;
        self.ends[shard] - self.own_ends[shard] + j
    }
}

fn running_sums(records: &[u64]) -> Vec<u64> {
    records
        .iter()
        .scan(0u64, |sum, n| {
            *sum = sum.saturating_add(*n);
            Some(*sum)
        })
        .collect()
}
