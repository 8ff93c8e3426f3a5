//! Everything that writes. In the data's way this crate comes first when a dataset is made: sources in, shards, indexes
//! and a manifest out; afterwards only [`repair()`] touches a dataset again. It prints nothing: progress goes through
//! [`Progress`], results come back as values.
//!
//! ```text
//! source ─listing─▶ plan ─records─▶ shards ─commit─▶ index ─▶ manifest
//! ```
//!
//! | module | its one job |
//! |---|---|
//! | `options` | what to pack, where to, and how |
//! | `source` | folders and lists become a listing of images, files of other formats a survey of their samples |
//! | `reject` | what cannot be packed, and why |
//! | `plan` | which image goes to which shard, fixed before any is opened |
//! | `plan_file` | `.pack-<split>.json`, `.packed-<split>.json`: what an unfinished or complete pack was to do |
//! | `record` | an image becomes a framed Example |
//! | `pixels` | an image is resized, re-encoded or stored raw |
//! | `optimize` | a JPEG gets a better layout with the same coefficients |
//! | `ordered` | work on several threads, results in order, bounded in flight |
//! | `index_writer` | records become the columns of an index |
//! | `commit` | temporary names, fsync, rename, locks |
//! | `shard_writer` | one shard: written, then committed with its index |
//! | `shards` | records of image files are made, written into shards and committed, side by side |
//! | `archive_shards` | the same for archives, each on one thread |
//! | `split_files` | the files of one split: their names, which shards are finished, whether it is complete |
//! | `target` | the dataset's folder as a pack finds it: what is left to do, what is to be cleared |
//! | `catalogue` | the manifest: read, compared, a split put in or taken out |
//! | [`mod@pack`] | all of the above, in the order that survives being killed |
//! | `writer` | samples of a program become a split, in parts and by key |
//! | `frames` | records of an existing shard, in constant memory |
//! | `class_names` | class names, told by the records |
//! | [`mod@adopt`] | existing TFRecord files become a dataset |
//! | `salvage` | the good records of a damaged shard, and what lies between them |
//! | `staging` | a folder that is complete before it has its name |
//! | `export` | a dataset in other people's formats |
//! | [`mod@reshard`] | records into other shards, of one dataset or of several |
//! | [`mod@repair`] | index and manifest from the records; what is left of a damaged shard |
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
pub use shardtool_format::frame::Compression;
pub use writer::{Committed, Image, Label, Sample, Value, Writer, WriterOptions, commit as commit_parts};
