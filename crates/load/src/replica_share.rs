//! Computes what each replica reads in an epoch, from the manifest alone.

use crate::config::Config;
use crate::error::Result;
use crate::resolved_config::ResolvedConfig;
use shardtool_order::Row;

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
    /// What the replica reads; `None` if an epoch has more than [`MAX_COUNTED_SAMPLES`] samples, which would take too
    /// long to count.
    pub reads: Option<ReplicaReads>,
}

/// What a replica reads in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaReads {
    /// Shards that it opens.
    pub shards: u64,
    /// Estimated bytes: each record counts as its shard's mean size.
    pub bytes: u64,
}

/// Reads are counted only for epochs with at most this many samples, of all replicas.
pub const MAX_COUNTED_SAMPLES: u64 = 100_000_000;

/// Returns the shares of all replicas of a configuration, in order of rank.
pub(crate) fn shares(config: &Config) -> Result<Vec<ReplicaShare>> {
    let resolved = ResolvedConfig::new(config, &[config.replica.rank()])?;
    let schedule = resolved.plan.schedule();
    let counted = resolved.plan.source().len() <= MAX_COUNTED_SAMPLES;
    (0..schedule.world())
        .map(|rank| {
            let samples = schedule.samples(0, rank);
            let rows = schedule.steps(0) * u64::from(schedule.batch());
            let reads = counted.then(|| reads(&resolved, rank)).transpose()?;
            Ok(ReplicaShare { rank, samples, padding: rows - samples, reads })
        })
        .collect()
}

fn reads(resolved: &ResolvedConfig, rank: u32) -> Result<ReplicaReads> {
    let schedule = resolved.plan.schedule();
    let mut walk = resolved.plan.walk(0, rank)?;
    let splits = resolved.splits.as_slice();
    let mut records: Vec<Vec<u64>> = splits.iter().map(|s| vec![0; s.entry().shards.len()]).collect();
    let steps = (0..schedule.steps(0)).map(|step| step * schedule.step_len());
    for row in steps.flat_map(|p| schedule.rows(p, rank)) {
        if let Row::Sample(q) | Row::Repeat(q) = row {
            let (split, shard) = resolved.splits.shard_of(walk.sample(q).id)?;
            records[split][shard] += 1;
        }
    }
    let mut reads = ReplicaReads { shards: 0, bytes: 0 };
    for (split, records) in splits.iter().zip(&records) {
        for (shard, &n) in split.entry().shards.iter().zip(records) {
            reads.shards += u64::from(n > 0);
            reads.bytes += (u128::from(shard.bytes) * u128::from(n) / u128::from(shard.records.max(1))) as u64;
        }
    }
    Ok(reads)
}
