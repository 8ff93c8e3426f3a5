//! What is wrong with the index of an MDS folder.

/// Why an `index.json` is not a valid MDS index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MdsProblem {
    /// Not JSON with the expected members.
    #[error(transparent)]
    Json(super::BoxError),
    /// Shards of another format.
    #[error("shards of format `{0}`; expected `mds`")]
    Format(String),
    /// The numbers of column names, encodings and sizes differ.
    #[error("the numbers of column names, encodings and sizes differ")]
    Columns,
    /// An unsupported compression.
    #[error("shards compressed with `{0}`; decompress them, or use zstd or gz")]
    Compression(String),
    /// An unknown encoding.
    #[error("column `{column}` has the unknown encoding `{encoding}`")]
    Encoding {
        /// The column.
        column: String,
        /// Its encoding.
        encoding: String,
    },
    /// A shard name that leads outside the folder.
    #[error(transparent)]
    Name(#[from] shardtool_format::Error),
}
