//! Statistics of a loader.

use crate::autotune::TuningReason;
use crate::budget::MemoryPlan;
use crate::decoded_cache::DecodedCacheStats;
use crate::meters::Stage;
use std::fmt;
use std::time::Duration;

/// What a loader has done so far, for all its replicas in this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// Since the loader was created.
    pub elapsed: Duration,
    /// Time that workers waited for storage in reads (wall-clock time without CPU time). Part of `read`; estimated from
    /// every 16th read.
    pub data_wait: Stage,
    /// Finding, reading and checking records.
    pub read: Stage,
    /// Decoding bytes to pixels.
    pub decode: Stage,
    /// The steps: crop, resize, flip and augmentation into the batch, and normalisation.
    pub resize: Stage,
    /// The user function.
    pub function: Stage,
    /// Workers without a batch to fill, because the consumer is slower than they are.
    pub buffer_wait: Stage,
    /// The consumer waiting for batches.
    pub consumer_wait: Stage,
    /// The consumer's own work between batches.
    pub consumer_busy: Stage,
    /// Bytes of records read.
    pub bytes: u64,
    /// Valid samples delivered.
    pub samples: u64,
    /// Bad samples, each counted once.
    pub bad: u64,
    /// Cut and damaged images, frames and further images that were decoded as [`Pixels::truncated`](crate::Pixels::truncated) says. One
    /// that is decoded again counts again; one from the cache of decoded images does not.
    pub filled: u64,
    /// Batches that are complete but not delivered.
    pub ready: usize,
    /// Batches that the consumer holds.
    pub held: usize,
    /// Workers that are active at present.
    pub workers: usize,
    /// Worker threads.
    pub max_workers: usize,
    /// Batches built ahead of the consumer.
    pub prefetch: usize,
    /// Batches of each replica that the budget allows in memory.
    pub batches_per_replica: usize,
    /// Batches in memory beyond the budget, for a consumer that keeps them.
    pub extra_batches: usize,
    /// Why `workers` or `prefetch` changed last.
    pub tuning: TuningReason,
    /// The memory plan, with the budget as it has grown.
    pub memory: MemoryPlan,
    /// Requests to object stores by this process since the loader was created; `None` if its datasets are local.
    pub store: Option<shardtool_store::Stats>,
    /// The cache of decoded images; `None` without one.
    pub decoded_cache: Option<DecodedCacheStats>,
    /// What a sample is called: `images` or `records`.
    pub unit: &'static str,
    /// Of each member of a scheduled source, what it has had since the start of the run; empty with another source.
    pub members: Vec<MemberStats>,
}

/// What a member of a scheduled source has had since the start of the run, of all replicas: up to the batch that was delivered last.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MemberStats {
    /// The split, the class or the list, and the conditions of its stage.
    pub name: String,
    /// Samples of the member.
    pub len: u64,
    /// Positions of the run that were its; with `drop`, also those at the end of an epoch that no step delivers.
    pub samples: u64,
    /// Its share in the current stage, from 0 to 1.
    pub share: f64,
}

/// The name of a stage. `Display` writes it for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StageName {
    /// [`Stats::data_wait`].
    DataWait,
    /// [`Stats::read`] without [`Stats::data_wait`].
    Read,
    /// [`Stats::decode`].
    Decode,
    /// [`Stats::resize`].
    Resize,
    /// [`Stats::function`].
    Function,
    /// [`Stats::buffer_wait`].
    BufferWait,
    /// [`Stats::consumer_wait`].
    ConsumerWait,
    /// [`Stats::consumer_busy`].
    ConsumerBusy,
}

impl StageName {
    /// Returns the name in JSON and Prometheus output, which other programs parse: it never changes.
    pub fn stable(self) -> &'static str {
        match self {
            StageName::DataWait => "wait for data",
            StageName::Read => "read + CRC",
            StageName::Decode => "decode",
            StageName::Resize => "resize",
            StageName::Function => "function",
            StageName::BufferWait => "wait for a slot",
            StageName::ConsumerWait => "caller waits",
            StageName::ConsumerBusy => "caller works",
        }
    }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            StageName::Resize => "transform",
            StageName::Function => "the user function",
            StageName::BufferWait => "wait for buffer",
            StageName::ConsumerWait => "consumer wait",
            StageName::ConsumerBusy => "consumer busy",
            name => name.stable(),
        })
    }
}

impl Stats {
    /// Returns what happened since an earlier reading of the same loader.
    pub fn since(&self, earlier: &Stats) -> Stats {
        Stats {
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            data_wait: self.data_wait.since(earlier.data_wait),
            read: self.read.since(earlier.read),
            decode: self.decode.since(earlier.decode),
            resize: self.resize.since(earlier.resize),
            function: self.function.since(earlier.function),
            buffer_wait: self.buffer_wait.since(earlier.buffer_wait),
            consumer_wait: self.consumer_wait.since(earlier.consumer_wait),
            consumer_busy: self.consumer_busy.since(earlier.consumer_busy),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            samples: self.samples.saturating_sub(earlier.samples),
            bad: self.bad.saturating_sub(earlier.bad),
            filled: self.filled.saturating_sub(earlier.filled),
            store: self.store.map(|store| store.since(&earlier.store.unwrap_or_default())),
            ..self.clone()
        }
    }

    /// Returns the samples delivered per second.
    pub fn rate(&self) -> f64 {
        self.samples as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the stages in the order in which a sample passes them, the work of workers first.
    pub fn stages(&self) -> [(StageName, Stage); 8] {
        [
            (StageName::DataWait, self.data_wait),
            (StageName::Read, self.read.since(Stage { count: 0, ..self.data_wait })),
            (StageName::Decode, self.decode),
            (StageName::Resize, self.resize),
            (StageName::Function, self.function),
            (StageName::BufferWait, self.buffer_wait),
            (StageName::ConsumerWait, self.consumer_wait),
            (StageName::ConsumerBusy, self.consumer_busy),
        ]
    }
}
