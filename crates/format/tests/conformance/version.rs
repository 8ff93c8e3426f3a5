//! What a change adds to a dataset: companions, bitmaps of deleted rows, and members of the manifest.

use crate::bytes::crc::crc32c;
use crate::bytes::index::{self, Column, Header};
use crate::bytes::manifest::{self, string};
use crate::dataset::{Dataset, Files, Shard};

/// The version of a changed dataset.
#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) number: u64,
    /// The digits that end the manifest of the version before.
    pub(crate) parent: String,
    pub(crate) command: &'static str,
    /// `message` or `author`, and its value.
    pub(crate) given: Vec<(&'static str, &'static str)>,
    pub(crate) tags: Vec<(&'static str, u64)>,
    /// The versions that a purge has changed, as an array; the number of purged keys, and the list of their HMACs.
    pub(crate) purged: Option<(&'static str, u64, Part)>,
    /// In byte order of the features.
    pub(crate) columns: Vec<(&'static str, Change)>,
    /// The manifests of earlier versions, by path.
    pub(crate) earlier: Files,
}

/// What became of a feature.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// Its values lie in companions; its type.
    Column(&'static str),
    Dropped,
}

/// A part of a file in `_columns`.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) file: &'static str,
    pub(crate) offset: usize,
    pub(crate) bytes: Vec<u8>,
}

/// A column that takes the place of a feature.
#[derive(Clone)]
pub(crate) struct Companion {
    pub(crate) name: String,
    pub(crate) part: Part,
}

/// The bitmap of the deleted rows of a shard.
#[derive(Clone)]
pub(crate) struct Deleted {
    pub(crate) rows: u64,
    pub(crate) part: Part,
}

impl Version {
    /// The version after `before`, which gets its manifest as an earlier one.
    pub(crate) fn after(before: &Dataset, command: &'static str) -> Self {
        let manifest = before.manifest();
        let (number, mut earlier) =
            before.version.as_ref().map_or((1, Files::new()), |version| (version.number, version.earlier.clone()));
        let digits = manifest[manifest.len() - "hhhhhhhh\"\n}\n".len()..][..8].to_vec();
        let parent = String::from_utf8(digits).expect("digits");
        earlier.insert(format!("_versions/{number:06}.json"), manifest);
        Version {
            number: number + 1,
            parent,
            command,
            given: vec![],
            tags: vec![],
            purged: None,
            columns: vec![],
            earlier,
        }
    }

    pub(crate) fn members(&self) -> manifest::Version<'_> {
        manifest::Version {
            number: self.number,
            parent: &self.parent,
            command: self.command,
            given: &self.given,
            purged: self.purged.as_ref().map(|(versions, number, list)| {
                format!("{{\"versions\": {versions}, \"keys\": {{\"number\": {number}, {}}}}}", list.members())
            }),
            tags: &self.tags,
            columns: self
                .columns
                .iter()
                .map(|(name, change)| match change {
                    Change::Column(kind) => (*name, Some(*kind)),
                    Change::Dropped => (*name, None),
                })
                .collect(),
        }
    }
}

impl Part {
    /// Puts the part in its file. Bytes that belong to no part are not zero, since no reader reads them.
    pub(crate) fn add_to(&self, files: &mut Files) {
        let file = files.entry(format!("_columns/{}", self.file)).or_default();
        let end = self.offset + self.bytes.len();
        file.resize(file.len().max(end), 0xff);
        file[self.offset..end].copy_from_slice(&self.bytes);
    }

    /// Returns the members that say where the part lies.
    fn members(&self) -> String {
        let Part { file, offset, bytes } = self;
        let (length, crc) = (bytes.len(), crc32c(bytes));
        format!("\"file\": {}, \"offset\": {offset}, \"bytes\": {length}, \"crc32c\": \"{crc:08x}\"", string(file))
    }
}

impl Companion {
    /// A companion of a shard with one column.
    pub(crate) fn new(shard: &Shard, file: &'static str, offset: usize, column: Column) -> Self {
        Companion::of_columns(shard, file, offset, &[column])
    }

    /// A companion with any columns; the first one gives the name.
    pub(crate) fn of_columns(shard: &Shard, file: &'static str, offset: usize, columns: &[Column]) -> Self {
        let name = String::from_utf8(columns[0].name.clone()).expect("UTF-8");
        let bytes = index::file(&Header { required_flags: 1, ..shard.header() }, columns);
        Companion { name, part: Part { file, offset, bytes } }
    }

    /// Returns the name of the feature.
    pub(crate) fn feature(&self) -> &str {
        self.name.split_once(':').expect("a prefix").1
    }
}

impl Deleted {
    /// The bitmap of these rows of a shard.
    pub(crate) fn new(shard: &Shard, file: &'static str, offset: usize, rows: &[usize]) -> Self {
        let mut bytes = vec![0; shard.samples.len().div_ceil(8)];
        rows.iter().for_each(|row| bytes[row / 8] |= 1 << (row % 8));
        Deleted { rows: rows.len() as u64, part: Part { file, offset, bytes } }
    }
}

/// Returns the members of a shard that has companions, each after a comma.
pub(crate) fn members(deleted: Option<&Deleted>, companions: &[Companion]) -> String {
    let deleted = deleted.map(|d| format!(", \"deleted\": {{\"rows\": {}, {}}}", d.rows, d.part.members()));
    let column = |c: &Companion| format!("{{\"name\": {}, {}}}", string(&c.name), c.part.members());
    let columns: Vec<String> = companions.iter().map(column).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(", \"columns\": [{}]", columns.join(", ")) };
    deleted.unwrap_or_default() + &columns
}

/// Returns what a shard adds to the fingerprint of a split with companions.
pub(crate) fn numbers(shard: &Shard) -> Vec<u8> {
    let (rows, crc) = shard.deleted.as_ref().map_or((0, 0), |deleted| (deleted.rows, crc32c(&deleted.part.bytes)));
    let mut bytes = [&rows.to_le_bytes()[..], &crc.to_le_bytes()].concat();
    bytes.extend((shard.companions.len() as u32).to_le_bytes());
    for companion in &shard.companions {
        bytes.extend((companion.name.len() as u32).to_le_bytes());
        bytes.extend(companion.name.as_bytes());
        bytes.extend(crc32c(&companion.part.bytes).to_le_bytes());
    }
    bytes
}
