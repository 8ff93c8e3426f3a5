//! Computes what each replica reads in an epoch, from the manifest alone: counted, or in a large epoch estimated.

use crate::error::Result;
use crate::options::Config;
use crate::resolved_config::ResolvedConfig;
use shardtool_order::{Counts, Policy, Remainder, Row, Source, pack_permutation};
use std::collections::HashMap;

/// One replica's part of epoch 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaShare {
    /// The replica.
    pub rank: u32,
    /// Rows that have a sample, each sample counted once.
    pub samples: u64,
    /// Rows of the last step that have no sample, or a repeated one.
    pub padding: u64,
    /// What the replica reads.
    pub reads: ReplicaReads,
}

/// What a replica reads in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaReads {
    /// Shards that it opens.
    pub shards: u64,
    /// Estimated bytes: each record counts as its shard's mean size.
    pub bytes: u64,
    /// Whether the samples of each shard are estimated as well, because counting them takes too long: the epoch has more than
    /// [`MAX_COUNTED_ROWS`] rows. The estimate assumes a random order.
    pub estimated: bool,
}

/// Reads are counted only for epochs with at most this many rows, of all replicas.
pub const MAX_COUNTED_ROWS: u64 = 10_000_000;
/// Source positions that are looked up to estimate how the samples of a source are distributed over the shards.
const LOOKED_UP: u64 = 1 << 20;

/// Returns the shares of all replicas of a configuration, in order of rank.
pub(crate) fn shares(config: &Config) -> Result<Vec<ReplicaShare>> {
    let resolved = ResolvedConfig::new(config, &[config.replica.rank()])?;
    let schedule = resolved.plan.schedule(0);
    let world = schedule.world();
    // With buckets, other ranks may have other rows.
    let rows = resolved.plan.walk(0, 0)?.counts(0).rows;
    let shards: usize = resolved.splits.as_slice().iter().map(|split| split.entry().shards.len()).sum();
    // Counting takes time for every row, and for every shard of every replica.
    let work = rows.max(shards as u64).saturating_mul(world.into());
    let mut estimate = if work > MAX_COUNTED_ROWS { Some(Estimate::new(&resolved)?) } else { None };
    (0..world)
        .map(|rank| {
            let Counts { rows, samples } = resolved.plan.walk(0, rank)?.counts(0);
            let reads = match &mut estimate {
                None => count(&resolved, rank)?,
                Some(estimate) => {
                    estimate.reads(rank, if schedule.remainder() == Remainder::Pad { rows } else { samples })
                }
            };
            Ok(ReplicaShare { rank, samples, padding: rows - samples, reads })
        })
        .collect()
}

fn count(resolved: &ResolvedConfig, rank: u32) -> Result<ReplicaReads> {
    let schedule = resolved.plan.schedule(0);
    let mut walk = resolved.plan.walk(0, rank)?;
    let rows = walk.clone();
    let splits = resolved.splits.as_slice();
    let mut records: Vec<Vec<u64>> = splits.iter().map(|s| vec![0; s.entry().shards.len()]).collect();
    let steps = (0..schedule.steps(0)).map(|step| step * schedule.step_len());
    for row in steps.flat_map(|p| rows.rows(p)) {
        if let Row::Sample(q) | Row::Repeat(q) = row {
            let mut ids = vec![];
            walk.for_each_sample(q, |sample| ids.push(sample.id));
            for id in ids {
                let (split, shard) = resolved.splits.shard_of(id)?;
                records[split][shard] += 1;
            }
        }
    }
    let mut reads = ReplicaReads { shards: 0, bytes: 0, estimated: false };
    for (split, records) in splits.iter().zip(&records) {
        for (shard, &n) in split.entry().shards.iter().zip(records) {
            reads.shards += u64::from(n > 0);
            reads.bytes += (u128::from(shard.bytes) * u128::from(n) / u128::from(shard.live_records().max(1))) as u64;
        }
    }
    Ok(reads)
}

/// How the samples of an epoch are distributed over the shards.
struct Estimate {
    /// Of each shard: its share of the samples, and the mean size of its records in bytes.
    shards: Vec<(f64, f64)>,
    /// If each replica reads its own shards only: their number of replicas.
    own: Option<usize>,
    /// Results by number of samples, if all replicas read the same shards.
    known: HashMap<u64, ReplicaReads>,
}

impl Estimate {
    fn new(resolved: &ResolvedConfig) -> Result<Self> {
        let (plan, splits) = (&resolved.plan, resolved.splits.as_slice());
        let mut first = vec![];
        let mut shards = vec![];
        for split in splits {
            first.push(shards.len());
            let mean = |bytes: u64, records: u64| bytes as f64 / records.max(1) as f64;
            shards.extend(
                split.entry().shards.iter().map(|s| (s.live_records() as f64, mean(s.bytes, s.live_records()))),
            );
        }
        if !matches!(plan.source(), Source::All(_)) {
            shards.iter_mut().for_each(|(share, _)| *share = 0.0);
            let length = plan.source().len();
            let positions = pack_permutation(0, length)?;
            for i in 0..length.min(LOOKED_UP) {
                let id = plan.source().id(resolved.order, plan.seed(), 0, positions.forward(i));
                let (split, shard) = resolved.splits.shard_of(id)?;
                shards[first[split] + shard].0 += 1.0;
            }
        }
        let schedule = plan.schedule(0);
        let own = (schedule.policy() == Policy::Shard).then_some(schedule.world() as usize);
        Ok(Estimate { shards, own, known: HashMap::new() })
    }

    /// Estimates what a replica reads that takes `samples` samples.
    fn reads(&mut self, rank: u32, samples: u64) -> ReplicaReads {
        match self.own {
            Some(world) => expected(self.shards.iter().skip(rank as usize).step_by(world), samples),
            None => *self.known.entry(samples).or_insert_with(|| expected(self.shards.iter(), samples)),
        }
    }
}

/// Returns the expected reads of `samples` samples that are drawn at random from shards with these shares and mean sizes.
fn expected<'a>(shards: impl Iterator<Item = &'a (f64, f64)> + Clone, samples: u64) -> ReplicaReads {
    let total: f64 = shards.clone().map(|(share, _)| share).sum();
    let (mut opened, mut bytes) = (0.0, 0.0);
    for (share, mean) in shards.filter(|(share, _)| *share > 0.0) {
        let probability = share / total;
        // A shard stays closed if no sample is drawn from it: (1 − p)ⁿ.
        opened += -libm::expm1(samples as f64 * libm::log1p(-probability));
        bytes += samples as f64 * probability * mean;
    }
    ReplicaReads { shards: opened.round() as u64, bytes: bytes as u64, estimated: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expects_every_shard_to_be_opened_by_enough_samples_and_one_by_one() {
        let shards = [(10.0, 100.0), (30.0, 100.0), (0.0, 0.0), (60.0, 100.0)];
        let one = expected(shards.iter(), 1);
        assert_eq!((one.shards, one.bytes), (1, 100));
        let many = expected(shards.iter(), 1000);
        assert_eq!((many.shards, many.bytes), (3, 100_000), "the empty shard is not opened");
        assert_eq!(expected([(5.0, 7.0)].iter(), 3).shards, 1, "a probability of 1");
        assert_eq!(expected([].iter(), 0), ReplicaReads { shards: 0, bytes: 0, estimated: true });
    }
}
