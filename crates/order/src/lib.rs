//! Which sample comes when. `load` asks this crate for the samples of every batch and `pack` for the order of a listing;
//! it stands beside the data's way, does no I/O and knows nothing of files: every answer is a pure function of
//! integers, the same on every machine. `order-spec.md` states each rule so that another language can follow it.
//!
//! ```text
//! (epoch, p) ─schedule─▶ rows: positions q ─order─▶ places v ─source─▶ sample ids
//!                            ▲
//!                    replica, batch, remainder
//! ```
//!
//! | module | its one job |
//! |---|---|
//! | `prf` | keys: 64 random-looking bits from (domain, seed, epoch, tweak) |
//! | `rng` | the stream of draws behind one key; augmentation draws from it |
//! | `permutation` | a seekable bijection on `[0, N)` in constant memory |
//! | `order` | position → place: sequential, shuffled, interleaved |
//! | `source` | place → sample id: everything, list, balanced, weighted, mixture |
//! | `replica` | rank and world size, given or from the launcher's environment |
//! | `shares` | policy `shard`: which places belong to which replica |
//! | `schedule` | steps of an epoch, and the rows of each replica's batch |
//! | `substitute` | what stands in for a sample that cannot be read |
//! | `plan` | all of the above bound together, as a loader uses it |
//! | `state` | the resume state and its JSON |
#![forbid(unsafe_code)]

mod error;
mod order;
mod permutation;
mod plan;
mod prf;
mod replica;
mod rng;
mod schedule;
mod shares;
mod source;
mod state;
mod substitute;

pub use error::Error;
pub use order::{Cursor, EpochOrder, Order};
pub use permutation::{Permutation, pack_permutation};
pub use plan::{Plan, Replicas, Sample, Walk};
pub use prf::{Domain, key};
pub use replica::{Ignored, Launch, Launcher, Replica};
pub use rng::Rng;
pub use schedule::{Policy, Remainder, Row, Schedule};
pub use shares::ShardShares;
pub use source::{Balanced, List, Mixture, Source, Weighted};
pub use state::{Identity, ResumeState, mixture_fingerprint};
pub use substitute::substitutes;
