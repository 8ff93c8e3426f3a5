//! Puts a change on top of the newest version. Another change may have come first since this one read the dataset: if what this
//! one is based on is still there, both stand; otherwise this one is refused.

use super::{ChangeOptions, NewVersion};
use crate::Error;
use crate::error::{DestinationError, ShardError};
use crate::place::Place;
use shardtool_format::manifest::{Manifest, Shard};
use std::collections::HashMap;

/// What a change is based on.
#[derive(Debug, Clone, Default)]
pub(super) struct Basis {
    /// Names of the shards' files.
    pub(super) shards: Vec<String>,
    /// Whether it matters which of their rows are deleted.
    pub(super) deleted: bool,
    /// The features whose columns matter.
    pub(super) features: Vec<String>,
    /// The features whose types matter, besides.
    pub(super) types: Vec<String>,
    /// Whether the views matter.
    pub(super) views: bool,
    /// Whether it matters which keys were purged.
    pub(super) purged: bool,
    /// Whether everything matters.
    pub(super) everything: bool,
}

impl Basis {
    /// Returns whether the newest manifest still has it.
    fn stands(&self, base: &Manifest, newest: &Manifest) -> bool {
        if base == newest {
            return true;
        }
        let (before, now) = (shards(base), shards(newest));
        let same = |file: &String| {
            let (Some(before), Some(now)) = (before.get(file.as_str()), now.get(file.as_str())) else { return false };
            let plain = |shard: &Shard| Shard { companions: Default::default(), ..shard.clone() };
            let columns =
                self.features.iter().all(|feature| before.companions.column(feature) == now.companions.column(feature));
            plain(before) == plain(now)
                && (!self.deleted || before.companions.deleted == now.companions.deleted)
                && columns
        };
        let types = self.features.iter().chain(&self.types).all(|feature| base.dtype(feature) == newest.dtype(feature));
        let purged = |manifest: &Manifest| manifest.versions.as_ref().and_then(|versions| versions.purged.clone());
        let purged = !self.purged || purged(base) == purged(newest);
        let views = !self.views || base.views() == newest.views();
        !self.everything && purged && views && types && self.shards.iter().all(same)
    }
}

fn shards(manifest: &Manifest) -> HashMap<&str, &Shard> {
    manifest.splits.iter().flat_map(|split| &split.shards).map(|shard| (shard.file.as_str(), shard)).collect()
}

/// Commits a change. `apply` makes it to the newest manifest, which has the contents of `base` as far as `basis` says;
/// `is_made` says whether a manifest has the change already, since the answer to an earlier attempt was lost.
///
/// # Errors
/// [`DestinationError::CameFirst`], and those of `apply`, of reading and of writing.
pub(super) fn commit<P: Place>(
    place: &P,
    base: &Manifest,
    basis: &Basis,
    command: &str,
    options: &ChangeOptions,
    is_made: &dyn Fn(&Manifest) -> bool,
    apply: &mut dyn FnMut(&mut Manifest) -> Result<(), Error>,
) -> Result<NewVersion, Error> {
    let mut made = None;
    place.edit_manifest(command, &mut |newest| {
        let newest = newest.ok_or_else(|| Error::Shard(ShardError::NoDataset { path: place.path().to_owned() }))?;
        if is_made(&newest) {
            let number = newest.version_number();
            made = Some(NewVersion { number, parent: number - 1, has_stored_shards: newest.has_stored_shards() });
            return Ok(None);
        }
        if !basis.stands(base, &newest) {
            let command = newest.versions.as_ref().map_or("pack", |versions| &versions.command).to_owned();
            let (destination, version) = (place.path().to_owned(), newest.version_number());
            return Err(Error::Destination(DestinationError::CameFirst { destination, version, command }));
        }
        let mut next = newest.next_version(b"", command);
        if let Some(versions) = &mut next.versions {
            (versions.message, versions.author) = (options.message.clone(), options.author.clone());
        }
        apply(&mut next)?;
        if let Some(versions) = &next.versions {
            next.features = versions.features();
        }
        made = Some(NewVersion {
            number: newest.version_number() + 1,
            parent: newest.version_number(),
            has_stored_shards: next.has_stored_shards(),
        });
        Ok(Some(next))
    })?;
    Ok(made.expect("an edit was made, or it failed"))
}

/// Calls `change` with each shard of these files.
pub(super) fn each_shard(manifest: &mut Manifest, mut change: impl FnMut(&mut Shard)) {
    manifest.splits.iter_mut().flat_map(|split| &mut split.shards).for_each(&mut change);
}

/// Returns whether a shard of the manifest has a companion in a file of this name.
pub(super) fn names_file(manifest: &Manifest, file: &str) -> bool {
    let shards = manifest.splits.iter().flat_map(|split| &split.shards);
    shards.flat_map(|shard| shard.companions.parts()).any(|part| part.file == file)
}
