use crate::Damage;
use thiserror::Error;

/// Result of reading a structure of the format.
pub type Result<T> = std::result::Result<T, Error>;

/// Damage in the bytes of a dataset, with the values that show it. Offsets are bytes from the start of the file unless
/// said otherwise.
///
/// [`Error::damage`] returns the kind, whose name is the same in `format-spec.md`, the fixtures and every reader.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The file ends inside a frame.
    #[error("truncated frame at byte {offset}: {needed} bytes needed, {found} left")]
    TruncatedFrame {
        /// Offset of the frame.
        offset: u64,
        /// Length of the whole frame in bytes, or its minimum if the file ends inside the header.
        needed: u64,
        /// Bytes from the frame's start to the end of the file.
        found: u64,
    },
    /// The CRC of a frame's length does not match: the length cannot be trusted.
    #[error("length CRC of the frame at byte {offset}: stored {expected:08x}, computed {found:08x}")]
    LengthCrc {
        /// Offset of the frame.
        offset: u64,
        /// Masked CRC in the file.
        expected: u32,
        /// Masked CRC of the length in the file.
        found: u32,
    },
    /// The CRC of a frame's data does not match.
    #[error("data CRC of the frame at byte {offset}: stored {expected:08x}, computed {found:08x}")]
    DataCrc {
        /// Offset of the frame.
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
        /// What is wrong there.
        problem: &'static str,
    },
    /// An index is shorter than its header says.
    #[error("truncated index: {needed} bytes expected, {found} found")]
    IndexTruncated {
        /// Length that the header needs or states, in bytes.
        needed: u64,
        /// Length of the file in bytes.
        found: u64,
    },
    /// An index does not begin with the magic bytes.
    #[error("{}", index_magic(.found))]
    IndexMagic {
        /// The file's first eight bytes.
        found: [u8; 8],
    },
    /// An index of a later major version.
    #[error("unsupported index version {found}: this reader supports version 1")]
    IndexVersion {
        /// Major version in the file.
        found: u16,
    },
    /// An index requires features that this reader does not support.
    #[error(
        "the index requires features that this reader does not support (flags {unknown:#x}); use a newer shardtool"
    )]
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
    #[error("inconsistent directory of the index at byte {offset}: {problem}")]
    IndexLayout {
        /// Offset of the inconsistent entry or part.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Padding in an index is not zero.
    #[error("nonzero padding of the index at byte {offset}")]
    IndexPadding {
        /// Offset of the first byte that is not zero.
        offset: u64,
    },
    /// A required column is absent or has another type.
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
    /// A column holds an impossible value.
    #[error("column `{column}` of the index, row {row}: {problem}")]
    ColumnValue {
        /// Name of the column.
        column: String,
        /// Row, from 0.
        row: u64,
        /// What is wrong with the value.
        problem: &'static str,
    },
    /// A bitmap of deleted rows that is not the one that the manifest describes.
    #[error("bitmap of deleted rows: {problem}")]
    BitmapValue {
        /// What is wrong with it, with the expected and the found value.
        problem: String,
    },
    /// The manifest is not JSON of the expected shape.
    #[error("invalid manifest: {problem}")]
    ManifestSyntax {
        /// What is wrong, with line and column.
        problem: String,
    },
    /// The manifest's own CRC is missing or does not match.
    #[error(
        "CRC of the manifest: {}, computed {found:08x} (if you edited it, `shardtool repair --reseal` checks it against \
         the shards and writes its CRC)",
        stored(.expected)
    )]
    ManifestCrc {
        /// CRC in the manifest's last member; `None` if the manifest does not end in that member.
        expected: Option<u32>,
        /// CRC of the manifest's bytes, its own digits counted as `0`.
        found: u32,
    },
    /// A manifest of a later major version, or of something else.
    #[error("unsupported manifest version `{found}`: this reader supports version 1")]
    ManifestVersion {
        /// The version in the manifest.
        found: String,
    },
    /// A manifest requires something of its readers that this reader does not support.
    #[error("the manifest requires `{unknown}`, which this reader does not support; use a newer shardtool")]
    ManifestRequires {
        /// The first unknown requirement.
        unknown: String,
    },
    /// A member of the manifest has an impossible value.
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

fn index_magic(found: &[u8; 8]) -> String {
    match *found {
        crate::index::MAGIC_0_1 => "an index of version 0.1; run `shardtool repair`".to_owned(),
        _ => format!("not an index: it begins with {found:02x?}"),
    }
}

fn stored(crc: &Option<u32>) -> String {
    match crc {
        Some(crc) => format!("stored {crc:08x}"),
        None => "not stored in the last member".to_owned(),
    }
}

impl Error {
    /// Returns the kind of damage, as named in `format-spec.md`.
    pub fn damage(&self) -> Damage {
        match self {
            Error::TruncatedFrame { .. } => Damage::TruncatedFrame,
            Error::LengthCrc { .. } => Damage::LengthCrc,
            Error::DataCrc { .. } => Damage::DataCrc,
            Error::MalformedExample { .. } => Damage::MalformedExample,
            Error::IndexTruncated { .. } => Damage::IndexTruncated,
            Error::IndexMagic { .. } => Damage::IndexMagic,
            Error::IndexVersion { .. } => Damage::IndexVersion,
            Error::IndexFlags { .. } => Damage::IndexFlags,
            Error::IndexHeaderCrc { .. } => Damage::IndexHeaderCrc,
            Error::IndexDirectoryCrc { .. } => Damage::IndexDirectoryCrc,
            Error::IndexLayout { .. } => Damage::IndexLayout,
            Error::IndexPadding { .. } => Damage::IndexPadding,
            Error::IndexColumn { .. } => Damage::IndexColumn,
            Error::ColumnCrc { .. } => Damage::ColumnCrc,
            Error::ColumnValue { .. } => Damage::ColumnValue,
            Error::BitmapValue { .. } => Damage::BitmapValue,
            Error::ManifestSyntax { .. } => Damage::ManifestSyntax,
            Error::ManifestCrc { .. } => Damage::ManifestCrc,
            Error::ManifestVersion { .. } => Damage::ManifestVersion,
            Error::ManifestRequires { .. } => Damage::ManifestRequires,
            Error::ManifestValue { .. } => Damage::ManifestValue,
        }
    }
}
