//! Decides which sample is in which row of which batch, and in which order `pack` takes a listing. Every result is a pure
//! function of integers and the same on every machine; nothing in this crate does I/O. `order-spec.md` states each rule,
//! so that it can be implemented in another language.
//!
//! ```text
//! (epoch, p) ─schedule─▶ rows: positions q ─order─▶ source positions v ─source─▶ sample ids
//!                            ▲
//!                    replica, batch, remainder
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `error` | errors: arguments, environment variables, or states that contradict the dataset |
//! | `prf` | keys: 64 pseudorandom bits from (domain, seed, epoch, tweak) |
//! | `rng` | the random stream of one key; augmentation draws from it |
//! | `permutation` | a seekable bijection on `[0, N)` in constant memory |
//! | `order` | position → source position: sequential, shuffled, interleaved |
//! | `source` | source position → sample id: everything, list, balanced, weighted, mixture, scheduled |
//! | `replica` | one of the processes that share the work: rank and world size |
//! | `launch` | rank and world size, given or from the launcher's environment variables |
//! | `shares` | policy `shard`: the source positions of each replica |
//! | `remainder` | what becomes of the samples that do not fill the last step |
//! | `schedule` | steps of an epoch, and the rows of each replica's batch |
//! | `rows` | the rows of one batch |
//! | `bucket` | batches of one shape: shapes, assignment to buckets, the order of bucket batches |
//! | `packing` | several samples of tokens in one row |
//! | `batching` | checks that both have in common |
//! | `substitute` | substitutes of a sample that cannot be read |
//! | `plan` | all of the above combined, as a loader uses it |
//! | `walk` | one epoch of a plan, as one replica visits it |
//! | `state` | the resume state and its JSON |
//! ```
//! use shardtool_order::{Order, Plan, Policy, Replicas, Source};
//! use std::{num::NonZeroU32, sync::Arc};
//!
//! let two = NonZeroU32::new(2).unwrap();
//! let replicas = Replicas { world: two, batch: two, policy: Policy::Sample, remainder: None };
//! let plan = Arc::new(Plan::new(Source::All(10), Order::Shuffled, 1, replicas, &[])?);
//! // The first batch of rank 1 in epoch 0: 2 of the 4 positions of the step.
//! let mut walk = plan.walk(0, 1)?;
//! let rows = plan.schedule().rows(0, 1);
//! let ids: Vec<u64> = rows.filter_map(|row| row.position()).map(|q| walk.sample(q).id).collect();
//! assert_eq!(ids, [8, 0]);
//! // The step that follows, and after two steps the next epoch, since `Drop` is the default of this order.
//! assert_eq!(plan.schedule().after(0, 0), (0, 4));
//! assert_eq!(plan.schedule().after(0, 4), (1, 0));
//! # Ok::<(), shardtool_order::Error>(())
//! ```
#![forbid(unsafe_code)]

mod batching;
mod bucket;
mod error;
mod launch;
mod order;
mod packing;
mod permutation;
mod plan;
mod prf;
mod remainder;
mod replica;
mod rng;
mod rows;
mod schedule;
mod shares;
mod source;
mod state;
mod substitute;
mod walk;

pub use bucket::{AspectRatios, Bucket, Buckets, ImageShape, LengthBounds, Longer, Shape, shapes_within};
pub use error::Error;
pub use launch::{Ignored, Launch, Launcher};
pub use order::{Cursor, EpochOrder, Order};
pub use packing::{PackedEpoch, PackedPlan, PackedSample, Packing, Truncation};
pub use permutation::{Permutation, pack_permutation};
pub use plan::{BucketReplicas, Plan, Replicas, Sample};
pub use prf::{Domain, key};
pub use remainder::Remainder;
pub use replica::Replica;
pub use rng::Rng;
pub use rows::{Row, Rows};
pub use schedule::{Policy, Schedule};
pub use source::{
    Balanced, List, Member, Mixture, Scheduled, Source, StageMarks, StageWeights, Weighted, rarest_labels,
};
pub use state::{Identity, ResumeState, TransformMarks, mixture_fingerprint};
pub use substitute::substitutes;
pub use walk::{Counts, Walk};
