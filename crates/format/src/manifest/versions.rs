//! What a manifest says of a dataset that was changed: its version, and the companions of its shards.

use super::{DType, FeatureType, Manifest, Shard};
use crate::checksum;
use crate::index::{ENCODED_PREFIX, FEATURE_PREFIX};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Requirement of datasets that were changed: rows of their shards are deleted, or their columns lie in companions.
pub const VERSIONS: &str = "versions";

/// What the manifest of a version has in addition to other manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// Number of the version, from 1.
    pub number: u64,
    /// CRC of the manifest of the version that was changed.
    pub parent: u32,
    /// What changed it, such as `delete`.
    pub command: String,
    /// The user's words about the change.
    pub message: Option<String>,
    /// Who made the change.
    pub author: Option<String>,
    /// Names of versions, in byte order.
    pub tags: Vec<Tag>,
    /// What was purged from the versions up to this one, if anything was.
    pub purged: Option<Purged>,
    /// The member `features`: what the records in the shards have.
    pub stored: Vec<FeatureType>,
    /// The features whose values lie in companions of some shard, in byte order of their names.
    pub columns: Vec<FeatureType>,
    /// The features that records in shards have and that this version has not, in byte order.
    pub dropped: Vec<String>,
    /// Views, in byte order of their names.
    pub views: Vec<View>,
}

/// Some records of a split, under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// A name that no split has.
    pub name: String,
    /// The split.
    pub split: String,
    /// The conditions for which it was made, for people; empty if it was made of keys or ids.
    pub conditions: Vec<String>,
    /// The shards of the split that have records of the view, in the split's order.
    pub shards: Vec<ViewShard>,
}

/// A shard of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewShard {
    /// The shard.
    pub file: String,
    /// The rows that the view leaves out, the deleted ones among them; `None` if there are none.
    pub absent: Option<Deleted>,
}

/// What was purged from a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// The versions whose manifests were written again, without some of their records; ascending.
    pub versions: Vec<u64>,
    /// The keys that must not come back; `None` if they were forgotten.
    pub keys: Option<PurgedKeys>,
}

/// Where the keys of purged records lie, as HMACs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgedKeys {
    /// How many keys there are, at least one.
    pub number: u64,
    /// 32 bytes of a random key, then the HMAC-SHA-256 of each purged key under it, ascending.
    pub list: FilePart,
}

/// Bytes of the random key, and of each HMAC, of [`PurgedKeys`].
pub const HMAC_BYTES: u64 = 32;

/// A name of a version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tag {
    /// Begins with a letter.
    pub name: String,
    /// Number of the version.
    pub number: u64,
}

/// The companions of a shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Companions {
    /// The deleted rows, if there are any.
    pub deleted: Option<Deleted>,
    /// Columns, in byte order of their names.
    pub columns: Vec<Companion>,
    /// Of a shard of a view: the deleted rows of its split, which must be among those that the view leaves out. No member.
    pub of_split: Option<Deleted>,
}

/// The deleted rows of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// How many rows are deleted, at least one.
    pub rows: u64,
    /// The bitmap: a bit for each row, 1 if it is deleted, the least significant bit of each byte first.
    pub bitmap: FilePart,
}

/// A column of a shard that lies outside of its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// `feature:NAME` or `encoded:NAME`.
    pub name: String,
    /// An index with this column alone, and the flag of companions.
    pub index: FilePart,
}

/// A part of a file in the folder of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Plain file name.
    pub file: String,
    /// Where the part begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// CRC32C of the part.
    pub crc32c: u32,
}

impl FilePart {
    /// Returns the offset at which the part ends; `None` past 2⁶⁴.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)
    }
}

impl Companion {
    /// Returns the name of the feature.
    pub fn feature(&self) -> &str {
        let name = &self.name;
        name.strip_prefix(FEATURE_PREFIX).or_else(|| name.strip_prefix(ENCODED_PREFIX)).unwrap_or(name)
    }

    /// Returns whether rows are messages `Feature`.
    pub fn is_encoded(&self) -> bool {
        self.name.starts_with(ENCODED_PREFIX)
    }
}

impl Companions {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.deleted.is_none() && self.columns.is_empty()
    }

    /// Returns the column of a feature.
    pub fn column(&self, feature: &str) -> Option<&Companion> {
        self.columns.iter().find(|column| column.feature() == feature)
    }

    /// Returns the parts of files that hold the companions.
    pub fn parts(&self) -> impl Iterator<Item = &FilePart> {
        self.deleted.iter().map(|deleted| &deleted.bitmap).chain(self.columns.iter().map(|column| &column.index))
    }

    /// Adds the companions to a fingerprint.
    pub(super) fn add_to(&self, crc: &mut checksum::Crc32c) {
        let (rows, bitmap) = self.deleted.as_ref().map_or((0, 0), |deleted| (deleted.rows, deleted.bitmap.crc32c));
        crc.update(&rows.to_le_bytes());
        crc.update(&bitmap.to_le_bytes());
        crc.update(&(self.columns.len() as u32).to_le_bytes());
        for Companion { name, index } in &self.columns {
            crc.update(&(name.len() as u32).to_le_bytes());
            crc.update(name.as_bytes());
            crc.update(&index.crc32c.to_le_bytes());
        }
    }
}

impl Versions {
    /// Returns the features of the records of this version: the stored ones, without the dropped ones, with the columns.
    pub fn features(&self) -> Vec<FeatureType> {
        let stored = self.stored.iter().filter(|feature| !self.dropped.contains(&feature.name));
        let all: BTreeMap<&str, DType> =
            stored.chain(&self.columns).map(|feature| (feature.name.as_str(), feature.dtype)).collect();
        all.into_iter().map(|(name, dtype)| FeatureType { name: name.to_owned(), dtype }).collect()
    }
}

impl Shard {
    /// Returns the number of records that are not deleted.
    pub fn live_records(&self) -> u64 {
        self.records - self.companions.deleted.as_ref().map_or(0, |deleted| deleted.rows)
    }
}

impl Manifest {
    /// Returns the number of the version: 1 unless the dataset was changed.
    pub fn version_number(&self) -> u64 {
        self.versions.as_ref().map_or(1, |versions| versions.number)
    }

    /// Returns the features that the records in the shards have; [`Manifest::features`] are those of the version.
    pub fn stored_features(&self) -> &[FeatureType] {
        self.versions.as_ref().map_or(&self.features, |versions| &versions.stored)
    }

    /// Returns the features of the shards' records that this version has not.
    pub fn dropped_features(&self) -> &[String] {
        self.versions.as_ref().map_or(&[], |versions| &versions.dropped)
    }

    /// Returns the views, in byte order of their names.
    pub fn views(&self) -> &[View] {
        self.versions.as_ref().map_or(&[], |versions| &versions.views)
    }

    /// Returns the parts of files of columns, bitmaps and purged keys that the manifest names.
    pub fn parts(&self) -> impl Iterator<Item = &FilePart> {
        let shards = self.splits.iter().flat_map(|split| &split.shards);
        let views = self.views().iter().flat_map(|view| &view.shards).filter_map(|shard| shard.absent.as_ref());
        let purged = self.versions.iter().flat_map(|versions| &versions.purged).flat_map(|purged| &purged.keys);
        let of_shards = shards.flat_map(|shard| shard.companions.parts());
        of_shards.chain(views.map(|absent| &absent.bitmap)).chain(purged.map(|keys| &keys.list))
    }

    /// Returns the manifest whose only split is a view: the shards of the view's split, in which the rows that the view leaves out are
    /// deleted.
    pub fn of_view(&self, view: &View) -> Manifest {
        let lines = self.split(&view.split).map_or(&[][..], |split| &split.shards);
        let mut lines = lines.iter();
        let shards = view.shards.iter().filter_map(|shard| {
            let mut line = lines.find(|line| line.file == shard.file)?.clone();
            line.companions.of_split = std::mem::replace(&mut line.companions.deleted, shard.absent.clone());
            Some(line)
        });
        let split = super::Split { name: view.name.clone(), shards: shards.collect() };
        Manifest { splits: vec![split], ..self.clone() }
    }

    /// Returns the manifest of a dataset whose shards hold the records of this version.
    pub fn without_versions(&self) -> Manifest {
        let requires = self.requires.iter().filter(|name| *name != VERSIONS).cloned().collect();
        Manifest { requires, versions: None, ..self.clone() }
    }

    /// Returns the manifest that the change of a version begins with: the same contents, as the version after it. `json` are
    /// the bytes of this manifest.
    pub fn next_version(&self, json: &[u8], command: &str) -> Manifest {
        let mut next = self.clone();
        let before = next.versions.take();
        let (tags, purged, stored, columns, dropped, views) = match before {
            Some(before) => (before.tags, before.purged, before.stored, before.columns, before.dropped, before.views),
            None => (vec![], None, self.features.clone(), vec![], vec![], vec![]),
        };
        next.versions = Some(Box::new(Versions {
            number: self.version_number() + 1,
            parent: super::own_crc(json).unwrap_or_default(),
            command: command.to_owned(),
            message: None,
            author: None,
            tags,
            purged,
            stored,
            columns,
            dropped,
            views,
        }));
        if let Err(at) = next.requires.binary_search_by(|name| name.as_str().cmp(VERSIONS)) {
            next.requires.insert(at, VERSIONS.to_owned());
        }
        next
    }
}
