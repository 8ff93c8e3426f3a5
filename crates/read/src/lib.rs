//! After `format` in the data's way: opens a dataset's files, by mapping or by `pread`, and gives record *i*, checked.
//! Nothing here opens a file for writing.
//!
//! | module | its job |
//! |---|---|
//! | [`Dataset`], [`Split`] | the manifest, splits, which shard holds record *i* |
//! | [`Shard`] | one shard and its index: records, columns |
//! | [`Record`] | one record's bytes, borrowed from the mapping |
//! | [`Frames`] | the frames of a file in order, without an index |
//! | [`verify`] | checks everything, lists each damage |
//!
//! Opening reads the manifest and nothing else; shards are opened when first needed and kept in a bounded cache.

mod bytes;
mod cache;
mod dataset;
mod error;
mod frames;
mod record;
mod shard;
pub mod verify;

pub use bytes::{Access, FileBytes};
pub use dataset::{Dataset, Options, Split};
pub use error::{Error, Result};
pub use frames::Frames;
pub use record::Record;
pub use shard::Shard;
