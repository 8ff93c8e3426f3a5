//! Reads a manifest: its CRC, then format and version, then everything else.

use super::{
    Companion, Companions, DIGITS, DType, Deleted, FOREIGN, FORMAT, FeatureType, FilePart, Foreign, Manifest,
    PRIVATE_PREFIX, Purged, PurgedKeys, TAIL, Tag, VERSIONS, Versions, View, ViewShard,
};
use crate::checksum::{self, Sha256};
use crate::{Error, Result};
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

impl Manifest {
    /// Parses a manifest and checks its CRC and values. Ignores unknown members.
    ///
    /// # Errors
    /// [`Error::ManifestCrc`], which is checked first, so that damage is not reported as a syntax error; then
    /// [`Error::ManifestSyntax`], [`Error::ManifestVersion`], [`Error::ManifestRequires`], [`Error::ManifestValue`].
    pub fn parse(json: &[u8]) -> Result<Self> {
        check_crc(json)?;
        Self::parse_unsealed(json)
    }

    /// Parses a manifest whose CRC may be wrong, since it was edited by hand; otherwise as [`Manifest::parse`].
    ///
    /// # Errors
    /// As [`Manifest::parse`], without [`Error::ManifestCrc`].
    pub fn parse_unsealed(json: &[u8]) -> Result<Self> {
        let head: Head = serde_json::from_slice(json).map_err(syntax)?;
        check_surrogates(json)?;
        if head.format != FORMAT || !is_version_1(&head.version) {
            return Err(Error::ManifestVersion { found: format!("{} {}", head.format, head.version) });
        }
        super::check::requires(&head.requires)?;
        let mut manifest: Manifest = serde_json::from_slice(json).map_err(syntax)?;
        manifest.requires = head.requires;
        if manifest.requires.iter().any(|required| required == VERSIONS) {
            manifest.take_versions(json)?;
        }
        if let Some(at) = manifest.requires.iter().position(|required| required == FOREIGN) {
            super::check::sorted("requirement", manifest.requires.iter().map(String::as_str))?;
            manifest.requires.remove(at);
            manifest.take_foreign(json)?;
        }
        if head.crcs > 1 {
            return Err(Error::ManifestSyntax { problem: "duplicate field `crc32c`".to_owned() });
        }
        for (name, value) in head.private {
            let problem = match value {
                Value::String(value) => match manifest.private.insert(name.clone(), value) {
                    None => continue,
                    Some(_) => "occurs twice",
                },
                _ => "is not a string",
            };
            return Err(Error::ManifestSyntax { problem: format!("the member `{name}` {problem}") });
        }
        manifest.check()?;
        Ok(manifest)
    }
}

impl Manifest {
    /// Reads the members that only a changed dataset has, which are unknown members in any other one.
    fn take_versions(&mut self, json: &[u8]) -> Result<()> {
        let Members { dataset_version, tags, purged, columns, splits, views } =
            serde_json::from_slice(json).map_err(syntax)?;
        let (mut listed, mut dropped) = (vec![], vec![]);
        for ColumnLine { name, stored, logical, dropped: is_dropped } in columns {
            match (stored, is_dropped) {
                (Some(stored), false) => {
                    let feature = FeatureType::try_from(Feature { name, stored, logical });
                    listed.push(feature.map_err(|problem| Error::ManifestSyntax { problem })?);
                }
                (None, true) => dropped.push(name),
                _ => {
                    let problem = format!("the column `{name}` has neither a type nor `\"dropped\": true`, or both");
                    return Err(Error::ManifestSyntax { problem });
                }
            }
        }
        for (split, lines) in self.splits.iter_mut().zip(splits) {
            for (shard, line) in split.shards.iter_mut().zip(lines.shards) {
                let deleted = line.deleted.map(DeletedLine::deleted);
                let columns = line.columns.into_iter();
                let columns = columns.map(|column| Companion { name: column.name.clone(), index: column.part() });
                shard.companions = Companions { deleted, columns: columns.collect(), of_split: None };
            }
        }
        let VersionLine { number, parent, command, message, author } = dataset_version.0;
        let stored = std::mem::take(&mut self.features);
        let purged = purged.map(Purged::from);
        let views = views.into_iter().map(View::from).collect();
        let versions = Versions {
            number,
            parent,
            command,
            message,
            author,
            tags,
            purged,
            stored,
            columns: listed,
            dropped,
            views,
        };
        self.features = versions.features();
        self.versions = Some(Box::new(versions));
        Ok(())
    }
}

impl Manifest {
    /// Reads the members of shards that are not files of the dataset, which are unknown members elsewhere.
    fn take_foreign(&mut self, json: &[u8]) -> Result<()> {
        let ForeignMembers { splits } = serde_json::from_slice(json).map_err(syntax)?;
        for (split, lines) in self.splits.iter_mut().zip(splits) {
            for (shard, ForeignLine { is_virtual, source }) in split.shards.iter_mut().zip(lines.shards) {
                if is_virtual == Some(false) {
                    let (value, problem) = (shard.file.clone(), "`virtual` is false: leave the member out");
                    return Err(Error::ManifestValue { member: "shard", value, problem });
                }
                shard.foreign = Foreign { is_virtual: is_virtual.is_some(), source };
            }
        }
        Ok(())
    }
}

/// The members of a dataset with virtual shards.
#[derive(Deserialize)]
struct ForeignMembers {
    #[serde(deserialize_with = "objects")]
    splits: Vec<ForeignSplit>,
}

#[derive(Deserialize)]
struct ForeignSplit {
    #[serde(deserialize_with = "objects")]
    shards: Vec<ForeignLine>,
}

#[derive(Deserialize)]
struct ForeignLine {
    #[serde(default, rename = "virtual", deserialize_with = "present")]
    is_virtual: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    source: Option<String>,
}

/// The members of a changed dataset.
#[derive(Deserialize)]
struct Members {
    dataset_version: Object<VersionLine>,
    #[serde(default, deserialize_with = "objects")]
    tags: Vec<Tag>,
    #[serde(default, deserialize_with = "object")]
    purged: Option<PurgedLine>,
    #[serde(default, deserialize_with = "objects")]
    columns: Vec<ColumnLine>,
    #[serde(deserialize_with = "objects")]
    splits: Vec<SplitLine>,
    #[serde(default, deserialize_with = "objects")]
    views: Vec<ViewLine>,
}

#[derive(Deserialize)]
struct VersionLine {
    number: u64,
    #[serde(deserialize_with = "crc")]
    parent: u32,
    command: String,
    #[serde(default, deserialize_with = "present")]
    message: Option<String>,
    #[serde(default, deserialize_with = "present")]
    author: Option<String>,
}

#[derive(Deserialize)]
struct PurgedLine {
    versions: Vec<u64>,
    #[serde(default, deserialize_with = "object")]
    keys: Option<PurgedKeysLine>,
}

#[derive(Deserialize)]
struct PurgedKeysLine {
    number: u64,
    file: String,
    offset: u64,
    bytes: u64,
    #[serde(deserialize_with = "crc")]
    crc32c: u32,
}

impl From<PurgedLine> for Purged {
    fn from(line: PurgedLine) -> Self {
        let keys = line.keys.map(|PurgedKeysLine { number, file, offset, bytes, crc32c }| PurgedKeys {
            number,
            list: FilePart { file, offset, bytes, crc32c },
        });
        Purged { versions: line.versions, keys }
    }
}

#[derive(Deserialize)]
struct ViewLine {
    name: String,
    split: String,
    #[serde(default, rename = "where")]
    conditions: Vec<String>,
    #[serde(deserialize_with = "objects")]
    shards: Vec<ViewShardLine>,
}

#[derive(Deserialize)]
struct ViewShardLine {
    file: String,
    #[serde(default, deserialize_with = "object")]
    absent: Option<DeletedLine>,
}

impl From<ViewLine> for View {
    fn from(ViewLine { name, split, conditions, shards }: ViewLine) -> Self {
        let shard = |line: ViewShardLine| ViewShard { file: line.file, absent: line.absent.map(DeletedLine::deleted) };
        View { name, split, conditions, shards: shards.into_iter().map(shard).collect() }
    }
}

#[derive(Deserialize)]
struct ColumnLine {
    name: String,
    #[serde(default, rename = "type", deserialize_with = "present")]
    stored: Option<String>,
    #[serde(default, deserialize_with = "present")]
    logical: Option<String>,
    #[serde(default)]
    dropped: bool,
}

#[derive(Deserialize)]
struct SplitLine {
    #[serde(deserialize_with = "objects")]
    shards: Vec<ShardLine>,
}

#[derive(Deserialize)]
struct ShardLine {
    #[serde(default, deserialize_with = "object")]
    deleted: Option<DeletedLine>,
    #[serde(default, deserialize_with = "objects")]
    columns: Vec<CompanionLine>,
}

#[derive(Deserialize)]
struct DeletedLine {
    rows: u64,
    file: String,
    offset: u64,
    bytes: u64,
    #[serde(deserialize_with = "crc")]
    crc32c: u32,
}

#[derive(Deserialize)]
struct CompanionLine {
    name: String,
    file: String,
    offset: u64,
    bytes: u64,
    #[serde(deserialize_with = "crc")]
    crc32c: u32,
}

impl DeletedLine {
    fn deleted(self) -> Deleted {
        Deleted { rows: self.rows, bitmap: self.part() }
    }

    fn part(self) -> FilePart {
        FilePart { file: self.file, offset: self.offset, bytes: self.bytes, crc32c: self.crc32c }
    }
}

impl CompanionLine {
    fn part(self) -> FilePart {
        FilePart { file: self.file, offset: self.offset, bytes: self.bytes, crc32c: self.crc32c }
    }
}

/// Reads a member that, if it is there, is not null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// As [`present`], of an object.
fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<T>, D::Error> {
    Object::deserialize(deserializer).map(|object| Some(object.0))
}

fn syntax(error: serde_json::Error) -> Error {
    Error::ManifestSyntax { problem: error.to_string() }
}

/// Returns whether a version is `1.N`: two decimal numbers without leading zeros.
fn is_version_1(version: &str) -> bool {
    let Some(("1", minor)) = version.split_once('.') else { return false };
    !minor.is_empty() && minor.bytes().all(|b| b.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'))
}

/// The members that decide whether the document is read, so that a later version is refused as such and not because of
/// its members; and private members, whose names are not known in advance.
#[derive(Default)]
struct Head {
    format: String,
    version: String,
    requires: Vec<String>,
    private: Vec<(String, Value)>,
    /// How often the member `crc32c` occurs. Its value has been checked.
    crcs: usize,
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<Head, A::Error> {
        let (mut format, mut version, mut requires, mut private, mut crcs) = (None, None, None, vec![], 0);
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            match &*name {
                "format" => once("format", &mut format, members.next_value()?)?,
                "version" => once("version", &mut version, members.next_value()?)?,
                "requires" => once("requires", &mut requires, members.next_value()?)?,
                _ if name.starts_with(PRIVATE_PREFIX) => private.push((name.into_owned(), members.next_value()?)),
                name => {
                    crcs += usize::from(name == "crc32c");
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        let (format, version) = (format.unwrap_or_default(), version.unwrap_or_default());
        Ok(Head { format, version, requires: requires.unwrap_or_default(), private, crcs })
    }
}

fn once<T, E: serde::de::Error>(name: &'static str, member: &mut Option<T>, value: T) -> std::result::Result<(), E> {
    match member.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

/// Reads an array of objects. (For structs alone, serde also accepts arrays of their members.)
pub(super) fn objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|object| object.0).collect())
}

/// Reads an object that may be absent, but not null.
pub(super) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<T>, D::Error> {
    Object::deserialize(deserializer).map(|object| Some(object.0))
}

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct OfMembers<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMembers<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> std::result::Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }
        deserializer.deserialize_map(OfMembers(PhantomData))
    }
}

/// Refuses escaped surrogates that are not in pairs, also in members that are ignored. The document is valid JSON
/// otherwise, so that each backslash begins an escape.
fn check_surrogates(json: &[u8]) -> Result<()> {
    let unit = |at: usize| {
        let digits = json.get(at..)?.strip_prefix(b"\\u")?.get(..4)?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while let Some(escape) = json.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        at += escape;
        let pair = [unit(at), unit(at + 6)].map(Option::unwrap_or_default);
        at += match pair {
            [0xd800..=0xdbff, 0xdc00..=0xdfff] => 12,
            [0xd800..=0xdfff, _] => {
                let problem = format!("a lone surrogate at offset {at}, which is not text");
                return Err(Error::ManifestSyntax { problem });
            }
            _ => 2,
        };
    }
    Ok(())
}

/// A feature as the manifest has it.
#[derive(Deserialize)]
pub(super) struct Feature {
    name: String,
    #[serde(rename = "type")]
    stored: String,
    logical: Option<String>,
}

impl TryFrom<Feature> for FeatureType {
    type Error = String;

    /// Resolves the type. A logical type that this version does not know is ignored: the values are what is stored.
    fn try_from(Feature { name, stored, logical }: Feature) -> std::result::Result<Self, String> {
        let known = |name: &str| DType::from_name(name).filter(|dtype| !dtype.is_logical());
        let dtype = known(&stored).ok_or_else(|| format!("unknown type `{stored}` of feature `{name}`"))?;
        let logical = logical.as_deref().and_then(DType::from_name).filter(|logical| logical.is_logical());
        match logical {
            Some(logical) if logical.stored() == dtype => Ok(FeatureType { name, dtype: logical }),
            Some(logical) => Err(format!("feature `{name}` of type {stored} has the logical type {}", logical.name())),
            None => Ok(FeatureType { name, dtype }),
        }
    }
}

/// Reads a CRC of a shard or an index.
pub(super) fn crc<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<u32, D::Error> {
    let digits = Cow::<'de, str>::deserialize(deserializer)?;
    checksum::parse_hex(digits.as_bytes())
        .ok_or_else(|| serde::de::Error::custom("a CRC is eight lower-case hex digits"))
}

/// Reads the SHA-256 of a shard.
pub(super) fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Sha256>, D::Error> {
    let digits = Cow::<'de, str>::deserialize(deserializer)?;
    let digest = Sha256::parse(&digits);
    digest.map(Some).ok_or_else(|| serde::de::Error::custom("a SHA-256 is 64 lower-case hex digits"))
}

/// Checks the CRC of the manifest, which covers all bytes with the CRC's own digits replaced by `0`.
fn check_crc(json: &[u8]) -> Result<()> {
    let digits = json
        .strip_suffix(TAIL.1.as_bytes())
        .and_then(|json| json.len().checked_sub(DIGITS))
        .filter(|at| json[..*at].strip_suffix(TAIL.0.as_bytes()).is_some_and(|before| before.ends_with(b"\n")));
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
