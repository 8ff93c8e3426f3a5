//! After `read`, `order` and `decode` in the data's way: what a trainer calls. Workers take samples in order, write each
//! straight into its place in a batch, and the caller gets the batches in order, in memory that stays below a bound.
//!
//! ```text
//! (epoch, p) ─plan─▶ batch of rows ─claim─▶ worker: read + CRC ▸ decode ▸ crop, resize, flip ─▶ row ─▶ ready ─▶ caller
//!                        ▲                                                                                        │
//!                        └───────────────────────────── memory, used again ◀────────────── drop ──────────────────┘
//! ```
//!
//! | module | its job |
//! |---|---|
//! | `config` | what a loader is made from, as plain data |
//! | `spec` | the same, settled against the dataset |
//! | `input` | several splits as one sequence of ids |
//! | `budget` | limits of the container, the arithmetic of memory, scratch admitted in bytes |
//! | `memory` | where batches lie; rows written by several threads (the only unsafe code) |
//! | `columns` | features of records to arrays over a batch |
//! | `batch` | a batch, being built and delivered |
//! | `image` | one stored image to its row |
//! | `worker` | one thread: claims rows, makes samples, deals with bad ones |
//! | `ahead` | what the system is asked to read before it is needed |
//! | `bad` | bad samples and what happens to them |
//! | `engine` | what workers and callers share: order of batches, waiting, ends |
//! | `squeeze` | room for an image larger than foreseen |
//! | `tune` | depth and workers, adjusted to the caller |
//! | `stats` | where the time goes |
//! | `verdict` | the same in words |
//! | `notice` | what a person should hear of |
//! | `export` | the same as JSON and for Prometheus |
//! | `share` | what each replica will do, without doing it |
//! | `loader` | the loader itself |
#![deny(unsafe_code)]

mod ahead;
mod bad;
mod batch;
mod budget;
mod columns;
mod config;
mod engine;
mod error;
mod export;
mod handover;
mod image;
mod input;
mod loader;
#[expect(unsafe_code, reason = "rows of one buffer, written by several threads")]
mod memory;
mod notice;
mod pressure;
mod share;
mod spec;
mod stats;
mod supply;
mod tune;
mod verdict;
mod worker;

/// What [`handover`] waits with; `tests/model.rs` includes that file with the types of a model checker.
mod sync {
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use std::time::Instant;
}

pub use bad::{BadSample, Fault, OnBad};
pub use batch::Batch;
pub use budget::{Arithmetic, Limit, LimitSource, Usage};
pub use columns::Values;
pub use config::{ColumnSpec, Config, Content, Images, Layout, PageCache};
pub use error::{Error, Result};
pub use loader::{Checked, LoadPlan, Loader, Monitor};
pub use memory::{BatchAlloc, BatchBuffer, HostAlloc};
pub use notice::Notice;
pub use share::{MOST, Reads, Share};
pub use stats::{Stage, Stats};
pub use tune::Why;
