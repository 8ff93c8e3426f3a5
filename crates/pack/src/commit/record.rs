//! The record of a complete output: `.shardtool-result.json` in a folder that `reshard`, `merge`, `export` or `extract`
//! filled. It holds what the command was asked for, a checksum of the files' names and lengths, and what the command
//! reported. If the same command runs again, it finds its own result instead of a folder that is not empty.

use super::Directory;
use crate::Error;
use crate::error::PlanDifference;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use shardtool_format::checksum::{Crc32c, crc32c};
use shardtool_format::manifest::Manifest;
use shardtool_format::names;
use shardtool_read::Split;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The file of the record.
pub(crate) const RECORD: &str = ".shardtool-result.json";

const LISTING: &str = "listing";
const RESULT: &str = "result";
/// The program's version does not matter once the files are complete.
const CREATED_BY: &str = "created_by";

/// Returns the names of the splits in a folder that `export` filled, if it did, and the files are still those.
pub(crate) fn exported_splits(folder: &Path) -> Option<Vec<String>> {
    let record: Map<String, Value> = serde_json::from_slice(&std::fs::read(folder.join(RECORD)).ok()?).ok()?;
    let splits = record.get("splits").filter(|_| record.get("format") == Some(&json!("shardtool-export")))?;
    let splits: Vec<String> = serde_json::from_value(splits.clone()).ok()?;
    let listing = list(&Directory::open(folder).ok()??, |_| false, |_| {}).ok()??;
    (!splits.is_empty() && record.get(LISTING) == Some(&listing.to_json())).then_some(splits)
}

/// The inputs that determine the files that a command writes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request(Map<String, Value>);

impl Request {
    /// Describes a command that writes the records of these splits. Returns `None` if one is a bare file, whose contents
    /// are not known in advance.
    pub(crate) fn new(
        command: &str,
        splits: &[Split],
        options: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Option<Self> {
        if splits.iter().any(Split::is_bare) {
            return None;
        }
        let source = |split: &Split| {
            let (entry, records) = (split.entry(), split.len());
            format!("{records} records, {} bytes, fingerprint {:08x}", entry.bytes(), entry.fingerprint())
        };
        let without_splits = |split: &Split| {
            let conventions = Manifest { splits: vec![], created_by: String::new(), ..split.manifest().clone() };
            format!("{:08x}", crc32c(conventions.to_json().as_bytes()))
        };
        let mut files = Crc32c::new();
        for shard in splits.iter().flat_map(|split| &split.entry().shards) {
            files.update(shard.file.as_bytes());
            files.update(b"\0");
        }
        let members = [
            ("format", json!(format!("shardtool-{command}"))),
            ("version", json!(1)),
            (CREATED_BY, json!(concat!("shardtool ", env!("CARGO_PKG_VERSION")))),
            ("splits", splits.iter().map(Split::name).collect()),
            ("sources", splits.iter().map(source).collect()),
            ("manifests_crc32c", splits.iter().map(without_splits).collect()),
            ("shard_names_crc32c", json!(format!("{:08x}", files.value()))),
        ];
        Some(Request(members.into_iter().chain(options).map(|(name, value)| (name.to_owned(), value)).collect()))
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        to_json(&self.0)
    }
}

/// A record as it was read.
#[derive(Debug)]
pub(crate) struct Record(Map<String, Value>);

impl Record {
    /// Describes the complete output of a request: its files and what the command reported.
    pub(crate) fn new(request: &Request, listing: &Listing, result: impl Serialize) -> Self {
        let mut members = request.0.clone();
        members.insert(LISTING.to_owned(), listing.to_json());
        members.insert(RESULT.to_owned(), serde_json::to_value(result).expect("strings and numbers"));
        Record(members)
    }

    /// Parses a record. An invalid one matches no request.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Record(serde_json::from_slice(bytes).unwrap_or_default())
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        to_json(&self.0)
    }

    /// Returns whether the same kind of command wrote the files, and they are still those that it wrote.
    pub(crate) fn describes(&self, request: &Request, listing: &Listing) -> bool {
        self.0.get("format") == request.0.get("format") && self.0.get(LISTING) == Some(&listing.to_json())
    }

    /// Returns the first member in which `request` differs from the one that was recorded.
    pub(crate) fn difference(&self, request: &Request) -> Option<Box<PlanDifference>> {
        let ignored = |name: &str| matches!(name, LISTING | RESULT | CREATED_BY);
        let mut members = request.0.keys().chain(self.0.keys()).filter(|name| !ignored(name));
        let name = members.find(|name| self.0.get(*name) != request.0.get(*name))?;
        let show = |members: &Map<String, Value>| members.get(name).map_or("nothing".to_owned(), Value::to_string);
        let member = match name.as_str() {
            "manifests_crc32c" => "classes or features (CRC32C)",
            "shard_names_crc32c" => "shard names (CRC32C)",
            name => name,
        };
        Some(Box::new(PlanDifference { member: member.to_owned(), before: show(&self.0), now: show(&request.0) }))
    }

    /// Returns what the command reported; `None` if the record has something else.
    pub(crate) fn result<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.0.get(RESULT)?.clone()).ok()
    }
}

/// The files of an output: how many, and a checksum of their names and lengths and of a dataset's manifest.
pub(crate) struct Listing {
    files: u64,
    crc: Crc32c,
}

impl Listing {
    pub(crate) fn new() -> Self {
        Listing { files: 0, crc: Crc32c::new() }
    }

    /// Adds a file. Files are added in the same order whenever they are listed.
    pub(crate) fn add(&mut self, path: &Path, length: u64) {
        self.files += 1;
        self.crc.update(path.as_os_str().as_bytes());
        self.crc.update(b"\0");
        self.crc.update(&length.to_le_bytes());
    }

    /// Adds the contents of a dataset's manifest.
    pub(crate) fn add_manifest(&mut self, json: &[u8]) {
        self.crc.update(json);
    }

    fn to_json(&self) -> Value {
        json!({"files": self.files, "crc32c": format!("{:08x}", self.crc.value())})
    }
}

/// Lists the files of an output. Leaves out the record, and the names at the top for which `ignored` returns true. Calls
/// `each` with each path. Returns `None` if there is anything but files and folders, such as a link.
///
/// # Errors
/// [`DestinationError::Link`](crate::DestinationError), [`Error::Io`].
pub(super) fn list(
    folder: &Directory,
    ignored: impl Fn(&OsStr) -> bool,
    mut each: impl FnMut(&Path),
) -> Result<Option<Listing>, Error> {
    let mut listing = Listing::new();
    let mut plain = true;
    for entry in folder.entries()? {
        if entry.name == RECORD || ignored(&entry.name) {
            continue;
        }
        let path = Path::new(&entry.name);
        let mut add = |path: &Path, length: Option<u64>| {
            each(path);
            plain &= length.is_some();
            listing.add(path, length.unwrap_or(0));
        };
        match entry.is_folder {
            true => walk(&folder.folder(path)?, path, &mut add)?,
            false => add(path, folder.file_length(path)?),
        }
    }
    if let Some(json) = folder.read(names::MANIFEST)? {
        listing.add_manifest(&json);
    }
    Ok(plain.then_some(listing))
}

/// Calls `add` with the path and the length of each file in a folder, by folders in byte order of their names. Each
/// folder is opened once.
fn walk(folder: &Directory, path: &Path, add: &mut dyn FnMut(&Path, Option<u64>)) -> Result<(), Error> {
    for entry in folder.entries()? {
        let path = path.join(&entry.name);
        match entry.is_folder {
            true => walk(&folder.folder(&entry.name)?, &path, add)?,
            false => add(&path, folder.file_length(Path::new(&entry.name))?),
        }
    }
    Ok(())
}

fn to_json(members: &Map<String, Value>) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(members).expect("a map of JSON values");
    json.push(b'\n');
    json
}
