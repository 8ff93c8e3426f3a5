//! What each replica will do in an epoch, from the manifest alone.

use crate::config::Config;
use crate::error::Result;
use crate::spec::Spec;
use shardtool_order::Row;

/// One replica's part of epoch 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The replica.
    pub rank: u32,
    /// Rows that show a sample, each once.
    pub samples: u64,
    /// Rows of its last step that show none, or one once more.
    pub padding: u64,
    /// What it reads; `None` for more than [`MOST`] samples in all, which takes too long to go through.
    pub reads: Option<Reads>,
}

/// What a replica reads in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Shards that it opens.
    pub shards: u64,
    /// Bytes, each record as large as its shard's mean.
    pub bytes: u64,
}

/// Samples of an epoch, through all replicas, up to which what they read is counted.
pub const MOST: u64 = 100_000_000;

/// The parts of all replicas of a configuration, in order of their ranks.
pub(crate) fn shares(config: &Config) -> Result<Vec<Share>> {
    let spec = Spec::new(config, &[config.replica.rank()])?;
    let schedule = spec.plan.schedule();
    let counted = spec.plan.source().len() <= MOST;
    (0..schedule.world())
        .map(|rank| {
            let samples = schedule.samples(0, rank);
            let rows = schedule.steps(0) * u64::from(schedule.batch());
            let reads = counted.then(|| reads(&spec, rank)).transpose()?;
            Ok(Share { rank, samples, padding: rows - samples, reads })
        })
        .collect()
}

fn reads(spec: &Spec, rank: u32) -> Result<Reads> {
    let schedule = spec.plan.schedule();
    let mut walk = spec.plan.walk(0, rank)?;
    let mut records: Vec<Vec<u64>> = spec.input.splits().iter().map(|s| vec![0; s.entry().shards.len()]).collect();
    let steps = (0..schedule.steps(0)).map(|step| step * schedule.step_len());
    for row in steps.flat_map(|p| schedule.rows(p, rank)) {
        if let Row::Sample(q) | Row::Repeat(q) = row {
            let (split, shard) = spec.input.shard_of(walk.sample(q).id)?;
            records[split][shard] += 1;
        }
    }
    let mut reads = Reads { shards: 0, bytes: 0 };
    for (split, records) in spec.input.splits().iter().zip(&records) {
        for (shard, &n) in split.entry().shards.iter().zip(records) {
            reads.shards += u64::from(n > 0);
            reads.bytes += (u128::from(shard.bytes) * u128::from(n) / u128::from(shard.records.max(1))) as u64;
        }
    }
    Ok(reads)
}
