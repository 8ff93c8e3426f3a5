//! Writes datasets: packs sources into shards, indexes and a manifest; adopts existing TFRecord files; exports,
//! reshards and repairs. The crate prints nothing: progress goes through [`Progress`], results are values.
//!
//! ```text
//! source ─listing─▶ plan ─samples─▶ records ─▶ shards ─commit─▶ index ─▶ manifest
//! ```
//!
//! Modules in layers; each imports only from those above it.
//!
//! | module | responsibility |
//! |---|---|
//! | `error` | errors, by what failed |
//! | `progress` | progress reports, and stopping a run |
//! | `ordered` | parallel work with results in order, a bounded number at a time |
//! | `options` | options of a pack |
//! | `commit`, `staging` | files and folders that appear under their names when complete; locks |
//! | `class_ids` | which id a class has |
//! | `sample` | the schema and the values of samples |
//! | `source` | folders, lists and archives of other formats |
//! | `record` | an image becomes a framed Example: kept, resized, re-encoded, or stored raw |
//! | `index_writer` | the columns of an index, from records |
//! | `frames`, `salvage` | records of existing shards, intact or damaged |
//! | `rejects` | the list of rejected inputs |
//! | `plan` | which sample goes to which shard |
//! | `split` | the files of a split: names, plan files, manifest, whether it is complete |
//! | `conventions` | what records of existing shards hold |
//! | `shard_writer` | one shard: written, then committed with its index |
//! | `pack` | all of the above, in an order that survives a kill at any point |
//! | `writer` | samples of a program become a split |
//! | `adopt` | existing TFRecord files become a dataset |
//! | `export` | a dataset in another format |
//! | `reshard` | the records of datasets in other shards |
//! | `repair` | index and manifest from the records; the good records of damaged shards |
#![forbid(unsafe_code)]

mod adopt;
mod class_ids;
mod commit;
mod conventions;
mod error;
mod export;
mod frames;
mod index_writer;
mod options;
mod ordered;
mod pack;
mod plan;
mod progress;
mod record;
mod rejects;
mod repair;
mod reshard;
mod salvage;
mod sample;
mod shard_writer;
mod source;
mod split;
mod staging;
mod writer;

pub use adopt::{AdoptOptions, adopt};
pub use conventions::Conventions;
pub use error::{
    ArchiveError, BoxError, DestinationError, Difference, Error, ListError, MdsProblem, PlanDifference, Reason,
    Rejection, SampleProblem, ShardError, SourceError, WriterError,
};
pub use export::{ExportKind, ExportOptions, Exported, export};
pub use index_writer::{IndexWriter, Indexed, Payload};
pub use options::{BoxFormat, JpegLayout, OnError, Options, PixelStore, Resize, Shards, SourceKind};
pub use pack::{Summary, pack};
pub use plan::{Plan, PlannedShard, plan};
pub use progress::{Progress, Step};
pub use record::image::PixelArray;
pub use record::optimize::Optimized;
pub use repair::{Action, ManifestRepair, Repair, RepairOptions, ShardRepair, repair};
pub use reshard::{ReshardOptions, reshard};
pub use salvage::Lost;
pub use shardtool_format::Compression;
pub use writer::{Committed, Image, Label, Sample, Value, Writer, WriterOptions, commit as commit_parts};
