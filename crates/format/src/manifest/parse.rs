//! Reads a manifest: its CRC, then format and version, then everything else.

use super::{DIGITS, FORMAT, Manifest, PRIVATE_PREFIX, TAIL};
use crate::checksum::{self, Sha256};
use crate::{Error, Result};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

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
        if head.format != FORMAT || !is_version_1(&head.version) {
            return Err(Error::ManifestVersion { found: format!("{} {}", head.format, head.version) });
        }
        super::check::requires(&head.requires)?;
        let mut manifest: Manifest = serde_json::from_slice(json).map_err(syntax)?;
        manifest.requires = head.requires;
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
        let (mut format, mut version, mut requires, mut private) = (None, None, None, vec![]);
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            match &*name {
                "format" => once("format", &mut format, members.next_value()?)?,
                "version" => once("version", &mut version, members.next_value()?)?,
                "requires" => once("requires", &mut requires, members.next_value()?)?,
                _ if name.starts_with(PRIVATE_PREFIX) => private.push((name.into_owned(), members.next_value()?)),
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        let (format, version) = (format.unwrap_or_default(), version.unwrap_or_default());
        Ok(Head { format, version, requires: requires.unwrap_or_default(), private })
    }
}

fn once<T, E: serde::de::Error>(name: &'static str, member: &mut Option<T>, value: T) -> std::result::Result<(), E> {
    match member.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
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
