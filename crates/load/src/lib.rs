//! A data loader for training: workers read samples in order and decode each into its row of a batch; the consumer
//! takes the batches in order. Memory is bounded.
//!
//! Uses `read` for records, `order` for the order of samples, and `decode` for pixels. Start with [`Loader`] and
//! [`Config`].
//!
//! ```text
//! (epoch, p) ─plan─▶ rows of a batch ─claim─▶ worker: read + CRC ▸ decode ▸ crop, resize, flip ─▶ complete ─▶ consumer
//!                         ▲                                                                                     │
//!                         └──────────────────────────── memory, reused ◀──────────── drop ──────────────────────┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `options` | what a user says of a loader |
//! | `groups`, `resolved_config` | its fields in groups; options validated against the dataset |
//! | `splits` | several splits as one sequence of ids |
//! | `stages` | the members of a scheduled source, and their shares |
//! | `classes` | classes of several splits, compared by name |
//! | `budget` | limits of the system, the memory plan, admission of scratch in bytes |
//! | `system` | what the memory of batches is on the operating system |
//! | `buffer` | memory of batches; rows written by several threads (the only unsafe code) |
//! | `columns`, `cell`, `column_values` | values of records as arrays over a batch |
//! | `features`, `column_checks` | features of a dataset; columns compared with a few of its records |
//! | `arrays` | volumes, point clouds and other arrays |
//! | `views` | what is made of each image, by bucket |
//! | `image`, `typical_scratch` | decoding one stored image into its row; an estimate of its scratch |
//! | `further_images` | what the further images of each record hold |
//! | `decoded_cache` | decoded images, kept from one epoch to the next |
//! | `transform_marks` | what resume states name of these and of flips |
//! | `mixing`, `mosaic` | MixUp, CutMix, mosaics and copy-paste of a complete batch |
//! | `planes` | how the pixels of a row lie in memory |
//! | `objects`, `kept_objects` | boxes, points and masks of objects; those that rows take from others |
//! | `keypoints` | what the datasets say of the points of objects |
//! | `clip` | which frames of a video are delivered |
//! | `sampled_records` | the records of datasets in object stores that such estimates are made from |
//! | `plan`, `packing`, `buckets`, `lengths` | which samples are in which row; several samples in a row; batches of one shape; the columns that decide it |
//! | `batch` | a batch, shared by the workers that fill it, then read by the consumer |
//! | `handover` | queues of batches between workers and consumers, model-checked |
//! | `batch_supply` | when a batch may begin, and with which memory |
//! | `memory_pressure` | scratch for large images, taken from batches; model-checked |
//! | `autotune` | number of workers and batches ahead, adjusted to the consumer |
//! | `engine` | state shared by workers and consumers |
//! | `worker`, `read_ahead` | one thread that fills rows; read-ahead by the system |
//! | `fetch` | records in object stores, requested ahead of the workers; what that costs in an epoch |
//! | `bad_samples` | which errors make a sample bad, and the list of bad samples |
//! | `error`, `units` | errors of a loader; numbers of bytes in them |
//! | `meters`, `stats`, `bottleneck`, `export` | time per stage; statistics; the limiting stage; JSON and Prometheus |
//! | `notices` | events reported to the user |
//! | `replica_share` | what each replica will read, computed from the manifest |
//! | `loader`, `epoch` | the loader itself; the batches of an epoch as an iterator |
#![deny(unsafe_code)]

mod arrays;
mod autotune;
mod bad_samples;
mod batch;
mod batch_supply;
mod bottleneck;
mod buckets;
mod budget;
#[expect(unsafe_code, reason = "rows of one buffer, written by several threads")]
mod buffer;
mod cell;
mod classes;
mod clip;
mod column_checks;
mod column_values;
mod columns;
mod decoded_cache;
mod engine;
mod epoch;
mod error;
mod export;
mod features;
mod fetch;
mod further_images;
mod groups;
mod handover;
mod image;
mod kept_objects;
mod keypoints;
mod lengths;
mod loader;
mod memory_pressure;
mod meters;
mod mixing;
mod mosaic;
mod notices;
mod objects;
mod options;
mod packing;
mod plan;
mod planes;
mod read_ahead;
mod replica_share;
mod resolved_config;
mod sampled_records;
mod splits;
mod stages;
mod stats;
mod system;
mod transform_marks;
mod typical_scratch;
mod units;
mod views;
mod worker;

pub use autotune::TuningReason;
pub use batch::{Array, Batch, Element, Masks, OwnedImages, Pictures};
pub use budget::{Limit, LimitSource, MemoryPlan, Usage};
pub use buffer::{BatchAlloc, BatchBuffer, HostAlloc, OwnedBytes};
pub use classes::{class_names, labels};
pub use column_values::Values;
pub use decoded_cache::DecodedCacheStats;
pub use epoch::Epoch;
pub use error::{ArrayProblem, BadSample, ClassDifference, Error, Result, SampleError, StageProblem};
pub use fetch::EpochRequests;
pub use image::{SampleDraws, StepDraws};
pub use loader::{CheckedConfig, LoadPlan, Loader, Monitor};
pub use meters::Stage;
pub use mixing::{BatchMix, Mixing, RowMix};
pub use notices::Notice;
pub use objects::ObjectRole;
pub use options::{
    ArrayKind, Arrays, AspectRatioBuckets, Axis, BOXES, BadSamples, BatchTransform, Buckets, CLASS_NAMES, CLASSES,
    Classes, Clip, ClipSampling, Column, Config, CopyPaste, Custom, Decimal, DecodedCache, Devices, EXCLUSIONS,
    Exclusion, Field, FurtherImage, FurtherKind, Image, InvalidOptions, KEYPOINTS, Layout, LengthBuckets, Longer, Mask,
    MemberStage, Members, Mode, Mosaic, Objects, OnBad, PageCache, Pairs, Part, PixelDtype, PixelMask, Pixels,
    Prefetch, RaggedArrays, Replicas, SEGMENTATION, Select, Stages, Start, Tokens, View, option_schemas, parse_size,
};
pub use packing::PackedSamples;
pub use replica_share::{MAX_COUNTED_ROWS, ReplicaReads, ReplicaShare};
pub use stages::PlannedStage;
pub use stats::{MemberStats, StageName, Stats};
pub use units::Bytes;

use shardtool_host::scratch_pool;

/// The primitives of [`handover`] and [`memory_pressure`]; `tests/model.rs` includes these with those of a model checker.
mod sync {
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use std::time::Instant;
}
