use thiserror::Error;

/// Result of reading a structure of the format.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with the bytes of a dataset. Offsets are bytes from the start of the file, unless said otherwise.
///
/// [`Error::name`] gives the name by which `format-spec.md`, the fixtures and readers in other languages know each.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file ends inside a frame.
    #[error("the file ends inside the frame at byte {offset}: {needed} bytes needed, {found} left")]
    TruncatedFrame {
        /// Where the frame begins.
        offset: u64,
        /// Bytes of the whole frame, as far as known.
        needed: u64,
        /// Bytes from the frame's start to the end of the file.
        found: u64,
    },
    /// The CRC of a frame's length does not match: the length cannot be trusted.
    #[error("length CRC of the frame at byte {offset}: stored {expected:08x}, computed {found:08x}")]
    LengthCrc {
        /// Where the frame begins.
        offset: u64,
        /// Masked CRC in the file.
        expected: u32,
        /// Masked CRC of the length in the file.
        found: u32,
    },
    /// The CRC of a frame's data does not match.
    #[error("data CRC of the frame at byte {offset}: stored {expected:08x}, computed {found:08x}")]
    DataCrc {
        /// Where the frame begins.
        offset: u64,
        /// Masked CRC in the file.
        expected: u32,
        /// Masked CRC of the data in the file.
        found: u32,
    },
    /// The data of a frame is not a `tf.train.Example`.
    #[error("not a tf.train.Example: {problem} at byte {offset} of the record")]
    MalformedExample {
        /// Bytes from the start of the record's data.
        offset: usize,
        /// What was met.
        problem: &'static str,
    },
    /// An index is shorter than its header says.
    #[error("the index ends early: {needed} bytes needed, {found} found")]
    IndexTruncated {
        /// Bytes needed.
        needed: u64,
        /// Bytes there.
        found: u64,
    },
    /// An index does not begin with the magic bytes.
    #[error("not an index: it begins with {found:02x?}")]
    IndexMagic {
        /// The file's first eight bytes.
        found: [u8; 8],
    },
    /// An index of a later major version.
    #[error("index version {found} is not supported: this reader knows version 1")]
    IndexVersion {
        /// Major version in the file.
        found: u16,
    },
    /// An index uses required features that this reader does not know.
    #[error("the index needs features that this reader does not know (flags {unknown:#x}); a newer shardtool reads it")]
    IndexFlags {
        /// The unknown flags.
        unknown: u32,
    },
    /// The CRC of an index's header does not match.
    #[error("header CRC of the index: stored {expected:08x}, computed {found:08x}")]
    IndexHeaderCrc {
        /// CRC in the file.
        expected: u32,
        /// CRC of the header in the file.
        found: u32,
    },
    /// The CRC of an index's directory does not match.
    #[error("directory CRC of the index: stored {expected:08x}, computed {found:08x}")]
    IndexDirectoryCrc {
        /// CRC in the file.
        expected: u32,
        /// CRC of the directory in the file.
        found: u32,
    },
    /// The directory of an index describes an impossible layout.
    #[error("the directory of the index is inconsistent at byte {offset}: {problem}")]
    IndexLayout {
        /// Where the inconsistent entry or part begins.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Padding in an index is not zero.
    #[error("padding of the index is not zero at byte {offset}")]
    IndexPadding {
        /// The first byte that is not zero.
        offset: u64,
    },
    /// A column that must be there is not, or has another type.
    #[error("the index has no column `{column}` of the expected type")]
    IndexColumn {
        /// Name of the column.
        column: String,
    },
    /// The CRC of a column does not match.
    #[error("CRC of column `{column}` of the index: stored {expected:08x}, computed {found:08x}")]
    ColumnCrc {
        /// Name of the column.
        column: String,
        /// CRC in the directory.
        expected: u32,
        /// CRC of the column's bytes.
        found: u32,
    },
    /// A column holds a value that cannot be.
    #[error("column `{column}` of the index, row {row}: {problem}")]
    ColumnValue {
        /// Name of the column.
        column: String,
        /// Row, from 0.
        row: u64,
        /// What is wrong with the value.
        problem: &'static str,
    },
    /// The manifest is not JSON of the expected shape.
    #[error("the manifest is not what it should be: {0}")]
    ManifestSyntax(#[from] serde_json::Error),
    /// The manifest's own CRC is missing or does not match.
    #[error("CRC of the manifest: {}, computed {found:08x}", stored(.expected))]
    ManifestCrc {
        /// CRC in the manifest's last member; `None` where the manifest does not end in one as it must.
        expected: Option<u32>,
        /// CRC of the manifest's bytes, its own digits counted as `0`.
        found: u32,
    },
    /// A manifest of a later major version, or of something else.
    #[error("manifest version `{found}` is not supported: this reader knows version 1")]
    ManifestVersion {
        /// The version in the manifest.
        found: String,
    },
    /// A member of the manifest has a value that cannot be.
    #[error("the manifest's {member} `{value}`: {problem}")]
    ManifestValue {
        /// Which member.
        member: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

fn stored(crc: &Option<u32>) -> String {
    match crc {
        Some(crc) => format!("stored {crc:08x}"),
        None => "none stored where the last member must be".to_owned(),
    }
}

impl Error {
    /// The error's name in `format-spec.md`, the same in every reader.
    pub fn name(&self) -> &'static str {
        match self {
            Error::TruncatedFrame { .. } => "TruncatedFrame",
            Error::LengthCrc { .. } => "LengthCrc",
            Error::DataCrc { .. } => "DataCrc",
            Error::MalformedExample { .. } => "MalformedExample",
            Error::IndexTruncated { .. } => "IndexTruncated",
            Error::IndexMagic { .. } => "IndexMagic",
            Error::IndexVersion { .. } => "IndexVersion",
            Error::IndexFlags { .. } => "IndexFlags",
            Error::IndexHeaderCrc { .. } => "IndexHeaderCrc",
            Error::IndexDirectoryCrc { .. } => "IndexDirectoryCrc",
            Error::IndexLayout { .. } => "IndexLayout",
            Error::IndexPadding { .. } => "IndexPadding",
            Error::IndexColumn { .. } => "IndexColumn",
            Error::ColumnCrc { .. } => "ColumnCrc",
            Error::ColumnValue { .. } => "ColumnValue",
            Error::ManifestSyntax(_) => "ManifestSyntax",
            Error::ManifestCrc { .. } => "ManifestCrc",
            Error::ManifestVersion { .. } => "ManifestVersion",
            Error::ManifestValue { .. } => "ManifestValue",
        }
    }
}
