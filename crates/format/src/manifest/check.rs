//! Checks the values of a manifest's members.

use super::{DType, Manifest, SEQUENCE_EXAMPLE, Split};
use crate::{Error, Result, names};
use std::collections::HashSet;

/// The requirements that this version supports.
const SUPPORTED: [&str; 1] = [SEQUENCE_EXAMPLE];

fn wrong(member: &'static str, value: &str, problem: &'static str) -> Error {
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
fn sorted<'a>(member: &'static str, names: impl Iterator<Item = &'a str>) -> Result<()> {
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
                if !files.insert(shard.file.as_str()) {
                    return Err(wrong("shard file", &shard.file, "listed twice"));
                }
            }
        }
        sorted("split name", self.splits.iter().map(|s| s.name.as_str()))?;
        sorted("feature name", self.features.iter().map(|f| f.name.as_str()))?;
        self.check_role("image", &self.image, DType::Bytes, "not a feature of type bytes")?;
        self.check_role("label", &self.label, DType::Int64, "not a feature of type int64")?;
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
}
