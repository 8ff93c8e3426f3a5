//! Moves the parts of a split into the dataset: shards and indexes are renamed in the order of parts, then the manifest
//! names the split. Every step can be repeated, so that the next commit continues a killed one.

use super::keys;
use super::part::{self, PLAN};
use crate::Error;
use crate::commit::{self as files, Directory, Lock};
use crate::error::{DestinationError, WriterError};
use crate::progress::{Progress, Step, after};
use crate::sample::{DescribedKeypoints, SampleSchema};
use crate::split::files::SplitFiles;
use crate::split::manifest_store;
use crate::split::plan_file::{KEYPOINTS, PlanFile};
use shardtool_format::manifest::{DType, Manifest, Shard, Split};
use shardtool_format::names;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The result of a commit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Committed {
    /// The split, as the manifest names it.
    pub split: Split,
    /// Number of named classes.
    pub classes: u64,
    /// Number of shards that earlier writers had finished.
    pub resumed_shards: u64,
    /// Whether the split was complete before; then this commit wrote nothing.
    pub already_complete: bool,
}

/// One finished part.
struct Finished {
    files: SplitFiles,
    plan: PlanFile,
    shards: Vec<Shard>,
}

/// Commits a split whose parts are finished, with their records in the order of parts. With `force`, replaces a split
/// of this name. If there are no parts and the split is complete, returns it.
///
/// # Errors
/// [`Error::Writer`], [`Error::Destination`], [`Error::Stopped`], [`Error::Io`].
pub fn commit(destination: &Path, split: &str, force: bool, progress: &dyn Progress) -> Result<Committed, Error> {
    names::check_split_name(split)?;
    let nothing =
        || Error::Writer(WriterError::NothingToCommit { destination: destination.to_owned(), split: split.to_owned() });
    let target = SplitFiles::<Directory>::open(destination, split)?.ok_or_else(nothing)?;
    let directory = target.directory();
    let staging_name = part::staging(&target);
    if !directory.has_folder(&staging_name)? {
        return complete(&target)?.ok_or_else(nothing);
    }
    let _dataset = Lock::share_dataset(directory)?;
    let _split = Lock::own(directory, &target.lock(), destination)?;
    target.remove_abandoned()?;
    let staging = directory.folder(&staging_name)?;
    let parts = read(&target, &staging)?;
    let schema = schema(&parts[0].plan);
    let new = manifest_store::of_schema(&schema);
    let mut moves = vec![];
    let mut entry = Split { name: split.to_owned(), shards: vec![] };
    for part in &parts {
        for (number, line) in part.shards.iter().enumerate() {
            let at = entry.shards.len();
            moves.push((&part.files, part.files.shard(number), target.shard(at)));
            moves.push((&part.files, part.files.index(number), target.index(at)));
            entry.shards.push(Shard { file: names::shard_file(split, at), ..line.clone() });
        }
    }
    let journal = Journal { staging: &staging };
    let stage = journal.read()?;
    let there = manifest_store::read(directory)?.and_then(|manifest| manifest.split(split).cloned());
    let in_manifest = stage == Some(Stage::Moving) && there.as_ref() == Some(&entry);
    if !in_manifest {
        if stage.is_none() {
            unique_keys(&parts, split)?;
        }
        match (&there, stage) {
            (Some(_), _) if !force && stage != Some(Stage::Clearing) => {
                return Err(Error::Destination(DestinationError::SplitExists {
                    destination: destination.to_owned(),
                    split: split.to_owned(),
                }));
            }
            (Some(_), _) | (None, Some(Stage::Clearing)) => clear(&target, &new, &journal, progress)?,
            (None, None) => {
                if directory.exists(target.plan())? {
                    let path = target.path(&target.plan());
                    return Err(Error::Destination(DestinationError::InTheWay { path }));
                }
                target.check_unoccupied()?;
            }
            (None, Some(Stage::Moving)) => {}
        }
        manifest_store::joined(directory, &new, split, false)?;
        directory.create_folder(names::INDEX_FOLDER)?;
        journal.write(Stage::Moving)?;
        after(progress, Step::Plan)?;
        for (part, from, to) in &moves {
            put(part.directory(), from, directory, to)?;
            after(progress, Step::Shard)?;
        }
        target.sync()?;
        manifest_store::add_splits(directory, &new, std::slice::from_ref(&entry))?;
        after(progress, Step::Manifest)?;
    }
    files::publish(directory, &target.packed(), &parts[0].plan.completed(&entry).to_json())?;
    directory.sync()?;
    after(progress, Step::Kept)?;
    remove(&target)?;
    after(progress, Step::Finished)?;
    let (classes, resumed_shards) = (schema.classes.len() as u64, 0);
    Ok(Committed { split: entry, classes, resumed_shards, already_complete: false })
}

/// Returns whether a killed commit has begun to move the parts of a split.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn is_committing(split: &SplitFiles) -> Result<bool, Error> {
    split.directory().exists(Path::new(&part::staging(split)).join(Journal::NAME))
}

/// Returns the split if an earlier commit completed it.
fn complete(target: &SplitFiles) -> Result<Option<Committed>, Error> {
    let Some(kept) = target.directory().read(target.packed())?.map(|bytes| PlanFile::parse(&bytes)) else {
        return Ok(None);
    };
    let Some(manifest) = manifest_store::read(target.directory())? else { return Ok(None) };
    let split = manifest.split(target.split()).filter(|split| kept.produced(split));
    let classes = manifest.classes.len() as u64;
    if split.is_some() {
        // A killed commit may have left it, under this name.
        target.directory().remove_tree(removed(target))?;
    }
    Ok(split.cloned().map(|split| Committed { split, classes, resumed_shards: 0, already_complete: true }))
}

/// Reads the plan files of all parts, which must be finished and agree.
fn read(target: &SplitFiles, staging: &Directory) -> Result<Vec<Finished>, Error> {
    let mut found: BTreeMap<u32, Finished> = BTreeMap::new();
    let mut first: Option<(PathBuf, PlanFile)> = None;
    let mut count = 0u32;
    for folder in part::folders(staging)? {
        let folder = staging.folder(folder)?;
        let path = folder.path().join(PLAN);
        let Some(plan) = folder.read(PLAN)?.map(|bytes| PlanFile::parse(&bytes)) else { continue };
        let (Some(part), Some(parts)) = (plan.member("part"), plan.member("parts")) else { continue };
        let (first, other) = first.get_or_insert_with(|| (path.clone(), plan.clone()));
        count = parts;
        if let Some(difference) = other.difference(&plan) {
            return Err(Error::Writer(WriterError::OtherPart { first: first.clone(), second: path, difference }));
        }
        if let Some(shards) = plan.shard_lines() {
            found.insert(part, Finished { files: SplitFiles::new(folder, target.split()), plan, shards });
        }
    }
    let (destination, split) = (target.folder().to_owned(), target.split().to_owned());
    if first.is_none() {
        return Err(Error::Writer(WriterError::NothingToCommit { destination, split }));
    }
    let missing: Vec<_> = (0..count).filter(|part| !found.contains_key(part)).collect();
    match missing.is_empty() {
        true => Ok(found.into_values().collect()),
        false => Err(Error::Writer(WriterError::PartsMissing { destination, split, parts: count, missing })),
    }
}

/// Returns the schema that a writer's plan file describes.
fn schema(plan: &PlanFile) -> SampleSchema {
    let features: BTreeMap<String, String> = plan.member("features").unwrap_or_default();
    SampleSchema {
        classes: plan.member("class_names").unwrap_or_default(),
        images: plan.member("with_images").unwrap_or(true),
        labelled: plan.member("labels").unwrap_or(false),
        keypoints: Box::new(DescribedKeypoints { known: plan.member(KEYPOINTS), left_out: None }),
        columns: features.into_iter().filter_map(|(name, text)| Some((name, DType::from_name(&text)?))).collect(),
    }
}

/// Refuses a key that two parts have in common.
fn unique_keys(parts: &[Finished], split: &str) -> Result<(), Error> {
    if parts.len() < 2 {
        // A writer refuses repeated keys itself.
        return Ok(());
    }
    let mut all = keys::Keys::default();
    for (at, part) in parts.iter().enumerate() {
        for number in 0..part.shards.len() {
            keys::each(&part.files.path(&part.files.index(number)), |key| {
                if all.insert(key) {
                    return Ok(());
                }
                let first = first_with(&parts[..at], key)?.unwrap_or(at);
                let key = String::from_utf8_lossy(key).into_owned();
                Err(Error::Writer(WriterError::PartsKey {
                    key,
                    split: split.to_owned(),
                    parts: (first as u32, at as u32),
                }))
            })?;
        }
    }
    Ok(())
}

/// Returns the first part that has a key.
fn first_with(parts: &[Finished], wanted: &[u8]) -> Result<Option<usize>, Error> {
    for (at, part) in parts.iter().enumerate() {
        for number in 0..part.shards.len() {
            let mut found = false;
            keys::each(&part.files.path(&part.files.index(number)), |key| {
                found |= key == wanted;
                Ok(())
            })?;
            if found {
                return Ok(Some(at));
            }
        }
    }
    Ok(None)
}

/// Removes the split that is replaced: from the manifest first, then its files. No part has been moved yet.
fn clear(target: &SplitFiles, new: &Manifest, journal: &Journal<'_>, progress: &dyn Progress) -> Result<(), Error> {
    let directory = target.directory();
    manifest_store::joined(directory, new, target.split(), true)?;
    journal.write(Stage::Clearing)?;
    after(progress, Step::Clearing)?;
    manifest_store::remove_split(directory, target.split())?;
    after(progress, Step::Cleared)?;
    for path in [target.rejected(), target.packed(), target.plan()] {
        directory.remove(path)?;
    }
    target.written_files()?.iter().try_for_each(|path| directory.remove(path))?;
    directory.create_folder(names::INDEX_FOLDER)?;
    target.sync()
}

/// Moves a file, unless an interrupted commit has moved it.
fn put(part: &Directory, from: &Path, dataset: &Directory, to: &Path) -> Result<(), Error> {
    if part.rename_if_exists(from, dataset, to)? || dataset.exists(to)? {
        return Ok(());
    }
    let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
    Err(Error::io("move", &part.path().join(from))(missing))
}

/// Returns the name of the folder of parts while it is being removed.
fn removed(target: &SplitFiles) -> String {
    format!(".written-{}", target.split())
}

/// Removes the folder of parts. It is renamed first, so that a half-removed folder is not mistaken for parts.
fn remove(target: &SplitFiles) -> Result<(), Error> {
    let (directory, removed) = (target.directory(), removed(target));
    directory.remove_tree(&removed)?;
    directory.rename(Path::new(&part::staging(target)), directory, Path::new(&removed))?;
    directory.remove_tree(&removed)?;
    directory.sync()
}

/// The progress of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Files of the replaced split are being removed.
    Clearing,
    /// Parts are being moved.
    Moving,
}

/// The file that records the progress of a commit.
struct Journal<'a> {
    staging: &'a Directory,
}

impl Journal<'_> {
    const NAME: &'static str = "commit.json";

    fn read(&self) -> Result<Option<Stage>, Error> {
        Ok(self.staging.read(Self::NAME)?.map(|bytes| match &bytes[..] {
            b"{\"stage\": \"clearing\"}\n" => Stage::Clearing,
            _ => Stage::Moving,
        }))
    }

    fn write(&self, stage: Stage) -> Result<(), Error> {
        let name = if stage == Stage::Clearing { "clearing" } else { "moving" };
        files::publish(self.staging, Path::new(Self::NAME), format!("{{\"stage\": \"{name}\"}}\n").as_bytes())?;
        self.staging.sync()
    }
}
