//! Tags: names of versions, which the manifest holds.

use super::base;
use super::commit::{Basis, commit};
use super::delete::LOCK;
use super::{ChangeOptions, NewVersion};
use crate::Error;
use crate::commit::Directory;
use crate::error::ShardError;
use crate::place::{Place, StoreFolder};
use shardtool_format::manifest::{self, Manifest, Tag};
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
            let newest = parse_manifest(&dataset.path().join(shardtool_format::names::MANIFEST))?;
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
    let made = edit(
        &dataset,
        &format!("tag {name}"),
        options,
        &|manifest| tags(manifest).iter().any(|tag| tag.name == name && tag.number == number),
        &mut |tags| {
            tags.retain(|tag| tag.name != name);
            tags.push(Tag { name: name.to_owned(), number });
            tags.sort_by(|a, b| a.name.cmp(&b.name));
        },
    )?;
    Ok((number, made))
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
    edit(&dataset, &format!("tag --remove {name}"), options, &is_made, &mut |tags| tags.retain(|tag| tag.name != name))
}

fn tags(manifest: &Manifest) -> &[Tag] {
    manifest.versions.as_ref().map_or(&[], |versions| &versions.tags)
}

fn edit(
    dataset: &Dataset,
    command: &str,
    options: &ChangeOptions,
    is_made: &dyn Fn(&Manifest) -> bool,
    change: &mut dyn FnMut(&mut Vec<Tag>),
) -> Result<Option<NewVersion>, Error> {
    if options.dry_run {
        return Ok(None);
    }
    if shardtool_store::is_url(dataset.path()) {
        edit_in::<StoreFolder>(dataset, command, options, is_made, change).map(Some)
    } else {
        edit_in::<Directory>(dataset, command, options, is_made, change).map(Some)
    }
}

fn edit_in<P: Place>(
    dataset: &Dataset,
    command: &str,
    options: &ChangeOptions,
    is_made: &dyn Fn(&Manifest) -> bool,
    change: &mut dyn FnMut(&mut Vec<Tag>),
) -> Result<NewVersion, Error> {
    let (place, _lock) = P::join(dataset.path(), LOCK, options.single_writer)?;
    commit(&place, dataset.manifest(), &Basis::default(), command, options, is_made, &mut |manifest| {
        if let Some(versions) = &mut manifest.versions {
            change(&mut versions.tags);
        }
        Ok(())
    })
}
