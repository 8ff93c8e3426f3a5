//! The destination of a pack: finds finished shards, and removes files of a replaced split.

use super::same_content;
use crate::error::DestinationError;
use crate::known_shards::KnownShards;
use crate::ordered::ordered;
use crate::place::{NewFile, Place};
use crate::progress::{Progress, Step, after};
use crate::shard_writer::{Finished, Written};
use crate::split::complete;
use crate::split::files::{self, SplitFiles};
use crate::split::manifest_store;
use crate::split::plan_file::{PlanFile, Stage};
use crate::{Error, Options, Plan, rejects};
use shardtool_format::manifest::{Manifest, Shard, Split};
use shardtool_format::names;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of a dataset, locked for one split.
pub(crate) struct Target<P: Place> {
    files: SplitFiles<P>,
    /// The plan file of a pack in parts, of which other processes may write the same shards.
    shared: Option<Vec<u8>>,
    _lock: P::Lock,
}

/// What remains to be done for a split.
pub(crate) enum Remaining {
    /// Its unfinished shards, and the manifest.
    Shards,
    /// Only keeping its plan file: the manifest already names the split, and the plan is the same.
    PlanFile(Split),
    /// Nothing.
    Nothing(Split),
}

/// Returns the split if this plan is already complete. Takes no lock and writes nothing, so that a complete dataset may
/// be read-only and any number of processes may call this at once.
///
/// # Errors
/// [`DestinationError`](crate::DestinationError); [`Error::Io`], also if a shard is missing.
pub(crate) fn complete<P: Place>(
    options: &Options,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<Option<Split>, Error> {
    let Options { destination, force, .. } = options;
    let Some(files) = SplitFiles::<P>::open(destination, options.split())?.filter(|_| !force) else { return Ok(None) };
    let same_content = |there: &Split| {
        // Of a stored plan, only the inputs of one part are known.
        if plan.is_stored() || there.shards.len() != plan.shard_count() {
            return Ok(false);
        }
        let known = KnownShards::of(&files, options, plan)?;
        let others = there.shards.iter().enumerate().filter(|(number, line)| !known.has(*number, line));
        let others: Vec<_> = others.collect();
        drop(known);
        same_content::makes(options, plan, &others, progress)
    };
    complete::complete(&files, &PlanFile::new(options, plan, Stage::Packing), &same_content)
}

/// Removes the lock of a pack that was killed after its split was complete: takes it and drops it. Leaves a lock that another
/// process holds, and one that may not be removed, as in a dataset that is only read.
pub(super) fn remove_left_lock<P: Place>(options: &Options) {
    let lock = files::lock_file(options.split());
    if let Ok(Some(files)) = SplitFiles::<P>::open(&options.destination, options.split())
        && let Ok(Some(_)) = files.place().length(Path::new(&lock))
    {
        let _ = Target::<P>::new(options);
    }
}

impl<P: Place> Target<P> {
    /// Locks the split in a folder, creating the folder if it does not exist.
    ///
    /// # Errors
    /// [`DestinationError::Locked`], [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        Self::own(&options.destination, options.split(), options.single_writer)
    }

    /// As [`Target::new`], of a split by its name.
    ///
    /// # Errors
    /// As [`Target::new`].
    pub(crate) fn own(destination: &Path, split: &str, single_writer: bool) -> Result<Self, Error> {
        let (place, lock) = P::begin(destination, &files::lock_file(split), single_writer)?;
        let files = SplitFiles::new(place, split);
        files.remove_abandoned()?;
        Ok(Target { files, shared: None, _lock: lock })
    }

    /// Joins the processes that pack parts of a split into a folder, creating the folder if it does not exist.
    ///
    /// # Errors
    /// As [`Target::new`].
    pub(crate) fn join(options: &Options) -> Result<Self, Error> {
        let lock = files::lock_file(options.split());
        let (place, lock) = P::join(&options.destination, &lock, options.single_writer)?;
        Ok(Target { files: SplitFiles::new(place, options.split()), shared: None, _lock: lock })
    }

    /// Prepares the folder for a part of a plan: the first part writes the plan file and the planned shards, the others
    /// check them. `planned` are the planned shards, unless the plan was read next to them. Returns `None` if the split was
    /// committed meanwhile.
    ///
    /// # Errors
    /// [`DestinationError`](crate::DestinationError), [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn prepare_part(
        mut self,
        options: &Options,
        plan: &Plan,
        planned: Option<&[u8]>,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, Error> {
        let now = PlanFile::new(options, plan, Stage::Packing);
        let schema = manifest_store::of_schema(plan.schema());
        let (place, path) = (self.files.place(), self.files.plan());
        loop {
            if let Some(bytes) = place.read(&path)? {
                let there = PlanFile::parse(&bytes);
                if let Some(difference) = there.difference(&now).or_else(|| there.other_stage(&now)) {
                    let plan = self.files.path(&path);
                    return Err(Error::Destination(DestinationError::OtherPlan { plan, difference }));
                }
                self.shared = Some(bytes);
                break;
            }
            if complete::<P>(options, plan, progress)?.is_some() {
                return Ok(None);
            }
            manifest_store::joined(place, &schema, self.files.split(), false)?;
            if let Err(error) = self.files.check_unoccupied() {
                // Another part may have begun meanwhile.
                match place.read(&path)? {
                    Some(_) => continue,
                    None => return Err(error),
                }
            }
            place.publish_new(&path, &now.to_json())?;
            place.sync(Path::new(""))?;
            after(progress, Step::Plan)?;
        }
        place.create_folder(Path::new(names::INDEX_FOLDER))?;
        // Every part writes the same bytes; other ones are damaged.
        if let Some(planned) = planned
            && place.read(&self.files.planned())?.is_none_or(|there| there != planned)
        {
            place.create_folder(&self.files.plan_folder())?;
            place.publish(&self.files.planned(), planned)?;
            place.sync(&self.files.plan_folder())?;
        }
        Ok(Some(self))
    }

    /// Puts a shard in place. In a pack in parts, drops one that another process has finished.
    ///
    /// # Errors
    /// [`DestinationError::PlanGone`], [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn commit(
        &self,
        shard: Finished<P>,
        progress: &dyn Progress,
        written: &mut Written,
    ) -> Result<(), Error> {
        if let Some(plan) = &self.shared {
            let place = self.files.place();
            let unchanged = place.read(&self.files.plan())?.as_ref() == Some(plan);
            if place.length(&self.files.index(shard.number()))?.is_some() && (unchanged || self.is_committed()?) {
                return Ok(());
            }
            if !unchanged {
                let plan = self.files.path(&self.files.plan());
                return Err(Error::Destination(DestinationError::PlanGone { plan }));
            }
        }
        shard.commit(&self.files, progress, written)
    }

    /// Returns whether the manifest names the split.
    fn is_committed(&self) -> Result<bool, Error> {
        Ok(self.files.place().manifest()?.is_some_and(|manifest| manifest.split(self.files.split()).is_some()))
    }

    /// Prepares the folder for a plan: writes the plan file, or finds it from an interrupted run. With `force`, removes
    /// the old split first: its entry in the manifest, then its files. Meanwhile the plan file records that they are
    /// being removed, so that any later run can continue a killed one.
    ///
    /// # Errors
    /// [`DestinationError`](crate::DestinationError), [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn prepare(&self, options: &Options, plan: &Plan, progress: &dyn Progress) -> Result<Remaining, Error> {
        let mut schema = manifest_store::of_schema(plan.schema());
        let now = PlanFile::new(options, plan, Stage::Packing);
        let place = self.files.place();
        if options.grows
            && let Some(dataset) = place.manifest()?
        {
            schema = manifest_store::grown(place.path(), schema, &dataset, plan.split())?;
        }
        let there = place.read(&self.files.plan())?.map(|bytes| PlanFile::parse(&bytes));
        let named = place.manifest()?.and_then(|manifest| manifest.split(self.files.split()).cloned());
        let there = match there {
            Some(there) if !options.force && self.is_moved(&there, &now, options, plan, progress)? => {
                let there = there.with_listing_of(&now);
                place.publish(&self.files.plan(), &there.to_json())?;
                Some(there)
            }
            there => there,
        };
        let same = there.as_ref().map(|there| match there.difference(&now) {
            Some(difference) => {
                let plan = self.files.path(&self.files.plan());
                Err(Error::Destination(DestinationError::OtherPlan { plan, difference }))
            }
            None => Ok(()),
        });
        let clearing = there.as_ref().is_some_and(|there| there.stage() == Stage::Clearing);
        // Another process may have completed the split before this one took the lock.
        if let Some(split) = complete::<P>(options, plan, progress)? {
            return Ok(Remaining::Nothing(split));
        }
        match (same, named) {
            (Some(Ok(())), Some(split)) if !clearing && !options.force => return Ok(Remaining::PlanFile(split)),
            (_, Some(_)) if !options.force => {
                return Err(Error::Destination(DestinationError::SplitExists {
                    destination: self.files.folder().to_owned(),
                    split: self.files.split().to_owned(),
                }));
            }
            (Some(Ok(())), None) if !clearing => {
                manifest_store::joined(place, &schema, self.files.split(), false)?;
                return Ok(Remaining::Shards);
            }
            (Some(Err(other)), None) if !clearing && !options.force => return Err(other),
            (None, None) => self.files.check_unoccupied()?,
            _ => self.clear(options, plan, &schema, progress)?,
        }
        manifest_store::joined(place, &schema, self.files.split(), false)?;
        place.create_folder(Path::new(names::INDEX_FOLDER))?;
        place.publish(&self.files.plan(), &now.to_json())?;
        place.sync(Path::new(""))?;
        after(progress, Step::Plan)?;
        Ok(Remaining::Shards)
    }

    /// Returns whether an interrupted pack had the same source under other times: it makes the shards that are finished.
    fn is_moved(
        &self,
        there: &PlanFile,
        now: &PlanFile,
        options: &Options,
        plan: &Plan,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        if !there.differs_in_listing(now) || there.stage() == Stage::Clearing {
            return Ok(false);
        }
        let planned: Vec<_> = (0..plan.shard_count()).map(|shard| (shard, plan.sample_count(shard).images)).collect();
        let finished = self.finished(&planned, options.sha256)?;
        let finished: Vec<_> = finished.iter().enumerate().filter_map(|(i, line)| Some((i, line.as_ref()?))).collect();
        same_content::makes(options, plan, &finished, progress)
    }

    /// Removes all files of the split's previous pack.
    fn clear(&self, options: &Options, plan: &Plan, new: &Manifest, progress: &dyn Progress) -> Result<(), Error> {
        let place = self.files.place();
        manifest_store::joined(place, new, self.files.split(), true)?;
        if let Some(manifest) = place.manifest()?
            && manifest.split(self.files.split()).is_some()
        {
            manifest_store::refuse_versions(place.path(), &manifest, "replacing a split")?;
        }
        place.create_folder(Path::new(names::INDEX_FOLDER))?;
        let clearing = PlanFile::new(options, plan, Stage::Clearing);
        place.publish(&self.files.plan(), &clearing.to_json())?;
        place.sync(Path::new(""))?;
        after(progress, Step::Clearing)?;
        manifest_store::remove_split(place, self.files.split())?;
        after(progress, Step::Cleared)?;
        place.remove(&self.files.rejected())?;
        place.remove(&self.files.packed())?;
        place.remove(&self.files.times())?;
        self.files.remove_planned()?;
        place.remove_all(&self.files.written_files()?)?;
        self.files.sync()
    }

    /// Returns the line in the manifest of each of these shards, given by number and number of images, that is finished:
    /// whose records and rejected inputs add up to its images. With `sha256`, the lines have the shards'.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finished(&self, planned: &[(usize, u64)], sha256: bool) -> Result<Vec<Option<Shard>>, Error> {
        let names = self.files.place().names_at_once(Path::new(names::INDEX_FOLDER))?;
        let one = |i: usize| {
            let (shard, images) = planned[i];
            if !is_among(names.as_ref(), &self.files.index(shard)) {
                return Ok(None);
            }
            let Some(line) = self.files.finished(shard, sha256)? else { return Ok(None) };
            let accounted = line.records + self.rejects(shard)? == images;
            Ok(accounted.then_some(line))
        };
        let mut shards = Vec::with_capacity(planned.len());
        ordered(P::AT_ONCE, planned.len(), 2 * P::AT_ONCE.get(), one, |_, line: Result<_, Error>| {
            shards.push(line?);
            Ok::<(), Error>(())
        })?;
        Ok(shards)
    }

    /// Returns the lists of rejected inputs that shards may have.
    pub(crate) fn shard_rejects(&self, shards: usize) -> Result<Vec<PathBuf>, Error> {
        let names = self.files.place().names_at_once(Path::new(names::INDEX_FOLDER))?;
        let all = (0..shards).map(|shard| self.files.shard_rejects(shard));
        Ok(all.filter(|path| is_among(names.as_ref(), path)).collect())
    }

    /// Writes the list of rejected inputs: those of the listing as lines of JSON, then those of all shards. Returns their
    /// number; writes no file if it is 0.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish_rejected(&self, listed: &[u8], shards: usize) -> Result<u64, Error> {
        let (place, lists) = (self.files.place(), self.shard_rejects(shards)?);
        let mut count = rejects::lines(listed);
        for list in &lists {
            count += rejects::count(place, list)?;
        }
        if count > 0 {
            let mut all = place.create(&self.files.rejected())?;
            all.write(listed)?;
            for list in &lists {
                if let Some(lines) = place.read(list)? {
                    all.write(&lines)?;
                }
            }
            all.publish()?;
        }
        Ok(count)
    }

    /// Removes the files of an interrupted pack, and keeps the plan file of the complete split.
    ///
    /// # Errors
    /// [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn keep_plan(&self, plan: PlanFile, split: &Split, progress: &dyn Progress) -> Result<(), Error> {
        let place = self.files.place();
        place.remove_all(&self.shard_rejects(split.shards.len())?)?;
        let kept = plan.completed(split);
        place.publish(&self.files.packed(), &kept.to_json())?;
        // Durable before the temporary plan file is removed, so that at least one of the two exists at any time.
        place.sync(Path::new(""))?;
        after(progress, Step::Kept)?;
        self.files.remove_planned()?;
        place.remove(&self.files.plan())?;
        place.sync(Path::new(""))?;
        after(progress, Step::Finished)
    }

    /// Removes everything of an unfinished pack, so that a later one may have another plan. Its plan file is removed last.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn abandon(&self) -> Result<(), Error> {
        let place = self.files.place();
        self.files.remove_planned()?;
        place.remove_all(&self.files.written_files()?)?;
        place.remove(&self.files.rejected())?;
        place.remove(&self.files.times())?;
        place.remove(&self.files.plan())?;
        place.remove_folder(Path::new(names::INDEX_FOLDER))?;
        place.sync(Path::new(""))
    }

    /// Returns the number of rejected inputs of a shard that is not yet in the manifest.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn rejects(&self, shard: usize) -> Result<u64, Error> {
        rejects::count(self.files.place(), &self.files.shard_rejects(shard))
    }

    pub(crate) fn files(&self) -> &SplitFiles<P> {
        &self.files
    }
}

/// Returns whether a file may exist: its name is among those of its folder, if they are known.
fn is_among(names: Option<&HashSet<OsString>>, path: &Path) -> bool {
    names.is_none_or(|names| path.file_name().is_some_and(|name| names.contains(name)))
}
