//! Why a loader could not be made, or cannot go on.

use crate::bad::BadSample;
use crate::budget::{Arithmetic, Usage};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Result of loading.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a loader could not be made, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dataset could not be opened or read, for a reason that is no sample's fault.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// Order, source, replicas or resume state.
    #[error(transparent)]
    Order(#[from] shardtool_order::Error),
    /// A loader needs at least one split.
    #[error("no split was given: a loader reads at least one")]
    NoSplits,
    /// The source counts other samples than the splits have.
    #[error("the source speaks of {source_len} samples, the splits have {records}: make it for these splits")]
    SourceLength {
        /// Samples of the source.
        source_len: u64,
        /// Records of the splits.
        records: u64,
    },
    /// A group needs at least one rank, and each rank once.
    #[error("the ranks of a group are {ranks:?}: give at least one, each once")]
    Ranks {
        /// As given.
        ranks: Vec<u32>,
    },
    /// A number of the configuration that must not be zero.
    #[error("`{option}` is 0: expected at least 1")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// No record of the dataset has that feature.
    #[error("the dataset has no feature `{feature}`; it has: {}", known.join(", "))]
    NoFeature {
        /// As asked for.
        feature: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A column's layout does not go with the feature's type.
    #[error("feature `{feature}` holds {kind}: it cannot be a column of {layout}")]
    Layout {
        /// The feature.
        feature: String,
        /// What it holds.
        kind: &'static str,
        /// What was asked for.
        layout: &'static str,
    },
    /// The first record of a split has another number of values than the column takes.
    #[error(
        "feature `{feature}` holds {found} values in the first record of split `{split}`, and a column of this layout takes \
         {expected}: leave it out of the columns, and read it from the records"
    )]
    Values {
        /// The feature.
        feature: String,
        /// Values that the column takes.
        expected: usize,
        /// Values there.
        found: usize,
        /// The split.
        split: String,
    },
    /// The configuration does not fit into its memory.
    #[error("{0}: take a smaller batch or image, or allow more memory")]
    Budget(Box<Arithmetic>),
    /// An image needs more scratch than the budget leaves beside the batches.
    #[error(
        "decoding the {width}x{height} image of record {record} of {} needs {needed} bytes of scratch, {allowed} are left \
         beside the batches: raise the memory budget by {} bytes, or pack with smaller images",
        shard.display(), needed - allowed
    )]
    Scratch {
        /// The shard.
        shard: PathBuf,
        /// Record in the shard, from 0.
        record: u64,
        /// Width in pixels, as coded.
        width: u32,
        /// Height in pixels, as coded.
        height: u32,
        /// Bytes needed.
        needed: u64,
        /// Bytes that may be had.
        allowed: u64,
    },
    /// Memory for a batch could not be had.
    #[error("memory for a batch of {bytes} bytes: {source}")]
    Alloc {
        /// Bytes asked for.
        bytes: usize,
        /// The allocator's account.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A bad sample under [`OnBad::Error`](crate::OnBad::Error).
    #[error("bad sample: {0}")]
    BadSample(Arc<BadSample>),
    /// A bad sample for which nothing can stand in.
    #[error("bad sample, and all {tried} substitutes are bad as well: {sample}")]
    NoSubstitute {
        /// The sample.
        sample: Arc<BadSample>,
        /// How many others were tried.
        tried: u64,
    },
    /// More bad samples than allowed.
    #[error("{found} bad samples, `max_bad` allows {allowed}; the last: {last}")]
    TooManyBad {
        /// Samples found bad.
        found: u64,
        /// `max_bad`.
        allowed: u64,
        /// The one too many.
        last: Arc<BadSample>,
    },
    /// The user's function, or a decoder, panicked.
    #[error("a worker panicked on record {record} of {} (id {id}): {message}", shard.display())]
    Panic {
        /// The sample's id.
        id: u64,
        /// Its shard.
        shard: PathBuf,
        /// Record in the shard, from 0.
        record: u64,
        /// What the panic said.
        message: String,
    },
    /// The consumer holds all batches that a given memory budget allows, or the memory limit was reached.
    #[error("no batch in {waited:.1?}: {}", starved(*held, *slots, usage.as_deref()))]
    Starved {
        /// Batches held.
        held: usize,
        /// Batches that the budget allows at once.
        slots: usize,
        /// How long the consumer waited.
        waited: Duration,
        /// The limit that stopped a default budget from growing; `None` where the budget was given.
        usage: Option<Box<Usage>>,
    },
    /// Whoever waited for a batch was told to stop waiting; nothing is lost, the next call waits for the same batch.
    #[error("waiting for a batch was interrupted")]
    Interrupted,
    /// A loader goes no further after an error.
    #[error("the loader stopped at its last error; load a state or start an epoch to go on")]
    Stopped,
    /// A thread could not be started.
    #[error("cannot start a worker thread: {0}")]
    Thread(std::io::Error),
}

fn starved(held: usize, slots: usize, usage: Option<&Usage>) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    match usage {
        None => format!(
            "the consumer holds {held} of {slots} batches that the given memory budget allows; release batches sooner, or \
             raise the budget"
        ),
        Some(Usage { limit, used }) => format!(
            "the consumer holds {held} batches, and another one would pass 90 % of the memory limit ({:.1} of {:.1} MiB in \
             use, {}); release batches sooner, or take smaller ones",
            mib(*used),
            mib(limit.bytes),
            limit.from
        ),
    }
}
