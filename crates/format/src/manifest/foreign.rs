//! Shards whose bytes are not a file of the dataset.

use super::{Manifest, Shard};
use crate::{Error, Result};

/// Requirement of datasets with shards that are not their own files. [`Manifest::to_json`] writes it where there is one, and parsing
/// removes it.
pub const FOREIGN: &str = "foreign";

/// Bytes of a `source` at most.
const MAX_SOURCE: usize = 4096;

/// Where the bytes of a shard lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Foreign {
    /// The shard is virtual: its index says where its bytes lie in source files.
    pub is_virtual: bool,
    /// The folder of the source files of a virtual shard, or of the dataset that has the shard and its index: an absolute path or a
    /// URL. `None` for the dataset's own.
    pub source: Option<String>,
}

impl Foreign {
    /// Returns whether the shard is a file of the dataset.
    pub fn is_none(&self) -> bool {
        *self == Foreign::default()
    }

    /// Returns the folder or URL of the dataset in which the shard and its index lie, if that is another one.
    pub fn dataset(&self) -> Option<&str> {
        self.source.as_deref().filter(|_| !self.is_virtual)
    }
}

impl Manifest {
    /// Returns whether some shard is virtual.
    pub fn has_virtual_shards(&self) -> bool {
        self.splits.iter().flat_map(|split| &split.shards).any(|shard| shard.foreign.is_virtual)
    }

    /// Returns whether the bytes of some shard are not a file of the dataset: it is virtual, or lies in another folder.
    pub fn has_foreign_shards(&self) -> bool {
        self.splits.iter().flat_map(|split| &split.shards).any(|shard| !shard.foreign.is_none())
    }

    /// Returns whether some shard lies in another dataset.
    pub fn has_cloned_shards(&self) -> bool {
        self.splits.iter().flat_map(|split| &split.shards).any(|shard| shard.foreign.dataset().is_some())
    }

    /// Returns whether a shard is stored, and not virtual.
    pub fn has_stored_shards(&self) -> bool {
        self.splits.iter().flat_map(|split| &split.shards).any(|shard| !shard.foreign.is_virtual)
    }

    /// Returns the folders in which source files and shards lie, other than the dataset's; each once, in the order of the shards.
    pub fn sources(&self) -> Vec<&str> {
        let mut sources: Vec<&str> = vec![];
        for shard in self.splits.iter().flat_map(|split| &split.shards) {
            if let Some(source) = shard.foreign.source.as_deref().filter(|source| !sources.contains(source)) {
                sources.push(source);
            }
        }
        sources
    }
}

/// Checks where the bytes of a shard lie.
///
/// # Errors
/// [`Error::ManifestValue`].
pub(super) fn check(Shard { foreign, .. }: &Shard) -> Result<()> {
    let Some(source) = &foreign.source else { return Ok(()) };
    check_source(source).map_err(|problem| Error::ManifestValue { member: "source", value: source.clone(), problem })
}

/// Checks the text of a `source`; returns what is wrong with it.
///
/// # Errors
/// What is wrong.
pub(super) fn check_source(source: &str) -> std::result::Result<(), &'static str> {
    let (scheme, rest) = source.split_once("://").unwrap_or(("", source));
    let in_scheme = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    let is_url =
        scheme.len() > 1 && scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.chars().all(in_scheme);
    if source.is_empty() || source.len() > MAX_SOURCE {
        return Err("expected 1 to 4096 bytes");
    }
    if source.chars().any(char::is_control) {
        return Err("it has a control character");
    }
    if !is_url && !source.starts_with('/') {
        return Err("expected an absolute path or a URL");
    }
    let rest = if is_url { rest } else { source };
    if rest.split('/').any(|component| matches!(component, "." | "..")) {
        return Err("it has a component `.` or `..`");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if is_url && (authority.contains('@') || rest.contains(['?', '#'])) {
        return Err("a URL with a user, a password, a query or a fragment");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_source;

    #[test]
    fn sources_are_absolute_paths_or_plain_urls() {
        for good in [
            "/data",
            "/",
            "/data/a b@c?d#e",
            "s3://bucket/a@b",
            "hf://datasets/owner/name@0123/data",
            "http://127.0.0.1:9000/a",
        ] {
            assert_eq!(check_source(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "data",
            "./data",
            "/data/../etc",
            "/data/./x",
            "/data\n",
            "s3://user:secret@bucket/a",
            "s3://bucket/a?X-Amz-Signature=1",
            "s3://bucket/a#b",
            "s3://bucket/../other",
            "~/data",
            "HTTP://x/y",
            "c://x",
        ] {
            assert!(check_source(bad).is_err(), "{bad}");
        }
        assert!(check_source(&format!("/{}", "a".repeat(4096))).is_err());
    }
}
