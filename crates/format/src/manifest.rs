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
//!     {"name": "image/class/label", "type": "int64"}
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

use crate::{Error, Result, checksum, names};
use serde::{Deserialize, Deserializer};
use std::collections::HashSet;
use std::fmt::Write;

/// Value of `"format"`.
const FORMAT: &str = "shardtool";
/// Value of `"version"` that [`Manifest::to_json`] writes. Readers refuse another major version.
const VERSION: &str = "1.0";
/// The last member: `"crc32c": "hhhhhhhh"`, then the end of the document.
const TAIL: (&str, &str) = ("  \"crc32c\": \"", "\"\n}\n");
const DIGITS: usize = checksum::HEX_DIGITS;

/// The contents of a manifest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Manifest {
    /// Program and version that wrote the manifest. Nothing depends on it.
    #[serde(default)]
    pub created_by: String,
    /// The feature that holds the image, if any.
    pub image: Option<String>,
    /// The integer feature that holds the class, if any.
    pub label: Option<String>,
    /// Class id = stored label − `label_offset`.
    pub label_offset: i64,
    /// All features that occur in records, in byte order of their names.
    pub features: Vec<FeatureType>,
    /// Class names, by class id. Empty if classes have no names.
    pub classes: Vec<String>,
    /// The splits, in byte order of their names.
    pub splits: Vec<Split>,
}

/// Name and type of a feature.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FeatureType {
    /// The feature's name.
    pub name: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: Kind,
}

/// The type of a feature's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Byte strings; text is UTF-8.
    Bytes,
    /// 32-bit floats.
    Float,
    /// 64-bit integers.
    Int64,
}

impl Kind {
    /// Returns the name in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bytes => "bytes",
            Kind::Float => "float",
            Kind::Int64 => "int64",
        }
    }
}

/// A split: a sequence of shards. Records are numbered from 0 through all shards.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Split {
    /// `train`, `validation` …
    pub name: String,
    /// Its shards, in order.
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
    #[serde(deserialize_with = "hex")]
    pub crc32c: u32,
    /// Length of the index, in bytes.
    pub index_bytes: u64,
    /// CRC32C of the whole index.
    #[serde(deserialize_with = "hex")]
    pub index_crc32c: u32,
}

impl Split {
    /// Returns the number of records in all shards.
    pub fn records(&self) -> u64 {
        self.shards.iter().map(|s| s.records).sum()
    }

    /// Returns the length of all shards in bytes.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|s| s.bytes).sum()
    }

    /// Computes the split's fingerprint: CRC32C over records (u64), bytes (u64) and CRC (u32) of each shard, little-endian.
    pub fn fingerprint(&self) -> u32 {
        let mut crc = checksum::Crc32c::new();
        for shard in &self.shards {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&shard.records.to_le_bytes());
            bytes[8..16].copy_from_slice(&shard.bytes.to_le_bytes());
            bytes[16..].copy_from_slice(&shard.crc32c.to_le_bytes());
            crc.update(&bytes);
        }
        crc.value()
    }
}

fn syntax(error: serde_json::Error) -> Error {
    Error::ManifestSyntax { problem: error.to_string() }
}

/// The members that identify the document. They are read first, so that a later version is refused as such and not
/// because of its members.
#[derive(Deserialize)]
struct Identity {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: String,
}

impl Manifest {
    /// Creates a manifest without splits, with the conventional feature names.
    pub fn new(created_by: &str) -> Self {
        Manifest {
            created_by: created_by.to_owned(),
            image: Some(names::IMAGE_ENCODED.to_owned()),
            label: Some(names::CLASS_LABEL.to_owned()),
            label_offset: 0,
            features: vec![],
            classes: vec![],
            splits: vec![],
        }
    }

    /// Returns whether records are opaque: bytes that are not parsed, since the manifest lists no features.
    pub fn is_opaque(&self) -> bool {
        self.features.is_empty()
    }

    /// Returns whether records have images: in a feature or, if records are opaque, as the records themselves.
    pub fn has_images(&self) -> bool {
        self.image.is_some() || self.is_opaque()
    }

    /// Returns the split of that name.
    pub fn split(&self, name: &str) -> Option<&Split> {
        self.splits.iter().find(|s| s.name == name)
    }

    /// Parses a manifest and checks its CRC and values. Ignores unknown members.
    ///
    /// # Errors
    /// [`Error::ManifestCrc`], which is checked first, so that damage is not reported as a syntax error; then
    /// [`Error::ManifestSyntax`], [`Error::ManifestVersion`], [`Error::ManifestValue`].
    pub fn parse(json: &[u8]) -> Result<Self> {
        check_crc(json)?;
        let identity: Identity = serde_json::from_slice(json).map_err(syntax)?;
        if identity.format != FORMAT || identity.version.split('.').next() != Some("1") {
            return Err(Error::ManifestVersion { found: format!("{} {}", identity.format, identity.version) });
        }
        let manifest: Manifest = serde_json::from_slice(json).map_err(syntax)?;
        manifest.validate()?;
        Ok(manifest)
    }

    fn validate(&self) -> Result<()> {
        let value = |member, value: &str, problem| Error::ManifestValue { member, value: value.to_owned(), problem };
        let mut files = HashSet::new();
        let total = |split: &Split| split.shards.iter().try_fold(0u64, |sum, s| sum.checked_add(s.records));
        for split in &self.splits {
            names::check_split_name(&split.name)?;
            if total(split).is_none_or(|n| n > i64::MAX as u64) {
                return Err(value("split", &split.name, "more records than a dataset can have"));
            }
            for shard in &split.shards {
                names::check_file_name("shard file", &shard.file)?;
                if !files.insert(shard.file.as_str()) {
                    return Err(value("shard file", &shard.file, "listed twice"));
                }
            }
        }
        let sorted = |names: &[&str]| names.windows(2).position(|w| w[0] >= w[1]);
        let splits: Vec<_> = self.splits.iter().map(|s| s.name.as_str()).collect();
        let features: Vec<_> = self.features.iter().map(|f| f.name.as_str()).collect();
        for (member, names) in [("split name", splits), ("feature name", features)] {
            if let Some(at) = sorted(&names) {
                return Err(value(member, names[at + 1], "not in byte order, or listed twice"));
            }
        }
        let mut classes = HashSet::new();
        match self.classes.iter().find(|c| !classes.insert(c.as_str())) {
            Some(class) => Err(value("class", class, "listed twice")),
            None => Ok(()),
        }
    }

    /// Returns the canonical JSON, with its CRC.
    pub fn to_json(&self) -> String {
        let text = |s: &str| serde_json::to_string(s).expect("a string is always JSON");
        let or_null = |s: &Option<String>| s.as_deref().map_or("null".to_owned(), text);
        let mut out = String::new();
        let mut member = |name: &str, value: &str| writeln!(out, "  \"{name}\": {value},").expect("into a String");
        member("format", &text(FORMAT));
        member("version", &text(VERSION));
        member("created_by", &text(&self.created_by));
        member("image", &or_null(&self.image));
        member("label", &or_null(&self.label));
        member("label_offset", &self.label_offset.to_string());
        let feature = |f: &FeatureType| format!("    {{\"name\": {}, \"type\": \"{}\"}}", text(&f.name), f.kind.name());
        member("features", &array(self.features.iter().map(feature), "  "));
        member("classes", &array(self.classes.iter().map(|c| format!("    {}", text(c))), "  "));
        let split = |s: &Split| {
            let shards = array(s.shards.iter().map(shard_line), "    ");
            format!("    {{\"name\": {}, \"shards\": {shards}}}", text(&s.name))
        };
        member("splits", &array(self.splits.iter().map(split), "  "));
        let json = format!("{{\n{out}{}{}{}", TAIL.0, "0".repeat(DIGITS), TAIL.1);
        let crc = checksum::crc32c(json.as_bytes());
        format!("{{\n{out}{}{crc:08x}{}", TAIL.0, TAIL.1)
    }
}

fn array(lines: impl Iterator<Item = String>, indent: &str) -> String {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n{indent}]", lines.join(",\n")) }
}

fn shard_line(s: &Shard) -> String {
    let file = serde_json::to_string(&s.file).expect("a string is always JSON");
    format!(
        "      {{\"file\": {file}, \"records\": {}, \"bytes\": {}, \"crc32c\": \"{:08x}\", \"index_bytes\": {}, \
         \"index_crc32c\": \"{:08x}\"}}",
        s.records, s.bytes, s.crc32c, s.index_bytes, s.index_crc32c
    )
}

fn hex<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<u32, D::Error> {
    let digits = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    checksum::parse_hex(digits.as_bytes())
        .ok_or_else(|| serde::de::Error::custom("a CRC is eight lower-case hex digits"))
}

/// Checks the CRC of the manifest, which covers all bytes with the CRC's own digits replaced by `0`.
fn check_crc(json: &[u8]) -> Result<()> {
    let digits = json
        .strip_suffix(TAIL.1.as_bytes())
        .and_then(|json| json.len().checked_sub(DIGITS))
        .filter(|at| json[..*at].ends_with(TAIL.0.as_bytes()));
    let mut crc = checksum::Crc32c::new();
    let expected = match digits {
        Some(at) => {
            crc.update(&json[..at]);
            crc.update(&[b'0'; DIGITS]);
            crc.update(&json[at + DIGITS..]);
            checksum::parse_hex(&json[at..at + DIGITS])
        }
        None => {
            crc.update(json);
            None
        }
    };
    let found = crc.value();
    if expected == Some(found) { Ok(()) } else { Err(Error::ManifestCrc { expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let shard = |file: &str, records| Shard {
            file: file.to_owned(),
            records,
            bytes: 100,
            crc32c: 0xabc,
            index_bytes: 64,
            index_crc32c: u32::MAX,
        };
        Manifest {
            classes: vec!["cat \"tom\"".to_owned(), "dög".to_owned()],
            features: vec![FeatureType { name: "image/class/label".to_owned(), kind: Kind::Int64 }],
            splits: vec![
                Split { name: "train".to_owned(), shards: vec![shard("train-00000.tfrecord", 3), shard("b", 4)] },
                Split { name: "validation".to_owned(), shards: vec![] },
            ],
            ..Manifest::new("test 1.0")
        }
    }

    /// Returns the manifest's bytes with `from` replaced and the CRC corrected.
    fn forged(from: &str, to: &str) -> Vec<u8> {
        let json = example().to_json();
        assert!(json.contains(from), "{from}");
        let (body, _) = json.split_at(json.len() - TAIL.1.len() - DIGITS);
        let body = body.replacen(from, to, 1);
        let crc = checksum::crc32c(format!("{body}00000000{}", TAIL.1).as_bytes());
        format!("{body}{crc:08x}{}", TAIL.1).into_bytes()
    }

    #[test]
    fn parses_what_it_writes() {
        let json = example().to_json();
        assert_eq!(Manifest::parse(json.as_bytes()).unwrap(), example());
        assert_eq!(example().splits[0].records(), 7);
    }

    #[test]
    fn detects_every_flipped_bit_and_every_truncation() {
        let good = example().to_json().into_bytes();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Manifest::parse(&bad), Err(Error::ManifestCrc { .. })), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(matches!(Manifest::parse(&good[..cut]), Err(Error::ManifestCrc { .. })), "cut {cut}");
        }
    }

    #[test]
    fn refuses_invalid_manifests_with_the_right_error() {
        for (from, to, name) in [
            ("\"1.0\"", "\"2.0\"", "ManifestVersion"),
            ("\"shardtool\"", "\"tar\"", "ManifestVersion"),
            ("\"train-00000.tfrecord\"", "\"../train\"", "ManifestValue"),
            ("\"train-00000.tfrecord\"", "\"b\"", "ManifestValue"),
            ("\"train\"", "\"zebra\"", "ManifestValue"),
            ("\"train\"", "\"a/b\"", "ManifestValue"),
            ("\"dög\"", "\"cat \\\"tom\\\"\"", "ManifestValue"),
            ("00000abc", "00000ABC", "ManifestSyntax"),
            ("\"records\": 3", "\"records\": -3", "ManifestSyntax"),
            ("\"records\": 3", "\"records\": 9223372036854775807", "ManifestValue"),
            ("int64", "int32", "ManifestSyntax"),
            ("\"splits\"", "\"spoons\"", "ManifestSyntax"),
        ] {
            assert_eq!(Manifest::parse(&forged(from, to)).unwrap_err().damage().name(), name, "{from} -> {to}");
        }
    }

    #[test]
    fn accepts_unknown_members_and_minor_versions() {
        assert_eq!(Manifest::parse(&forged("\"1.0\"", "\"1.7\"")).unwrap(), example());
        assert_eq!(Manifest::parse(&forged("\"image\":", "\"later\": [1, {}], \"image\":")).unwrap(), example());
    }

    /// The expected value follows from the definition: three u64/u64/u32 rows of 20 bytes.
    #[test]
    fn fingerprint_covers_counts_lengths_and_crcs() {
        let split = &example().splits[0];
        let mut bytes = vec![];
        for records in [3u64, 4] {
            bytes.extend([records.to_le_bytes(), 100u64.to_le_bytes()].concat());
            bytes.extend(0xabcu32.to_le_bytes());
        }
        assert_eq!(split.fingerprint(), checksum::crc32c(&bytes));
    }
}
