//! Opens datasets and TFRecord files and returns their records, checked. Files are mapped or read ([`Access`]); nothing
//! in this crate opens a file for writing.
//!
//! | item | contents |
//! |---|---|
//! | [`Dataset`], [`Split`] | the manifest, its splits, the shard of each record |
//! | [`Options`] | how files are read, and what is checked |
//! | [`named_version`], [`manifest_of`], [`kept_versions`], [`LoggedVersion`] | the versions of a dataset |
//! | [`Shard`] | one shard and its index: records and columns |
//! | [`SourceFiles`] | which source files of virtual shards are opened |
//! | [`Rows`] | the rows of a shard that are not deleted |
//! | [`Record`], [`Records`] | one record's bytes; those of a split, one after the other |
//! | [`Value`], [`Number`] | the value of one feature, from the index where it has it; the numbers of all records |
//! | [`Condition`], [`Conditions`] | which values, and which records, a command takes: `--where`, and the filters of `view` |
//! | [`Frames`] | the frames of a file in order, without an index |
//! | [`verify`] | checks everything and lists each damage |
//! | [`Error`] | what failed, on which file; which errors are damage |
//!
//! Opening reads only the manifest. Shards are opened when they are first needed and kept in a bounded cache.
//!
//! Feature `decode` (off by default) lets [`verify`] decode images too, and brings the decoders with it.

mod access;
mod bytes;
mod condition;
mod conditions;
mod counts;
mod dataset;
mod error;
mod foreign;
mod frames;
mod mapping;
mod numbers;
mod options;
mod overlay;
mod partial_record;
mod paths;
mod prefetch;
mod record;
mod records;
mod rows;
mod shard;
mod shard_cache;
mod shard_columns;
mod shard_index;
mod split;
mod system;
mod value;
mod value_ranges;
pub mod verify;
mod version;
mod virtual_shard;
mod whole_files;

pub use access::Access;
pub use bytes::FileBytes;
pub use condition::{Condition, ConditionError, Operator};
pub use conditions::Conditions;
pub use dataset::Dataset;
pub use error::{Error, Result};
pub use frames::Frames;
pub use numbers::Number;
pub use options::Options;
pub use paths::{glob_files, metadata_if_exists, not_regular, open_regular};
pub use record::Record;
pub use records::Records;
pub use rows::Rows;
pub use shard::{LentIndex, Shard};
pub use shardtool_store::cache::Cache;
pub use split::Split;
pub use value::Value;
pub use version::{LoggedSplit, LoggedVersion, kept as kept_versions, log as version_log, manifest_of, named_version};
pub use virtual_shard::SourceFiles;
pub use whole_files::{parse_manifest, read_index, read_manifest};
