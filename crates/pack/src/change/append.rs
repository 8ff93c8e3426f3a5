//! Adds records to splits: packs a source into further shards, which the new version names after those that it has.

use super::base;
use super::commit::{Basis, are_useless, beside_others, commit, discard, each_shard};
use super::parts_file::{Holds, PartsFile};
use super::{ChangeOptions, NewVersion, views};
use crate::commit::{Directory, unique};
use crate::error::ShardError;
use crate::pack::{PackedShards, write_split_shards};
use crate::place::{self, CHANGE_LOCK, Place, StoreFolder};
use crate::progress::Progress;
use crate::purged_keys;
use crate::split::manifest_store;
use crate::writer::keys::{Keys, each_in};
use crate::{Error, Options, Plan, plan_splits};
use shardtool_format::manifest::{self, Manifest, Shard};
use shardtool_read::{Dataset, Split};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// Keys and classes that messages list.
const LISTED: usize = 5;

/// Options of [`append`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AppendOptions {
    /// The source, the dataset and how images are stored, as for [`crate::pack()`]. The dataset's classes, features and types hold.
    pub pack: Options,
    /// Whether records whose keys the source has too are deleted. Default: such keys are an error.
    pub replace: bool,
    /// Whether classes that the dataset does not have get the next ids. Default: they are an error.
    pub add_classes: bool,
    /// What all changes have.
    pub change: ChangeOptions,
}

impl AppendOptions {
    /// Returns options for a source and a dataset.
    pub fn new(source: impl Into<PathBuf>, dataset: impl Into<PathBuf>) -> Self {
        let pack = Options::new(source, dataset);
        AppendOptions { pack, replace: false, add_classes: false, change: ChangeOptions::default() }
    }
}

/// What was appended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Appended {
    /// The new version; `None` if nothing was to be written.
    pub version: Option<NewVersion>,
    /// Each split.
    pub splits: Vec<AppendedSplit>,
    /// The classes that the dataset did not have.
    pub new_classes: Vec<String>,
    /// The features of the dataset that the source lacks: the new records have no values of them.
    pub absent: Vec<String>,
    /// What the source has and the records do not, for people.
    pub left_out: Vec<String>,
}

/// What was appended to a split.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AppendedSplit {
    /// Its name.
    pub name: String,
    /// Samples of the source.
    pub samples: u64,
    /// Records that were added.
    pub records: u64,
    /// Rejected inputs.
    pub rejected: u64,
    /// The list of rejected inputs, if there are any.
    pub rejected_file: Option<PathBuf>,
    /// Records of equal keys that were deleted.
    pub replaced: u64,
    /// Whether the keys of SOURCE were compared with those of the split. A dry run does not know the keys in archives.
    pub keys_compared: bool,
    /// New shards, and their bytes.
    pub shards: u64,
    /// Bytes of the new shards.
    pub bytes: u64,
}

/// Packs a source, and adds its records to the splits of a dataset.
///
/// # Errors
/// Those of [`crate::pack()`]; [`ShardError::AppendedKey`], [`ShardError::PurgedKeys`], [`ShardError::NewClasses`];
/// [`DestinationError::Incompatible`](crate::DestinationError) for other features; [`Error::Read`] for a split that the
/// dataset does not have; [`DestinationError::CameFirst`](crate::DestinationError).
pub fn append(options: &AppendOptions, progress: &dyn Progress) -> Result<Appended, Error> {
    let dataset = base::open(&options.pack.destination, &options.change.sources)?;
    let (plans, packing, new_classes) = plans(&dataset, options)?;
    let purged = purged_keys::of(&dataset)?;
    let mut splits = vec![];
    for plan in &plans {
        let keys = plan.keys().into_iter().flatten().map(str::as_bytes);
        purged_keys::refuse_keys(dataset.path(), purged.as_ref(), keys)?;
        splits.push(planned(&dataset, plan, options)?);
    }
    if options.change.dry_run {
        let (absent, left_out) = (absent(&dataset, &plans), left_out(&plans));
        return Ok(Appended { version: None, splits, new_classes, absent, left_out });
    }
    beside_others(&dataset, || match shardtool_store::is_url(dataset.path()) {
        true => write::<StoreFolder>(&dataset, &plans, &packing, options, new_classes, progress),
        false => write::<Directory>(&dataset, &plans, &packing, options, new_classes, progress),
    })
}

/// Checks as much of a plan as is known before the source is read, and returns what it would append.
fn planned(dataset: &Dataset, plan: &Plan, options: &AppendOptions) -> Result<AppendedSplit, Error> {
    let [split] = base::splits(dataset, &[plan.split().to_owned()])?[..] else { unreachable!("one name was given") };
    manifest_store::grown(dataset.path(), manifest_store::of_schema(plan.schema()), dataset.manifest(), plan.split())?;
    let mut keys = Keys::default();
    plan.keys().into_iter().flatten().for_each(|key| {
        keys.insert(key.as_bytes());
    });
    let replaced = match keys.len() {
        0 => HashMap::new(),
        _ => rows_with(dataset, split, &keys, options.replace)?,
    };
    Ok(AppendedSplit {
        name: plan.split().to_owned(),
        samples: plan.samples(),
        records: plan.images(),
        rejected: plan.rejected().len() as u64,
        rejected_file: None,
        replaced: replaced.values().map(|rows| rows.len() as u64).sum(),
        keys_compared: plan.keys().is_some(),
        shards: plan.shard_count() as u64,
        bytes: plan.source_bytes(),
    })
}

/// Returns the rows of a split that have one of these keys, by the number of the shard.
///
/// # Errors
/// [`ShardError::AppendedKey`] for the first one, unless they are replaced.
fn rows_with(dataset: &Dataset, split: &Split, keys: &Keys, replace: bool) -> Result<HashMap<usize, Vec<u64>>, Error> {
    let mut found: HashMap<usize, Vec<u64>> = HashMap::new();
    for number in 0..split.entry().shards.len() {
        let shard = split.shard(number)?;
        for (_, row) in split.rows(number)? {
            let key = shard.key(row)?;
            if keys.contains(&key) {
                if !replace {
                    return Err(appended_key(dataset, split, &key));
                }
                found.entry(number).or_default().push(row);
            }
        }
    }
    Ok(found)
}

/// Plans the pack with the classes of the dataset, followed by new ones. Returns the plans, their options, and the new classes.
fn plans(dataset: &Dataset, options: &AppendOptions) -> Result<(Vec<Plan>, Options, Vec<String>), Error> {
    let known = &dataset.manifest().classes;
    let mut packing = Options { destination: dataset.path().to_owned(), force: false, ..options.pack.clone() };
    packing.grows = true;
    let plans = plan_splits(&packing)?;
    let theirs = plans.first().map_or(&[][..], |plan| plan.classes());
    if known.is_empty() || theirs.is_empty() || theirs == known {
        return Ok((plans, packing, vec![]));
    }
    let new: Vec<String> = theirs.iter().filter(|class| !known.contains(class)).cloned().collect();
    if !new.is_empty() && !options.add_classes {
        let (path, count, classes) = (base::folder(dataset), new.len(), new.iter().take(LISTED).cloned().collect());
        return Err(Error::Shard(ShardError::NewClasses { path, count, classes }));
    }
    let all: Vec<&str> = known.iter().chain(&new).map(String::as_str).collect();
    let given = packing.classes.is_some();
    if (given || plans.iter().any(Plan::has_class_ids))
        && let Some((id, (theirs, ours))) =
            theirs.iter().zip(&all).enumerate().find(|(_, (theirs, ours))| theirs != *ours)
    {
        let (path, theirs, ours) = (base::folder(dataset), theirs.clone(), (*ours).to_owned());
        return Err(Error::Shard(ShardError::OtherClassIds { path, id, theirs, ours, given }));
    }
    let file = ClassesFile(std::env::temp_dir().join(format!("shardtool-classes-{}", unique())));
    std::fs::write(&file.0, all.join("\n")).map_err(Error::io("write", &file.0))?;
    packing.classes = Some(file.0.clone());
    let plans = plan_splits(&packing)?;
    // The names are known now, and the file is removed.
    packing.classes = None;
    Ok((plans, packing, new))
}

struct ClassesFile(PathBuf);

impl Drop for ClassesFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns what the source has and the records do not, for people: the same of all its splits.
fn left_out(plans: &[Plan]) -> Vec<String> {
    plans.first().map_or(vec![], |plan| plan.left_out().to_vec())
}

/// Returns the features of a version that no plan has.
fn absent(dataset: &Dataset, plans: &[Plan]) -> Vec<String> {
    let planned: Vec<_> = plans.iter().flat_map(|plan| plan.features()).map(|feature| feature.name).collect();
    let features = dataset.manifest().features.iter().map(|feature| &feature.name);
    features.filter(|name| !planned.contains(name)).cloned().collect()
}

/// The shards that were packed for a split.
struct Added<P: Place> {
    split: String,
    packed: PackedShards<P>,
    keys: Keys,
    /// Rows of older shards that have one of the keys, by the number of the shard.
    replaced: HashMap<usize, Vec<u64>>,
}

fn write<P: Place>(
    dataset: &Dataset,
    plans: &[Plan],
    packing: &Options,
    options: &AppendOptions,
    new_classes: Vec<String>,
    progress: &dyn Progress,
) -> Result<Appended, Error> {
    // As other changes do: `gc` must not remove finished shards that this append takes over from an interrupted one.
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, options.change.single_writer)?;
    let mut added: Vec<Added<P>> = vec![];
    let written = pack_all(dataset, plans, packing, options, progress, &mut added)
        .and_then(|()| put(&place, dataset, plans, &added, options, &new_classes));
    if let Err(error) = &written {
        // Packed again with other keys or options, they would be others.
        for Added { packed, .. } in &added {
            let files: Vec<_> = packed.split.shards.iter().flat_map(place::files_of_shard).collect();
            if are_useless(&packed.place, error, &files) {
                packed.discard();
            }
        }
    }
    let version = written?;
    added.iter().try_for_each(|added| added.packed.finish())?;
    let splits = plans.iter().zip(&added).map(|(plan, added)| AppendedSplit {
        name: added.split.clone(),
        samples: plan.samples(),
        records: added.packed.split.records(),
        rejected: added.packed.rejected,
        rejected_file: added.packed.rejected_file(),
        replaced: added.replaced.values().map(|rows| rows.len() as u64).sum(),
        keys_compared: true,
        shards: added.packed.split.shards.len() as u64,
        bytes: added.packed.split.bytes(),
    });
    let splits = splits.collect();
    let (absent, left_out) = (absent(dataset, plans), left_out(plans));
    Ok(Appended { version: Some(version), splits, new_classes, absent, left_out })
}

fn pack_all<P: Place>(
    dataset: &Dataset,
    plans: &[Plan],
    packing: &Options,
    options: &AppendOptions,
    progress: &dyn Progress,
    added: &mut Vec<Added<P>>,
) -> Result<(), Error> {
    let purged = purged_keys::of(dataset)?;
    for plan in plans {
        let split = dataset.split(plan.split())?;
        // The same append, started again, continues after its finished shards.
        let name = shards_name(split.name(), (dataset.checksum(), &packing.source));
        let packing = Options { split: Some(name), ..plan.options(packing) };
        let packed = write_split_shards::<P>(&packing, plan, progress)?;
        added.push(Added { split: split.name().to_owned(), packed, keys: Keys::default(), replaced: HashMap::new() });
        let added = added.last_mut().expect("added above");
        for shard in &added.packed.split.shards {
            each_in(&added.packed.place, shard, |key| {
                added.keys.insert(key);
                purged_keys::refuse_keys(dataset.path(), purged.as_ref(), std::iter::once(key))
            })?;
        }
        added.replaced = rows_with(dataset, split, &added.keys, options.replace)?;
    }
    Ok(())
}

/// Returns the part of the names of new shards before their numbers: `SPLIT-` and 16 decimal digits.
pub(super) fn shards_name(split: &str, of: impl Hash) -> String {
    // `DefaultHasher::new` has fixed keys.
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    format!("{split}-{:016}", hasher.finish() % 10u64.pow(16))
}

fn appended_key(dataset: &Dataset, split: &Split, key: &[u8]) -> Error {
    let (path, split, key) =
        (base::folder(dataset), split.name().to_owned(), String::from_utf8_lossy(key).into_owned());
    Error::Shard(ShardError::AppendedKey { path, split, key })
}

fn put<P: Place>(
    place: &P,
    dataset: &Dataset,
    plans: &[Plan],
    added: &[Added<P>],
    options: &AppendOptions,
    new_classes: &[String],
) -> Result<NewVersion, Error> {
    let mut file = PartsFile::new(place, Holds::Deleted);
    let mut bitmaps: HashMap<&str, manifest::Deleted> = HashMap::new();
    for added in added {
        let split = dataset.split(&added.split)?;
        for (number, rows) in &added.replaced {
            bitmaps.insert(&split.entry().shards[*number].file, file.add_deleted(split, *number, rows)?);
        }
    }
    let replaced = added.iter().map(|added| Ok::<_, Error>((dataset.split(&added.split)?, &added.replaced)));
    let replaced: Vec<_> = replaced.collect::<Result<_, _>>()?;
    let rows = replaced.iter().flat_map(|(split, rows)| {
        rows.iter().map(|(number, rows)| (split.entry().shards[*number].file.as_str(), rows.as_slice()))
    });
    let views = views::without(dataset, &rows.collect(), &mut file)?;
    file.finish()?;
    let basis = Basis {
        shards: bitmaps.keys().map(|file| (*file).to_owned()).collect(),
        deleted: true,
        types: plans.iter().flat_map(Plan::features).map(|feature| feature.name).collect(),
        purged: true,
        views: !bitmaps.is_empty(),
        own_shards: true,
        everything: !new_classes.is_empty(),
        ..Basis::default()
    };
    let known = |manifest: &Manifest, shard: &Shard| {
        manifest.splits.iter().flat_map(|split| &split.shards).any(|there| there.file == shard.file)
    };
    let first = added.iter().find_map(|added| added.packed.split.shards.first());
    let made = commit(
        place,
        dataset.manifest(),
        &basis,
        "append",
        &options.change,
        &|manifest| first.is_some_and(|shard| known(manifest, shard)),
        &mut |manifest| {
            for (plan, added) in plans.iter().zip(added) {
                let split = manifest.splits.iter_mut().find(|split| split.name == added.split);
                let split = split.ok_or_else(|| {
                    let (path, name) = (base::folder(dataset), plan.split().to_owned());
                    Error::Read(shardtool_read::Error::NoSplit { path, name, known: vec![] })
                })?;
                // Another append may have come first.
                for shard in split.shards.iter().filter(|shard| !known(dataset.manifest(), shard)) {
                    each_in(place, shard, |key| match added.keys.contains(key) {
                        true => Err(appended_key(dataset, dataset.split(&added.split)?, key)),
                        false => Ok(()),
                    })?;
                }
                split.shards.extend_from_slice(&added.packed.split.shards);
            }
            each_shard(manifest, |shard| {
                if let Some(deleted) = bitmaps.get(shard.file.as_str()) {
                    shard.companions.deleted = Some(deleted.clone());
                }
            });
            if !bitmaps.is_empty() {
                views::set(manifest, &views);
            }
            manifest.classes.extend_from_slice(new_classes);
            // What was a column so far is stored in the new records.
            if let Some(versions) = &mut manifest.versions {
                let stored = plans.iter().flat_map(Plan::features);
                let new: Vec<_> = stored.filter(|feature| !versions.stored.contains(feature)).collect();
                versions.stored.extend(new);
                versions.stored.sort_by(|a, b| a.name.cmp(&b.name));
                versions.stored.dedup();
            }
            Ok(())
        },
    );
    if let Err(error) = &made {
        discard(place, error, &[file.path()]);
    }
    made
}
