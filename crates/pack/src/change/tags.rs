//! Tags: names of versions, which the manifest holds.

use super::base;
use super::commit::{Basis, commit};
use super::{ChangeOptions, NewVersion};
use crate::Error;
use crate::commit::Directory;
use crate::error::ShardError;
use crate::place::{CHANGE_LOCK, Place, StoreFolder};
use shardtool_format::manifest::{self, Manifest, Tag};
use shardtool_format::names::MANIFEST;
use shardtool_read::{Dataset, manifest_of, parse_manifest};
use std::path::Path;

/// Names a version: the newest one, or the one that `version` names. Returns the number of the tagged version, and the version
/// that holds the tag.
///
/// # Errors
/// [`ShardError::TagExists`]; [`Error::Name`] for a name that cannot be a tag; [`Error::Read`] for a version that is not kept;
/// those of writing.
pub fn tag(
    dataset: &Path,
    name: &str,
    version: Option<&str>,
    options: &ChangeOptions,
) -> Result<(u64, Option<NewVersion>), Error> {
    manifest::check_tag(name)?;
    let dataset = base::open(dataset, &options.sources)?;
    let number = match version {
        None => dataset.version(),
        Some(version) => {
            let newest = parse_manifest(&dataset.path().join(MANIFEST))?;
            manifest_of(dataset.path(), newest, version)?.1.version_number()
        }
    };
    let there = tags(dataset.manifest()).iter().find(|tag| tag.name == name).map(|tag| tag.number);
    match there {
        Some(there) if there == number => return Ok((number, None)),
        Some(there) => {
            let (path, tag) = (base::folder(&dataset), name.to_owned());
            return Err(Error::Shard(ShardError::TagExists { path, tag, version: there }));
        }
        None => {}
    }
    let made = add(&dataset, name, number, options)?;
    Ok((number, made))
}

fn add(dataset: &Dataset, name: &str, number: u64, options: &ChangeOptions) -> Result<Option<NewVersion>, Error> {
    edit(
        dataset,
        &format!("tag {name}"),
        options,
        // A `gc` may have removed the version since it was found.
        &|| manifest_of(dataset.path(), parse_manifest(&dataset.path().join(MANIFEST))?, &number.to_string()).map(drop),
        &|manifest| tags(manifest).iter().any(|tag| tag.name == name && tag.number == number),
        &mut |tags| {
            tags.retain(|tag| tag.name != name);
            tags.push(Tag { name: name.to_owned(), number });
            tags.sort_by(|a, b| a.name.cmp(&b.name));
        },
    )
}

/// Removes a tag. The version stays.
///
/// # Errors
/// [`ShardError::NoTag`]; those of writing.
pub fn remove_tag(dataset: &Path, name: &str, options: &ChangeOptions) -> Result<Option<NewVersion>, Error> {
    let dataset = base::open(dataset, &options.sources)?;
    if !tags(dataset.manifest()).iter().any(|tag| tag.name == name) {
        let (path, tag) = (base::folder(&dataset), name.to_owned());
        return Err(Error::Shard(ShardError::NoTag { path, tag }));
    }
    let is_made = |manifest: &Manifest| tags(manifest).iter().all(|tag| tag.name != name);
    let command = format!("tag --remove {name}");
    edit(&dataset, &command, options, &|| Ok(()), &is_made, &mut |tags| tags.retain(|tag| tag.name != name))
}

fn tags(manifest: &Manifest) -> &[Tag] {
    manifest.versions.as_ref().map_or(&[], |versions| &versions.tags)
}

/// Edits the tags. `check` is called when no `gc` can run any more.
fn edit(
    dataset: &Dataset,
    command: &str,
    options: &ChangeOptions,
    check: &dyn Fn() -> Result<(), shardtool_read::Error>,
    is_made: &dyn Fn(&Manifest) -> bool,
    change: &mut dyn FnMut(&mut Vec<Tag>),
) -> Result<Option<NewVersion>, Error> {
    if options.dry_run {
        return Ok(None);
    }
    if shardtool_store::is_url(dataset.path()) {
        edit_in::<StoreFolder>(dataset, command, options, check, is_made, change).map(Some)
    } else {
        edit_in::<Directory>(dataset, command, options, check, is_made, change).map(Some)
    }
}

fn edit_in<P: Place>(
    dataset: &Dataset,
    command: &str,
    options: &ChangeOptions,
    check: &dyn Fn() -> Result<(), shardtool_read::Error>,
    is_made: &dyn Fn(&Manifest) -> bool,
    change: &mut dyn FnMut(&mut Vec<Tag>),
) -> Result<NewVersion, Error> {
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, options.single_writer)?;
    check()?;
    commit(&place, dataset.manifest(), &Basis::default(), command, options, is_made, &mut |manifest| {
        if let Some(versions) = &mut manifest.versions {
            change(&mut versions.tags);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::{GcOptions, gc};
    use super::*;
    use crate::{Options, pack};

    #[test]
    fn a_version_that_gc_removed_before_the_lock_was_taken_gets_no_tag() {
        let folder = tempfile::tempdir().unwrap();
        let (list, set) = (folder.path().join("list.jsonl"), folder.path().join("set"));
        std::fs::write(&list, "{\"key\":\"a\",\"x\":1}\n").unwrap();
        pack(&Options::new(&list, &set), &()).unwrap();
        let options = ChangeOptions::default();
        for name in ["first", "second"] {
            tag(&set, name, None, &options).unwrap();
        }
        for name in ["first", "second"] {
            remove_tag(&set, name, &options).unwrap();
        }
        let dataset = Dataset::open(&set).unwrap();
        let earlier = dataset.version() - 1;
        let mut keep = GcOptions::default();
        (keep.keep, keep.remove) = (Some(1), true);
        gc(&set, &keep).unwrap();
        let refused = add(&dataset, "paper", earlier, &options).unwrap_err();
        assert!(matches!(refused, Error::Read(shardtool_read::Error::NoVersion { .. })), "{refused}");
        assert!(add(&dataset, "paper", dataset.version(), &options).unwrap().is_some());
    }
}
