//! What is wrong with the index of an MDS folder.

/// Why an `index.json` is none of MDS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MdsProblem {
    /// Not JSON of the right members.
    #[error(transparent)]
    Json(super::BoxError),
    /// Shards of another format.
    #[error("shards of format `{0}`; expected `mds`")]
    Format(String),
    /// Names, encodings and sizes of columns differ in number.
    #[error("as many names of columns as encodings and sizes are needed")]
    Columns,
    /// A compression that is not read.
    #[error("shards compressed with `{0}`; decompress them, or use zstd or gz")]
    Compression(String),
    /// An encoding that nobody knows.
    #[error("column `{column}` has the unknown encoding `{encoding}`")]
    Encoding {
        /// The column.
        column: String,
        /// Its encoding.
        encoding: String,
    },
    /// A name of a shard that leads elsewhere.
    #[error(transparent)]
    Name(#[from] shardtool_format::Error),
}
