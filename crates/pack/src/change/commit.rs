//! Puts a change on top of the newest version. Another change may have come first since this one read the dataset: if what this
//! one is based on is still there, both stand; otherwise this one is refused.

use super::{ChangeOptions, NewVersion};
use crate::Error;
use crate::error::{DestinationError, ShardError};
use crate::place::{self, Place};
use shardtool_format::manifest::{Manifest, Shard};
use shardtool_format::names;
use shardtool_read::Dataset;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

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
    /// Whether further shards must be the dataset's own, since their keys are compared: a rollback may bring back those of a clone.
    pub(super) own_shards: bool,
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
        let is_own = |(file, shard): (&&str, &&Shard)| shard.foreign.dataset().is_none() || before.contains_key(*file);
        let own = !self.own_shards || now.iter().all(is_own);
        let views = !self.views || base.views() == newest.views();
        !self.everything && purged && own && views && types && self.shards.iter().all(same)
    }
}

fn shards(manifest: &Manifest) -> HashMap<&str, &Shard> {
    manifest.splits.iter().flat_map(|split| &split.shards).map(|shard| (shard.file.as_str(), shard)).collect()
}

/// Commits a change. `apply` makes it to the newest manifest, which has the contents of `base` as far as `basis` says;
/// `is_made` says whether a manifest has the change already, since the answer to an earlier attempt was lost. Other changes may have been
/// made to that version since, so that the manifests of all versions after `base` are looked at.
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
        let new_version = |manifest: &Manifest| {
            let number = manifest.version_number();
            NewVersion { number, parent: number - 1, has_stored_shards: manifest.has_stored_shards() }
        };
        if is_made(&newest) {
            made = Some(new_version(&newest));
            return Ok(None);
        }
        for number in base.version_number() + 1..newest.version_number() {
            // One that `gc` removed, or that is damaged, shows nothing.
            let Some(json) = place.read(&names::version_path(number))? else { continue };
            if let Some(between) = Manifest::parse(&json).ok().filter(|manifest| is_made(manifest)) {
                made = Some(new_version(&between));
                return Ok(None);
            }
        }
        if !basis.stands(base, &newest) {
            return Err(came_first(place.path(), &newest));
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

/// Makes a change of a dataset. One that fails because of what another change has made or removed since the dataset was opened fails
/// with [`DestinationError::CameFirst`]; of a file that the newest version still names, and of other damage, the error stays.
pub(super) fn beside_others<T>(dataset: &Dataset, change: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    use DestinationError::{InTheWay, Incompatible};
    change().map_err(|error| match &error {
        Error::Destination(InTheWay { .. } | Incompatible { .. }) | Error::Read(_) => {
            match Dataset::open(dataset.path()) {
                Ok(newest) if newest.version() != dataset.version() && !is_own(&error, newest.manifest()) => {
                    came_first(dataset.path(), newest.manifest())
                }
                _ => error,
            }
        }
        _ => error,
    })
}

/// Returns whether an error is that of a change, whatever others were made meanwhile: damage, unless it is a file that is absent and that
/// the newest version does not name.
fn is_own(error: &Error, newest: &Manifest) -> bool {
    use shardtool_read::Error::{MissingCompanion, MissingIndex, MissingShard};
    let Error::Read(error) = error else { return false };
    let (MissingShard { path } | MissingIndex { path } | MissingCompanion { path }) = error else {
        return error.is_damage();
    };
    let parts = newest.parts().map(|part| PathBuf::from(&part.file));
    let shards = newest.splits.iter().flat_map(|split| &split.shards).flat_map(place::files_of_shard);
    parts.chain(shards).any(|file| file.file_name() == path.file_name())
}

/// Returns the error of a change that the change of the newest version came before.
fn came_first(dataset: &Path, newest: &Manifest) -> Error {
    let command = newest.versions.as_ref().map_or("pack", |versions| &versions.command).to_owned();
    let (destination, version) = (dataset.to_owned(), newest.version_number());
    Error::Destination(DestinationError::CameFirst { destination, version, command })
}

/// Removes the new files of a change that was not made, if they are of no use ([`are_useless`]).
pub(super) fn discard<P: Place>(place: &P, error: &Error, files: &[PathBuf]) {
    if are_useless(place, error, files) {
        files.iter().for_each(|file| drop(place.remove(file)));
    }
}

/// Returns whether the new files of a change that ended with this error may be removed: it was refused, and no kept version names any of
/// them. A version does if an equal change has made them too, or if this one was made and only its answer was lost. After any other
/// error, the manifest may be in place already. `gc` removes what stays and no version names.
pub(super) fn are_useless<P: Place>(place: &P, error: &Error, files: &[PathBuf]) -> bool {
    if !matches!(error, Error::Shard(_) | Error::Destination(_)) {
        return false;
    }
    let (Ok(Some(newest)), Ok(kept)) = (place.manifest(), place::kept_manifests(place)) else { return false };
    let manifests = kept.iter().map(|(_, manifest)| manifest).chain([&newest]);
    let mut named = manifests.flat_map(|manifest| place::files_of(place.path(), manifest));
    !named.any(|file| files.contains(&file))
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

#[cfg(test)]
mod tests {
    use super::super::{CompactOptions, compact, delete};
    use super::*;
    use crate::commit::Directory;
    use crate::{DeleteOptions, Options, pack};

    #[test]
    fn damage_is_named_although_another_change_came_first_unless_that_removed_the_file() {
        use shardtool_read::Error::{MissingShard, RecordCount};
        let folder = tempfile::tempdir().unwrap();
        let (list, set) = (folder.path().join("list.jsonl"), folder.path().join("set"));
        std::fs::write(&list, "{\"key\":\"a\",\"x\":1}\n{\"key\":\"b\",\"x\":2}\n").unwrap();
        pack(&Options::new(&list, &set), &()).unwrap();
        let base = Dataset::open(&set).unwrap();
        let fails =
            |error: shardtool_read::Error| beside_others(&base, || Err::<(), _>(Error::Read(error))).unwrap_err();
        let missing = |file: &str| fails(MissingShard { path: set.join(file) });
        // No other change was made.
        assert!(matches!(missing("train-7-00000.tfrecord"), Error::Read(_)));
        delete(&set, &DeleteOptions::new(crate::ChosenRecords::Ids(vec![0])), &()).unwrap();
        let is_other = |error| matches!(error, Error::Destination(DestinationError::CameFirst { version: 2, .. }));
        assert!(is_other(missing("train-7-00000.tfrecord")));
        assert!(matches!(missing(&base.manifest().splits[0].shards[0].file), Error::Read(MissingShard { .. })));
        let damage = RecordCount { path: set.join("train-00000.tfrecord"), expected: 2, found: 1 };
        assert!(matches!(fails(damage), Error::Read(RecordCount { .. })));
    }

    #[test]
    fn a_change_whose_answer_was_lost_is_found_below_the_changes_that_others_made_since() {
        let folder = tempfile::tempdir().unwrap();
        let (list, set) = (folder.path().join("list.jsonl"), folder.path().join("set"));
        let rows: String = (0..4).map(|n| format!("{{\"key\":\"{n}\",\"x\":{n}}}\n")).collect();
        std::fs::write(&list, rows).unwrap();
        pack(&Options::new(&list, &set), &()).unwrap();
        let base = Dataset::open(&set).unwrap();
        let file = &base.manifest().splits[0].shards[0].file;
        let deleting = DeleteOptions::new(crate::ChosenRecords::Ids(vec![1]));
        delete(&set, &deleting, &()).unwrap();
        let made = Dataset::open(&set).unwrap();
        let parts: Vec<String> =
            made.manifest().splits[0].shards[0].companions.parts().map(|part| part.file.clone()).collect();
        let compacting = CompactOptions { jobs: std::num::NonZero::<usize>::MIN, ..CompactOptions::default() };
        compact(&set, &compacting, &()).unwrap();
        let newest = Dataset::open(&set).unwrap();
        assert!(!names_file(newest.manifest(), &parts[0]) && newest.version() == made.version() + 1);
        let place = Directory::open(&set).unwrap().unwrap();
        let basis = Basis { shards: vec![file.clone()], deleted: true, ..Basis::default() };
        let again = |file: &str| {
            let is_made = |manifest: &Manifest| names_file(manifest, file);
            let options = ChangeOptions::default();
            commit(&place, base.manifest(), &basis, "delete", &options, &is_made, &mut |_| panic!("made before"))
        };
        let found = again(&parts[0]).unwrap();
        assert_eq!((found.number, found.parent), (made.version(), base.version()));
        // One that was never made.
        let refused = again("none").unwrap_err();
        assert!(matches!(refused, Error::Destination(DestinationError::CameFirst { .. })), "{refused}");
    }
}
