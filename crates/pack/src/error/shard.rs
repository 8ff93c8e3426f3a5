//! What is wrong with existing shards and their records.

use super::compression;
use shardtool_format::Compression;
use shardtool_format::manifest::DType;
use std::path::PathBuf;

/// Why existing shards cannot be indexed, repaired, exported or resharded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// A frame or an Example is damaged.
    #[error("{shard}, record {record}")]
    Record {
        /// File name of the shard.
        shard: String,
        /// Record, from 0.
        record: u64,
        /// What is wrong with it.
        source: shardtool_format::Error,
    },
    /// The whole shard is compressed.
    #[error("the whole file {} is compressed with {kind}, so its records cannot be read at random; convert it: \
        {}", .path.display(), compression::command(*.kind, .path))]
    Compressed {
        /// The shard.
        path: PathBuf,
        /// The compression.
        kind: Compression,
    },
    /// A record is too long for an index.
    #[error("{shard}, record {record}: {bytes} bytes; an image must lie within the first 4 GiB of its record")]
    TooLong {
        /// File name of the shard.
        shard: String,
        /// Record, from 0.
        record: u64,
        /// Bytes of its data.
        bytes: u64,
    },
    /// Values of a feature have different types.
    #[error("feature `{feature}` is {} in record {} of {}, and {} in record {} of {}; a feature must have one type in \
        all records", .first.2.name(), .first.1, .first.0, .second.2.name(), .second.1, .second.0)]
    FeatureType {
        /// The feature.
        feature: String,
        /// File name of a shard, record, and the type there.
        first: (String, u64, DType),
        /// The same, for a record with a different type.
        second: (String, u64, DType),
    },
    /// Files of one dataset lie in different folders.
    #[error("{} and {} lie in different folders; collect them with --out DIR", .first.display(), .second.display())]
    Scattered {
        /// A file.
        first: PathBuf,
        /// A file in another folder.
        second: PathBuf,
    },
    /// The folder has nothing to repair.
    #[error("{}: no manifest and no .tfrecord files; nothing to repair", .path.display())]
    NoDataset {
        /// The folder.
        path: PathBuf,
    },
    /// Shards without a manifest, where one is needed.
    #[error("{} has no manifest; make one with `shardtool index`", .path.display())]
    Bare {
        /// The shards.
        path: PathBuf,
    },
    /// The manifest says something else about a file than the file.
    #[error("the manifest says {member} {listed}, but {} has {found}; correct the manifest, or run `shardtool repair` \
        without --reseal to rebuild it", .path.display())]
    NotAsListed {
        /// The shard or its index.
        path: PathBuf,
        /// The member of the shard's line.
        member: &'static str,
        /// Its value in the manifest.
        listed: String,
        /// The value of the file.
        found: String,
    },
    /// Two datasets that are merged have a key in common.
    #[error("both {} and {} have the key `{key}` in split `{split}`; keys must be unique in a split: pack one of them \
        with other keys", .first.display(), .second.display())]
    MergedKey {
        /// The key.
        key: String,
        /// The split.
        split: String,
        /// A shard of the first dataset.
        first: PathBuf,
        /// A shard of the second.
        second: PathBuf,
    },
}
