//! Errors: invalid arguments, environment variables, or resume states that contradict the dataset. Each message says what
//! to change.

use crate::order::Order;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says what it is and names its fields")]
pub enum Error {
    #[error("{len} samples: a source or an order holds at most 2^63")]
    TooManySamples { len: u64 },
    #[error("the source has no samples")]
    EmptySource,
    #[error("id {id} at position {index} of the list: the split has {len} samples")]
    ListedId { index: u64, id: u64, len: u64 },
    #[error("the weights sum to {sum}: expected 1 to 2^63")]
    WeightSum { sum: u128 },
    #[error("the mixture's shares are all 0: give at least one dataset a share")]
    NoShare,
    #[error("dataset {index} of the mixture is empty but has a share of {share}: set the share to 0")]
    EmptyDataset { index: usize, share: u64 },
    #[error("{count} members of a schedule: expected 1 to 65536")]
    ScheduleMembers { count: usize },
    #[error("{count} stages of a schedule: expected 1 to 65535")]
    ScheduleStages { count: usize },
    #[error("{}", stage_start(*stage, *start))]
    StageStart { stage: usize, start: Option<u64> },
    #[error("stage {stage} has {weights} weights for {members} members: give one for each, 0 to leave it out")]
    StageMembers { stage: usize, weights: usize, members: usize },
    #[error(
        "the weights of stage {stage} sum to {sum} without their common divisor: expected 1 to 1048576; give smaller numbers in \
         about the same proportion"
    )]
    StageWeights { stage: usize, sum: u128 },
    #[error("member {member} has no samples, but a weight in stage {stage}: set the weight to 0")]
    EmptyMember { stage: usize, member: usize },

    #[error("rank {rank} of world size {world}: ranks are 0 to world size - 1, and there is at least one replica")]
    Rank { rank: u32, world: u32 },
    #[error("local world size {local} of world size {world}: expected 1 to world size")]
    LocalWorld { local: u32, world: u32 },
    #[error("environment variable {name} is {value:?}: expected {expected}")]
    Variable { name: &'static str, value: String, expected: &'static str },
    #[error(
        "{first} is {first_value} but {second} is {second_value}: unset the wrong one, or give rank and world size"
    )]
    Contradiction { first: &'static str, first_value: u32, second: &'static str, second_value: u32 },

    #[error("{world} replicas of batch {batch}: a step may cover at most 2^63 positions")]
    GlobalBatch { world: u32, batch: u32 },
    #[error(
        "replica {rank} of {world} owns {len} samples: under policy `shard` the world size times the largest share may be \
         at most 2^63; take policy `sample`"
    )]
    TooManyPositions { rank: u32, world: u32, len: u64 },
    #[error(
        "{len} samples do not fill one step of {world} replicas x batch {batch}, and `drop` delivers only full steps: \
         take a smaller batch, or `mask` or `pad`"
    )]
    DropWithoutStep { len: u64, world: u32, batch: u32 },
    #[error(
        "replica {rank} of {world} owns {len} samples, less than one batch of {batch}, and `drop` delivers only full \
         batches: take a smaller batch, more shards, policy `sample`, or `mask` or `pad`"
    )]
    DropShareWithoutStep { rank: u32, world: u32, len: u64, batch: u32 },
    #[error(
        "replica {rank} of {world} owns no samples to pad with: there are too few shards for policy `shard`; take \
         policy `sample`, or `mask`"
    )]
    PadWithoutSamples { rank: u32, world: u32 },
    #[error("policy `shard` serves everything or an ascending list of ids, not a {source_kind} source: take `sample`")]
    ShardSource { source_kind: &'static str },
    #[error(
        "policy `shard`: the id at position {index} of the list is not above the preceding one; sort the list, each id once"
    )]
    ShardListOrder { index: u64 },
    #[error("the shards hold {shards} records together, the split {split}")]
    ShardTotal { shards: u64, split: u64 },

    #[error("{count} buckets: expected 1 to 65536")]
    BucketCount { count: usize },
    #[error("source position {index} is in bucket {number}: there are {buckets} buckets, numbered from 0")]
    BucketNumber { index: u64, number: u16, buckets: usize },
    #[error("the bounds of buckets of lengths must be strictly ascending, from 1 or more")]
    BucketBounds,
    #[error(
        "{cells} cells of {step} pixels a side: expected at most 2^30 cells, and less than 2^32 pixels in a row of all"
    )]
    ShapeBudget { step: u32, cells: u32 },
    #[error(
        "no shape of {cells} cells has a longer side of at most {ratio} times the shorter one: take a larger ratio"
    )]
    NoShape { cells: u32, ratio: u32 },
    #[error(
        "{count} samples are longer than {most} tokens (the longest has {longest}): take a larger bound, or choose where \
         longer samples go"
    )]
    LongSample { count: u64, longest: u64, most: u32 },
    #[error("a packing window of {window} positions: expected 1 to {most}")]
    PackingWindow { window: u32, most: u32 },
    #[error("buckets and packing: replicas share the samples, not the shards; take policy `sample` or `off`")]
    BatchingPolicy,
    #[error(
        "buckets and packing serve everything or a list of ids, not a {source_kind} source, whose source positions have \
         other samples in each epoch"
    )]
    BatchingSource { source_kind: &'static str },
    #[error(
        "buckets need the whole epoch, not windows of the interleaved order, to fill batches: take shuffled or sequential"
    )]
    BatchingOrder,
    #[error("{len} samples: buckets and packing hold at most 2^32")]
    TooManyMembers { len: u64 },
    #[error("{entries} bucket numbers or lengths for a source of {len} samples: give one for each source position")]
    MemberCount { entries: u64, len: u64 },
    #[error(
        "the buckets have {batches} complete batches, fewer than the {world} that replicas take in a step, and `drop` \
         delivers only full steps: take smaller batches, or `mask` or `pad`"
    )]
    DropWithoutBatch { batches: u64, world: u32 },
    #[error(
        "an epoch may have only {rows} packed rows, fewer than one step of {world} replicas x batch {batch}, and `drop` \
         delivers only full steps: take a smaller batch, or `mask` or `pad`"
    )]
    DropWithoutRows { rows: u64, world: u32, batch: u32 },

    #[error("invalid resume state: {problem}")]
    StateJson { problem: String },
    #[error("the resume state has version {found}; this build reads version {expected}")]
    StateVersion { found: u64, expected: u64 },
    #[error("member {member:?} of the resume state: expected {expected}")]
    StateMember { member: &'static str, expected: &'static str },
    #[error(
        "the resume state belongs to another dataset, or another version of this one: its fingerprint is {state:08x}, this split's \
         {dataset:08x} (`shardtool log --json` has those of all versions; open that of the state, `DATASET@N`)"
    )]
    StateFingerprint { state: u32, dataset: u32 },
    #[error(
        "the resume state belongs to another source of the same split (checksum {state:08x}, this one {source_crc:08x}): \
         use the same filter, weights, mixture, or members and draws of a schedule"
    )]
    StateSource { state: u32, source_crc: u32 },
    #[error(
        "the resume state was saved when stage {stage} had begun, and this run has another stage {stage}, or another start of it: \
         stages that have begun cannot be changed, later ones can"
    )]
    StateStages { stage: usize },
    #[error("the resume state's order is {state}, this one {current}: resume with the same order")]
    StateOrder { state: Order, current: Order },
    #[error("the resume state's seed is {state}, this one {current}: resume with the same seed")]
    StateSeed { state: u64, current: u64 },
    #[error(
        "the resume state is inside an epoch of {}, this run has {}: change that at the end of an epoch",
        shard_policy(*state),
        shard_policy(*current)
    )]
    StateWorld { state: Option<u32>, current: Option<u32> },
    #[error(
        "the resume state is inside an epoch of {}, this run has {}: change shapes, batch sizes, budgets and packing at the \
         end of an epoch",
        batching(*state),
        batching(*current)
    )]
    StateBatching { state: Option<u32>, current: Option<u32> },
    #[error("the resume state's position is {p}: expected 0 to {end} in steps of {multiple}")]
    StatePosition { p: u64, end: u64, multiple: u64 },
}

fn stage_start(stage: usize, start: Option<u64>) -> String {
    match (stage, start) {
        (_, None) => "a schedule without stages: give one that begins at position 0".to_owned(),
        (0, Some(start)) => format!("the first stage begins at position {start}: expected 0"),
        (_, Some(start)) => {
            format!("stage {stage} begins at position {start}, not after the stage before it: give ascending starts")
        }
    }
}

fn batching(crc: Option<u32>) -> String {
    match crc {
        Some(crc) => format!("buckets or packing with checksum {crc:08x}"),
        None => "neither buckets nor packing".to_owned(),
    }
}

fn shard_policy(world: Option<u32>) -> String {
    match world {
        Some(world) => format!("policy `shard` with world size {world}"),
        None => "another policy than `shard`".to_owned(),
    }
}
