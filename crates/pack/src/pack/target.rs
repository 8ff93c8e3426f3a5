//! The destination of a pack: finds finished shards, and removes files of a replaced split.

use crate::error::DestinationError;
use crate::ordered::ordered;
use crate::place::{NewFile, Place};
use crate::progress::{Progress, Step, after};
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
pub(crate) fn complete<P: Place>(options: &Options, plan: &Plan) -> Result<Option<Split>, Error> {
    let Options { destination, split, force, .. } = options;
    match SplitFiles::<P>::open(destination, split)? {
        Some(files) if !force => complete::complete(&files, &PlanFile::new(options, plan, Stage::Packing)),
        _ => Ok(None),
    }
}

impl<P: Place> Target<P> {
    /// Locks the split in a folder, creating the folder if it does not exist.
    ///
    /// # Errors
    /// [`DestinationError::Locked`], [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let lock = files::lock_file(&options.split);
        let (place, lock) = P::begin(&options.destination, &lock, options.single_writer)?;
        let files = SplitFiles::new(place, &options.split);
        files.remove_abandoned()?;
        Ok(Target { files, _lock: lock })
    }

    /// Prepares the folder for a plan: writes the plan file, or finds it from an interrupted run. With `force`, removes
    /// the old split first: its entry in the manifest, then its files. Meanwhile the plan file records that they are
    /// being removed, so that any later run can continue a killed one.
    ///
    /// # Errors
    /// [`DestinationError`](crate::DestinationError), [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn prepare(&self, options: &Options, plan: &Plan, progress: &dyn Progress) -> Result<Remaining, Error> {
        let schema = manifest_store::of_schema(plan.schema());
        let now = PlanFile::new(options, plan, Stage::Packing);
        let place = self.files.place();
        let there = place.read(&self.files.plan())?.map(|bytes| PlanFile::parse(&bytes));
        let named = place.manifest()?.and_then(|manifest| manifest.split(self.files.split()).cloned());
        let same = there.as_ref().map(|there| match there.difference(&now) {
            Some(difference) => {
                let plan = self.files.path(&self.files.plan());
                Err(Error::Destination(DestinationError::OtherPlan { plan, difference }))
            }
            None => Ok(()),
        });
        let clearing = there.as_ref().is_some_and(|there| there.stage() == Stage::Clearing);
        // Another process may have completed the split before this one took the lock.
        if let Some(split) = complete::<P>(options, plan)? {
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

    /// Removes all files of the split's previous pack.
    fn clear(&self, options: &Options, plan: &Plan, new: &Manifest, progress: &dyn Progress) -> Result<(), Error> {
        let place = self.files.place();
        manifest_store::joined(place, new, self.files.split(), true)?;
        place.create_folder(Path::new(names::INDEX_FOLDER))?;
        let clearing = PlanFile::new(options, plan, Stage::Clearing);
        place.publish(&self.files.plan(), &clearing.to_json())?;
        place.sync(Path::new(""))?;
        after(progress, Step::Clearing)?;
        manifest_store::remove_split(place, self.files.split())?;
        after(progress, Step::Cleared)?;
        place.remove(&self.files.rejected())?;
        place.remove(&self.files.packed())?;
        place.remove_all(&self.files.written_files()?)?;
        self.files.sync()
    }

    /// Returns the line in the manifest of each shard that is finished: whose records and rejected inputs add up to its
    /// number of `images`. With `sha256`, the lines have the shards'.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finished(
        &self,
        images: impl ExactSizeIterator<Item = u64>,
        sha256: bool,
    ) -> Result<Vec<Option<Shard>>, Error> {
        let images: Vec<_> = images.collect();
        let names = self.files.place().names_at_once(Path::new(names::INDEX_FOLDER))?;
        let one = |shard: usize| {
            if !is_among(names.as_ref(), &self.files.index(shard)) {
                return Ok(None);
            }
            let Some(line) = self.files.finished(shard, sha256)? else { return Ok(None) };
            let accounted = line.records + self.rejects(shard)? == images[shard];
            Ok(accounted.then_some(line))
        };
        let mut shards = Vec::with_capacity(images.len());
        ordered(P::AT_ONCE, images.len(), 2 * P::AT_ONCE.get(), one, |_, line: Result<_, Error>| {
            shards.push(line?);
            Ok::<(), Error>(())
        })?;
        Ok(shards)
    }

    /// Returns the lists of rejected inputs that shards may have.
    fn shard_rejects(&self, plan: &Plan) -> Result<Vec<PathBuf>, Error> {
        let names = self.files.place().names_at_once(Path::new(names::INDEX_FOLDER))?;
        let all = (0..plan.shard_count()).map(|shard| self.files.shard_rejects(shard));
        Ok(all.filter(|path| is_among(names.as_ref(), path)).collect())
    }

    /// Writes the list of rejected inputs: those of the listing, then those of all shards. Returns their number; writes
    /// no file if it is 0.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish_rejected(&self, plan: &Plan) -> Result<u64, Error> {
        let (place, lists) = (self.files.place(), self.shard_rejects(plan)?);
        let mut count = plan.rejected().len() as u64;
        for list in &lists {
            count += rejects::count(place, list)?;
        }
        if count > 0 {
            let mut all = place.create(&self.files.rejected())?;
            all.write(&rejects::to_json_lines(plan.rejected()))?;
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
    pub(crate) fn keep_plan(
        &self,
        options: &Options,
        plan: &Plan,
        split: &Split,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let place = self.files.place();
        place.remove_all(&self.shard_rejects(plan)?)?;
        let kept = PlanFile::new(options, plan, Stage::Packing).completed(split);
        place.publish(&self.files.packed(), &kept.to_json())?;
        // Durable before the temporary plan file is removed, so that at least one of the two exists at any time.
        place.sync(Path::new(""))?;
        after(progress, Step::Kept)?;
        place.remove(&self.files.plan())?;
        place.sync(Path::new(""))?;
        after(progress, Step::Finished)
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
