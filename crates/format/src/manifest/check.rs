//! Checks the values of a manifest's members.

use super::{
    DType, Deleted, FOREIGN, FilePart, HMAC_BYTES, Keypoints, Manifest, Purged, PurgedKeys, SEQUENCE_EXAMPLE, Shard,
    Split, VERSIONS, Versions, View, ViewShard, foreign,
};
use crate::index::ALIGNMENT;
use crate::{Error, Result, names};
use std::collections::HashSet;

/// The requirements that this version supports.
const SUPPORTED: [&str; 3] = [FOREIGN, SEQUENCE_EXAMPLE, VERSIONS];

pub(super) fn wrong(member: &'static str, value: &str, problem: &'static str) -> Error {
    Error::ManifestValue { member, value: value.to_owned(), problem }
}

/// Checks that this version supports all requirements.
///
/// # Errors
/// [`Error::ManifestRequires`].
pub(super) fn requires(requires: &[String]) -> Result<()> {
    match requires.iter().find(|name| !SUPPORTED.contains(&name.as_str())) {
        Some(unknown) => Err(Error::ManifestRequires { unknown: unknown.clone() }),
        None => Ok(()),
    }
}

/// Checks that names are in byte order and unique.
pub(super) fn sorted<'a>(member: &'static str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut before = None;
    for name in names {
        if before.is_some_and(|before| before >= name) {
            return Err(wrong(member, name, "not in byte order, or listed twice"));
        }
        before = Some(name);
    }
    Ok(())
}

impl Manifest {
    /// Checks all values.
    ///
    /// # Errors
    /// [`Error::ManifestValue`].
    pub(super) fn check(&self) -> Result<()> {
        sorted("requirement", self.requires.iter().map(String::as_str))?;
        let mut files = HashSet::new();
        let total = |split: &Split| split.shards.iter().try_fold(0u64, |sum, s| sum.checked_add(s.records));
        for split in &self.splits {
            names::check_split_name(&split.name)?;
            if total(split).is_none_or(|n| n > i64::MAX as u64) {
                return Err(wrong("split", &split.name, "more records than a dataset can have"));
            }
            for shard in &split.shards {
                names::check_file_name("shard file", &shard.file)?;
                foreign::check(shard)?;
                if !files.insert(shard.file.as_str()) {
                    return Err(wrong("shard file", &shard.file, "listed twice"));
                }
            }
        }
        sorted("split name", self.splits.iter().map(|s| s.name.as_str()))?;
        sorted("feature name", self.stored_features().iter().map(|f| f.name.as_str()))?;
        self.check_role("image", &self.image, DType::Bytes, "not a feature of type bytes")?;
        self.check_role("label", &self.label, DType::Int64, "not a feature of type int64")?;
        if let Some(versions) = &self.versions {
            versions.check()?;
            self.splits.iter().try_for_each(|split| self.check_companions(split, versions))?;
            sorted("view", versions.views.iter().map(|view| view.name.as_str()))?;
            versions.views.iter().try_for_each(|view| self.check_view(view))?;
        }
        self.keypoints.iter().try_for_each(Keypoints::check)?;
        let mut classes = HashSet::new();
        match self.classes.iter().find(|c| !classes.insert(c.as_str())) {
            Some(class) => Err(wrong("class", class, "listed twice")),
            None => Ok(()),
        }
    }

    /// Checks that a feature with a role is listed with the type that the role requires.
    fn check_role(&self, role: &'static str, name: &Option<String>, dtype: DType, problem: &'static str) -> Result<()> {
        match name {
            Some(name) if !self.features.iter().any(|f| f.name == *name && f.dtype == dtype) => {
                Err(wrong(role, name, problem))
            }
            _ => Ok(()),
        }
    }

    /// Checks a view.
    fn check_view(&self, view: &View) -> Result<()> {
        names::check_split_name(&view.name)?;
        if names::is_version_folder(&view.name) || self.split(&view.name).is_some() {
            return Err(wrong("view", &view.name, "the name of a split, or of a folder of the dataset"));
        }
        let Some(split) = self.split(&view.split) else {
            return Err(wrong("view", &view.name, "of a split that does not exist"));
        };
        let mut lines = split.shards.iter();
        for ViewShard { file, absent } in &view.shards {
            let Some(line) = lines.find(|line| line.file == *file) else {
                return Err(wrong("view", &view.name, "its shards are not shards of its split, in the split's order"));
            };
            let deleted = line.companions.deleted.as_ref().map_or(0, |deleted| deleted.rows);
            if absent.as_ref().map_or(0, |absent| absent.rows) < deleted {
                return Err(wrong("view", &view.name, "it does not leave out all rows that its split has deleted"));
            }
            if let Some(absent) = absent {
                check_bitmap(absent, line)?;
            }
        }
        Ok(())
    }

    /// Checks the companions of the shards of a split.
    fn check_companions(&self, split: &Split, versions: &Versions) -> Result<()> {
        if names::is_version_folder(&split.name) {
            return Err(wrong("split name", &split.name, "the name of a folder of the dataset"));
        }
        for shard in &split.shards {
            let Shard { file, companions, .. } = shard;
            if names::is_version_folder(file) {
                return Err(wrong("shard file", file, "the name of a folder of the dataset"));
            }
            if let Some(deleted) = &companions.deleted {
                check_bitmap(deleted, shard)?;
            }
            sorted("column of a shard", companions.columns.iter().map(|column| column.feature()))?;
            for column in &companions.columns {
                // A name without a prefix names no feature.
                let prefixed = column.feature() != column.name;
                if !prefixed || !versions.columns.iter().any(|listed| listed.name == column.feature()) {
                    return Err(wrong("column of a shard", &column.name, "not listed in `columns`"));
                }
                check_part(&column.index, ".columns")?;
                if !column.index.offset.is_multiple_of(ALIGNMENT) {
                    return Err(wrong("column of a shard", &column.name, "its offset is not a multiple of 64"));
                }
            }
        }
        Ok(())
    }
}

/// Checks the bitmap of rows of a shard.
fn check_bitmap(rows: &Deleted, shard: &Shard) -> Result<()> {
    if rows.rows == 0 || rows.rows > shard.records {
        return Err(wrong("shard", &shard.file, "deleted rows that are not 1 to all of the shard"));
    }
    check_part(&rows.bitmap, ".deleted")?;
    match rows.bitmap.bytes == shard.records.div_ceil(8) {
        true => Ok(()),
        false => Err(wrong("shard", &shard.file, "a bitmap of another length than its records need")),
    }
}

/// Checks a part of a file of companions.
fn check_part(part: &FilePart, end: &str) -> Result<()> {
    let stem = part.file.strip_suffix(end);
    let digits = |stem: &str| stem.len() == 16 && stem.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match stem.is_some_and(digits) {
        true if part.end().is_none() => Err(wrong("file of columns", &part.file, "a part that ends past any file")),
        true => Ok(()),
        false => Err(wrong(
            "file of columns",
            &part.file,
            "expected 16 lower-case hex digits and `.columns`, `.deleted` or `.purged`",
        )),
    }
}

impl Purged {
    /// Checks what was purged up to the version `number`.
    fn check(&self, number: u64) -> Result<()> {
        let ascending = self.versions.is_sorted_by(|a, b| a < b);
        let known = |version: &u64| (1..=number).contains(version);
        if self.versions.is_empty() || !ascending || !self.versions.iter().all(known) {
            return Err(wrong("purged", "versions", "expected numbers of versions, ascending"));
        }
        let Some(PurgedKeys { number, list }) = &self.keys else { return Ok(()) };
        check_part(list, ".purged")?;
        let bytes = number.checked_add(1).and_then(|hmacs| hmacs.checked_mul(HMAC_BYTES));
        match *number > 0 && bytes == Some(list.bytes) {
            true => Ok(()),
            false => Err(wrong("purged", &list.file, "its length is not 32 bytes and 32 for each of at least one key")),
        }
    }
}

impl Versions {
    /// Checks the members of a changed dataset.
    fn check(&self) -> Result<()> {
        if self.number == 0 {
            return Err(wrong("dataset_version", "0", "versions are numbered from 1"));
        }
        sorted("tag", self.tags.iter().map(|tag| tag.name.as_str()))?;
        for tag in &self.tags {
            check_tag(&tag.name)?;
            if tag.number == 0 || tag.number > self.number {
                return Err(wrong("tag", &tag.name, "names a version that does not exist"));
            }
        }
        if let Some(purged) = &self.purged {
            purged.check(self.number)?;
        }
        let listed = self.columns.iter().map(|column| column.name.as_str());
        sorted("column", listed.clone())?;
        sorted("dropped column", self.dropped.iter().map(String::as_str))?;
        for name in &self.dropped {
            if listed.clone().any(|column| column == name) {
                return Err(wrong("column", name, "listed, and also dropped"));
            }
            if !self.stored.iter().any(|feature| feature.name == *name) {
                return Err(wrong("column", name, "dropped, but not a feature"));
            }
        }
        for column in &self.columns {
            if self.stored.iter().any(|stored| stored.name == column.name && stored.dtype != column.dtype) {
                return Err(wrong("column", &column.name, "has another type than the feature of this name"));
            }
        }
        Ok(())
    }
}

/// Checks the name of a tag.
///
/// # Errors
/// [`Error::ManifestValue`].
pub fn check_tag(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let hex = name.len() == 8 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() <= 100 && name.chars().all(plain) && !hex {
        true => Ok(()),
        false => Err(wrong(
            "tag",
            name,
            "use a letter, then up to 99 letters, digits, `.`, `_` or `-`, but not eight hex digits, which are a checksum",
        )),
    }
}
