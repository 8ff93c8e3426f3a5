//! The manifest, `dataset.json`: canonical JSON with a fixed order of members, LF line ends and no timestamps. Its last
//! member is the CRC32C of the file.
//!
//! ```json
//! {
//!   "format": "shardtool",
//!   "version": "1.0",
//!   "created_by": "shardtool 0.1.0",
//!   "image": "image/encoded",
//!   "label": "image/class/label",
//!   "label_offset": 0,
//!   "features": [
//!     {"name": "image/class/label", "type": "int64"},
//!     {"name": "image/encoded", "type": "bytes"}
//!   ],
//!   "classes": [
//!     "cat"
//!   ],
//!   "splits": [
//!     {"name": "train", "shards": [
//!       {"file": "train-00000.tfrecord", "records": 1, "bytes": 20, "crc32c": "0123abcd", "index_bytes": 448, "index_crc32c": "89abcdef"}
//!     ]}
//!   ],
//!   "crc32c": "00112233"
//! }
//! ```

mod check;
mod foreign;
mod keypoints;
mod parse;
mod sides;
#[cfg(test)]
mod tests;
mod versions;
mod write;

pub use check::check_tag;
pub use foreign::{FOREIGN, Foreign};
pub use keypoints::Keypoints;
pub use sides::{SidesError, flip_index};
pub use versions::{
    Companion, Companions, Deleted, FilePart, HMAC_BYTES, Purged, PurgedKeys, Tag, VERSIONS, Versions, View, ViewShard,
};

use crate::array::array_name;
use crate::checksum::{self, Sha256};
use crate::example::Message;
use crate::{Error, Result, names};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of `"format"`.
const FORMAT: &str = "shardtool";
/// Values of `"version"` that [`Manifest::to_json`] writes: the second for manifests with logical types, keypoints, versions or
/// virtual shards. Readers refuse another major version.
const FORMAT_VERSIONS: [&str; 2] = ["1.0", "1.1"];
/// The last member: `"crc32c": "hhhhhhhh"`, then the end of the document.
const TAIL: (&str, &str) = ("  \"crc32c\": \"", "\"\n}\n");
const DIGITS: usize = checksum::HEX_DIGITS;
/// Bytes of a manifest at most that this library reads: 1 GiB. A dataset of 10^9 photographs has a manifest of some 100 MB.
pub const MAX_BYTES: u64 = 1 << 30;

/// Checks the length of a manifest's file before it is read.
///
/// # Errors
/// [`Error::ManifestSyntax`].
pub fn check_length(bytes: u64) -> Result<()> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Error::ManifestSyntax { problem: format!("{bytes} bytes; this reader reads at most {MAX_BYTES}") })
}

/// Returns the CRC that a manifest's last member states: the name of its version; `None` if it does not end in one.
pub fn own_crc(json: &[u8]) -> Option<u32> {
    let end = json.strip_suffix(TAIL.1.as_bytes())?;
    checksum::parse_hex(&end[end.len().checked_sub(DIGITS)?..])
}

/// Requirement of datasets whose records are `tf.train.SequenceExample`s: field 2 of a record is read.
pub const SEQUENCE_EXAMPLE: &str = "sequence-example";
/// Prefix of the names of private members.
pub const PRIVATE_PREFIX: &str = "x-";

/// The contents of a manifest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Manifest {
    /// What readers must support, in byte order, besides [`FOREIGN`]: [`SEQUENCE_EXAMPLE`], [`VERSIONS`].
    #[serde(skip)]
    pub requires: Vec<String>,
    /// Program and version that wrote the manifest. Nothing depends on it.
    #[serde(default)]
    pub created_by: String,
    /// The feature that holds the image, if any.
    pub image: Option<String>,
    /// The integer feature that holds the class, if any.
    pub label: Option<String>,
    /// Class id = stored label − `label_offset`.
    pub label_offset: i64,
    /// All features that occur in records of this version, in byte order of their names.
    #[serde(deserialize_with = "parse::objects")]
    pub features: Vec<FeatureType>,
    /// Class names, by class id. Empty if classes have no names.
    pub classes: Vec<String>,
    /// What the keypoints of objects are, if it is known.
    #[serde(default, deserialize_with = "parse::given")]
    pub keypoints: Option<Keypoints>,
    /// The splits, in byte order of their names.
    #[serde(deserialize_with = "parse::objects")]
    pub splits: Vec<Split>,
    /// What the manifest of a changed dataset has besides.
    #[serde(skip)]
    pub versions: Option<Box<Versions>>,
    /// Private members by name: each name begins with [`PRIVATE_PREFIX`]. Programs that write a manifest again keep them.
    #[serde(skip)]
    pub private: BTreeMap<String, String>,
}

/// Name and type of a feature.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "parse::Feature")]
pub struct FeatureType {
    /// The feature's name.
    pub name: String,
    /// The type of its values.
    pub dtype: DType,
}

/// The type of a feature's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// Byte strings; text is UTF-8.
    Bytes,
    /// 32-bit floats.
    Float,
    /// 64-bit integers.
    Int64,
    /// 64-bit floats: a logical type, stored as byte strings of eight bytes, little-endian.
    Float64,
    /// Unsigned 64-bit integers: a logical type, stored as [`DType::Float64`] is.
    Uint64,
}

impl DType {
    /// All types.
    pub const ALL: [DType; 5] = [DType::Bytes, DType::Float, DType::Int64, DType::Float64, DType::Uint64];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bytes => "bytes",
            DType::Float => "float",
            DType::Int64 => "int64",
            DType::Float64 => "float64",
            DType::Uint64 => "uint64",
        }
    }

    /// Returns the type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Returns the type that the values have in a `tf.train.Example`: byte strings for a logical type.
    pub fn stored(self) -> Self {
        match self {
            DType::Float64 | DType::Uint64 => DType::Bytes,
            stored => stored,
        }
    }

    /// Returns whether it is a logical type: the values have another type in a `tf.train.Example`.
    pub fn is_logical(self) -> bool {
        self.stored() != self
    }
}

/// A split: a sequence of shards. Records are numbered from 0 through all shards.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Split {
    /// `train`, `validation` …
    pub name: String,
    /// Its shards, in order.
    #[serde(deserialize_with = "parse::objects")]
    pub shards: Vec<Shard>,
}

/// A shard and its index: the expected lengths and CRCs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Shard {
    /// Plain file name; the shard lies next to the manifest.
    pub file: String,
    /// Records in the shard; may be 0.
    pub records: u64,
    /// Length of the shard, in bytes.
    pub bytes: u64,
    /// CRC32C of the whole shard.
    #[serde(deserialize_with = "parse::crc")]
    pub crc32c: u32,
    /// Length of the index, in bytes.
    pub index_bytes: u64,
    /// CRC32C of the whole index.
    #[serde(deserialize_with = "parse::crc")]
    pub index_crc32c: u32,
    /// SHA-256 of the whole shard, if the writer computed it.
    #[serde(default, deserialize_with = "parse::sha256")]
    pub sha256: Option<Sha256>,
    /// Deleted rows, and columns that lie outside of the index.
    #[serde(skip)]
    pub companions: Companions,
    /// Where its bytes lie, if they are not a file of the dataset.
    #[serde(skip)]
    pub foreign: Foreign,
}

impl Split {
    /// Returns the number of records in all shards, without deleted ones.
    pub fn records(&self) -> u64 {
        self.shards.iter().map(Shard::live_records).sum()
    }

    /// Returns the length of all shards in bytes.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|s| s.bytes).sum()
    }

    /// Computes the split's fingerprint: CRC32C over records (u64), bytes (u64) and CRC (u32) of each shard, little-endian; then, if a
    /// shard has companions, over those of each shard.
    pub fn fingerprint(&self) -> u32 {
        let mut crc = checksum::Crc32c::new();
        for shard in &self.shards {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&shard.records.to_le_bytes());
            bytes[8..16].copy_from_slice(&shard.bytes.to_le_bytes());
            bytes[16..].copy_from_slice(&shard.crc32c.to_le_bytes());
            crc.update(&bytes);
        }
        if self.shards.iter().any(|shard| !shard.companions.is_empty()) {
            self.shards.iter().for_each(|shard| shard.companions.add_to(&mut crc));
        }
        crc.value()
    }
}

impl Manifest {
    /// Creates a manifest without features and splits, with the conventional names of image and label.
    pub fn new(created_by: &str) -> Self {
        Manifest {
            requires: vec![],
            created_by: created_by.to_owned(),
            image: Some(names::IMAGE_ENCODED.to_owned()),
            label: Some(names::CLASS_LABEL.to_owned()),
            label_offset: 0,
            features: vec![],
            classes: vec![],
            keypoints: None,
            splits: vec![],
            versions: None,
            private: BTreeMap::new(),
        }
    }

    /// Returns whether records are opaque: bytes that are not parsed, since the manifest lists no features.
    pub fn is_opaque(&self) -> bool {
        self.stored_features().is_empty()
    }

    /// Returns the message that records are, unless they are opaque.
    pub fn message(&self) -> Message {
        match self.requires.iter().any(|required| required == SEQUENCE_EXAMPLE) {
            true => Message::SequenceExample,
            false => Message::Example,
        }
    }

    /// Returns whether records have images: in a feature or, if records are opaque, as the records themselves.
    pub fn has_images(&self) -> bool {
        self.image.is_some() || self.is_opaque()
    }

    /// Returns whether records may have arrays: the members of one are listed features.
    pub fn has_arrays(&self) -> bool {
        let listed = |name: &str| self.features.iter().any(|feature| feature.name == name);
        self.features.iter().any(|feature| array_name(&feature.name, listed).is_some())
    }

    /// Returns the type of a feature; `None` if it is not listed.
    pub fn dtype(&self, feature: &str) -> Option<DType> {
        self.features.iter().find(|listed| listed.name == feature).map(|listed| listed.dtype)
    }

    /// Returns the split of that name.
    pub fn split(&self, name: &str) -> Option<&Split> {
        self.splits.iter().find(|s| s.name == name)
    }
}
