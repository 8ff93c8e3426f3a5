//! The names of damage, the same in every reader.

use std::fmt;
use std::str::FromStr;

macro_rules! damage {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One kind of damage: stored bytes that fail a check of `format-spec.md` (section *Errors*).
        ///
        /// This is the only list of these names in the workspace. [`crate::Error`] gives the kinds that a slice of bytes
        /// can show; the reader finds the others, which concern files and images.
        ///
        /// ```
        /// use shardtool_format::Damage;
        /// assert_eq!(Damage::DataCrc.name(), "DataCrc");
        /// assert_eq!("DataCrc".parse(), Ok(Damage::DataCrc));
        /// assert!("datacrc".parse::<Damage>().is_err());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Damage {
            $($(#[$doc])* $name,)*
        }

        impl Damage {
            /// Every kind, in the order of the specification's tables.
            pub const ALL: &[Damage] = &[$(Damage::$name,)*];

            /// Returns the name in `format-spec.md`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Damage::$name => stringify!($name),)*
                }
            }
        }
    };
}

damage! {
    /// The file ends inside a frame.
    TruncatedFrame,
    /// The CRC of a frame's length does not match.
    LengthCrc,
    /// The CRC of a frame's data does not match.
    DataCrc,
    /// The data is not a `tf.train.Example`, in a dataset whose manifest lists features.
    MalformedExample,
    /// The index is shorter than its header, or than its header says.
    IndexTruncated,
    /// The index begins with other bytes.
    IndexMagic,
    /// The index has another major version.
    IndexVersion,
    /// The index requires a feature that this reader does not support.
    IndexFlags,
    /// The CRC of the index's header does not match.
    IndexHeaderCrc,
    /// The CRC of the index's directory does not match.
    IndexDirectoryCrc,
    /// The directory of the index is inconsistent.
    IndexLayout,
    /// Padding in the index is not zero.
    IndexPadding,
    /// A required column of the index is absent, or a column has another kind, element or validity than it must.
    IndexColumn,
    /// The CRC of a column does not match.
    ColumnCrc,
    /// The offsets or the validity bitmap of a column are inconsistent, a null row has a value, or value ranges are
    /// not whole.
    ColumnValue,
    /// A bitmap of deleted rows has an unused bit that is not 0, or another number of rows than the manifest says.
    BitmapValue,
    /// The manifest is not JSON, or members are absent, repeated or of another type.
    ManifestSyntax,
    /// The manifest does not end in its CRC, or the CRC does not match.
    ManifestCrc,
    /// The manifest has another format or major version.
    ManifestVersion,
    /// The manifest requires something that this reader does not support.
    ManifestRequires,
    /// A member of the manifest has an impossible value.
    ManifestValue,
    /// The manifest lists a shard that does not exist.
    MissingShard,
    /// A shard's index does not exist.
    MissingIndex,
    /// A shard has another length than the manifest says.
    ShardLength,
    /// A shard has another CRC than the manifest says.
    ShardCrc,
    /// A shard has another SHA-256 than the manifest says.
    ShardSha256,
    /// An index has another length or CRC than the manifest says.
    IndexCrc,
    /// A file of columns or bitmaps does not exist, or ends before one that the manifest lists.
    MissingCompanion,
    /// A column or bitmap has another CRC than the manifest says.
    CompanionCrc,
    /// Manifest, index and frames do not agree on the number of records.
    RecordCount,
    /// A source file of a virtual shard does not exist, or is not a regular file.
    MissingSource,
    /// A source file of a virtual shard has another length than when it was described.
    SourceLength,
    /// A source file of a virtual shard that the user did not allow. Not damage of stored bytes: it concerns the whole dataset.
    ForeignSource,
    /// The index contradicts the manifest or a record.
    IndexMismatch,
    /// The shard is a gzip or zlib file.
    CompressedRecords,
    /// Raw pixels are not height × width × 3 bytes.
    PixelsLength,
    /// An image cannot be decoded.
    ImageDecode,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of parsing a [`Damage`] from text that is not one of the names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a damage")]
pub struct UnknownDamage(String);

impl FromStr for Damage {
    type Err = UnknownDamage;

    fn from_str(name: &str) -> Result<Self, UnknownDamage> {
        let found = Damage::ALL.iter().copied().find(|damage| damage.name() == name);
        found.ok_or_else(|| UnknownDamage(name.to_owned()))
    }
}
