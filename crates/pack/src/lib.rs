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
//! | `error` | errors, grouped by their cause |
//! | `progress` | reports progress, and stops a run |
//! | `ordered` | parallel work with results in order, a bounded number at a time |
//! | `known_images` | images that an index describes, and that have not changed since |
//! | `known_shards` | shards of archives that an index describes, and that have not changed since |
//! | `source_times` | times of the files of an indexed source, for the next index |
//! | `virtual_source` | names of the files of a source that stays where it is |
//! | `system` | what durable files and processes are on the operating system |
//! | `options` | options of a pack |
//! | `input` | files and objects that are packed: lengths and bytes, by path or URL |
//! | `commit` | files and folders that appear under their names when complete; locks |
//! | `place` | where a dataset is written: a folder, or a folder of a store |
//! | `class_ids` | assigns ids to classes |
//! | `array` | arrays from `.npy` files and programs, in chunks |
//! | `sample` | the schema and the values of samples |
//! | `source` | folders, lists and archives of other formats |
//! | `metadata` | removes metadata from images of samples and records |
//! | `record` | makes framed Examples; images are kept, resized, re-encoded, or stored raw |
//! | `index_writer` | makes an index from records |
//! | `frames`, `salvage` | read records of existing shards, intact or damaged |
//! | `rejects` | the list of rejected inputs |
//! | `plan` | assigns samples to shards |
//! | `split` | the files of a split: names, plan files, manifest, whether it is complete |
//! | `purged_keys` | the keys of purged records, which a dataset keeps out |
//! | `wait` | waits for another process that packs the same split |
//! | `conventions` | the content of records of existing shards |
//! | `shard_writer` | writes one shard, and commits it with its index |
//! | `pack` | a whole pack, in an order that survives a kill at any point |
//! | `parts` | a pack in parts, on any machines, and its commit |
//! | `writer` | writes samples of a program into a split |
//! | `adopt` | turns existing TFRecord files into a dataset |
//! | `selection` | which records a command takes |
//! | `refusal` | why a record does not become a file |
//! | `export` | writes a dataset in another format |
//! | `extract` | writes images back into folders |
//! | `copy` | copies a dataset to another place, or makes another one of its shards (`clone`) |
//! | `reshard` | copies the records of datasets into other shards |
//! | `repair` | rebuilds index and manifest; salvages the good records of damaged shards |
//! | `change` | new versions: deletes records, adds and drops columns, appends, compacts, tags, rolls back |
//! | `reseal` | gives a manifest that was edited by hand its CRC |
#![forbid(unsafe_code)]

mod adopt;
mod array;
mod change;
mod class_ids;
mod commit;
mod conventions;
mod copy;
mod error;
mod export;
mod extract;
mod frames;
mod index_writer;
mod input;
mod known_images;
mod known_shards;
mod metadata;
mod options;
mod ordered;
mod pack;
mod parts;
mod place;
mod plan;
mod progress;
mod purged_keys;
mod record;
mod refusal;
mod rejects;
mod repair;
mod reseal;
mod reshard;
mod salvage;
mod sample;
mod selection;
mod shard_writer;
mod source;
mod source_times;
mod split;
mod system;
mod virtual_source;
mod wait;
mod writer;

pub use adopt::{AdoptOptions, adopt};
pub use array::{Array, ArrayColumn};
pub use change::{
    AppendOptions, Appended, AppendedSplit, ChangeOptions, ChangedColumns, ChosenRecords, Collected, ColumnChange,
    ColumnOptions, ColumnRows, ColumnSource, ColumnValues, CompactOptions, Compacted, DeleteOptions, Deleted,
    GcOptions, MissingRows, NewVersion, PurgeOptions, Purged, SelectOptions, Selected, append, change_columns,
    column_rows, compact, delete, drop_columns, gc, purge, remove_tag, remove_view, rollback, select, tag,
};
pub use commit::Output;
pub use conventions::Conventions;
pub use copy::{CloneOptions, Cloned, Copied, CopyOptions, clone, copy};
pub use error::{
    ArchiveError, ArrayRefusal, BoxError, DestinationError, Difference, Error, ListError, MdsProblem, PlanDifference,
    Reason, Rejection, SampleProblem, ShardError, SourceError, WriterError,
};
pub use export::{ExportKind, ExportOptions, Exported, export};
pub use extract::{ExtractOptions, Extracted, Refused, extract};
pub use index_writer::{IndexOptions, IndexWriter, Indexed, Payload};
pub use options::{
    Annotated, JpegLayout, MemberKey, OnError, Options, PixelStore, Resize, Shards, SourceKind, SplitNames,
};
pub use pack::{IndexedAs, IndexedSource, Summary, index_source, indexed_as, pack, pack_splits, source_kind};
pub use parts::{
    Cleaned, CommitOptions, CommittedSplit, PackedPart, Part, SplitStatus, Unfinished, clean, commit_split, pack_part,
    status, write_plan, write_plans,
};
pub use plan::{Plan, PlannedShard, plan, plan_splits};
pub use progress::{Progress, Silent, Step};
pub use record::image::PixelArray;
pub use record::optimize::Optimized;
pub use repair::{Action, ManifestRepair, Repair, RepairOptions, ShardRepair, repair};
pub use reseal::reseal;
pub use reshard::{ReshardOptions, reshard};
pub use salvage::{Lost, Problem};
pub use selection::Selection;
pub use shardtool_format::Compression;
pub use split::files::{grown_split, unfinished_splits};
pub use writer::{
    Committed, Image, Label, Sample, TaskOptions, TaskShard, TaskWrite, TaskWriter, Value, Writer, WriterOptions,
    commit as commit_parts, new_write_id,
};
