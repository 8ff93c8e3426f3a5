//! The destination of a pack: finds finished shards, and removes files of a replaced split.

use crate::commit::{self, Directory, Lock};
use crate::error::DestinationError;
use crate::progress::{Progress, Step, after};
use crate::split::complete;
use crate::split::files::SplitFiles;
use crate::split::manifest_store;
use crate::split::plan_file::{PlanFile, Stage};
use crate::{Error, Options, Plan};
use shardtool_format::manifest::{Manifest, Shard, Split};
use shardtool_format::names;

/// The folder of a dataset, locked for one split.
pub(crate) struct Target {
    files: SplitFiles,
    _split: Lock,
    _dataset: Lock,
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
pub(crate) fn complete(options: &Options, plan: &Plan) -> Result<Option<Split>, Error> {
    let Options { destination, split, force, .. } = options;
    match SplitFiles::open(destination, split)? {
        Some(files) if !force => complete::complete(&files, &PlanFile::new(options, plan, Stage::Packing)),
        _ => Ok(None),
    }
}

impl Target {
    /// Locks the split in a folder, creating the folder if it does not exist.
    ///
    /// # Errors
    /// [`DestinationError::Locked`], [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let directory = Directory::create(&options.destination)?;
        let dataset = Lock::share_dataset(&directory)?;
        let files = SplitFiles::new(directory, &options.split);
        let split = Lock::own(files.directory(), &files.lock(), files.folder())?;
        files.remove_abandoned()?;
        Ok(Target { files, _split: split, _dataset: dataset })
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
        let directory = self.files.directory();
        let there = directory.read(self.files.plan())?.map(|bytes| PlanFile::parse(&bytes));
        let named = manifest_store::read(directory)?.and_then(|manifest| manifest.split(self.files.split()).cloned());
        let same = there.as_ref().map(|there| match there.difference(&now) {
            Some(difference) => {
                let plan = self.files.path(&self.files.plan());
                Err(Error::Destination(DestinationError::OtherPlan { plan, difference }))
            }
            None => Ok(()),
        });
        let clearing = there.as_ref().is_some_and(|there| there.stage() == Stage::Clearing);
        // Another process may have completed the split before this one took the lock.
        if let Some(split) = complete(options, plan)? {
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
                manifest_store::joined(directory, &schema, self.files.split(), false)?;
                return Ok(Remaining::Shards);
            }
            (Some(Err(other)), None) if !clearing && !options.force => return Err(other),
            (None, None) => self.files.check_unoccupied()?,
            _ => self.clear(options, plan, &schema, progress)?,
        }
        manifest_store::joined(directory, &schema, self.files.split(), false)?;
        directory.create_folder(names::INDEX_FOLDER)?;
        commit::publish(directory, &self.files.plan(), &now.to_json())?;
        directory.sync()?;
        after(progress, Step::Plan)?;
        Ok(Remaining::Shards)
    }

    /// Removes all files of the split's previous pack.
    fn clear(&self, options: &Options, plan: &Plan, new: &Manifest, progress: &dyn Progress) -> Result<(), Error> {
        let directory = self.files.directory();
        manifest_store::joined(directory, new, self.files.split(), true)?;
        directory.create_folder(names::INDEX_FOLDER)?;
        let clearing = PlanFile::new(options, plan, Stage::Clearing);
        commit::publish(directory, &self.files.plan(), &clearing.to_json())?;
        directory.sync()?;
        after(progress, Step::Clearing)?;
        manifest_store::remove_split(directory, self.files.split())?;
        after(progress, Step::Cleared)?;
        directory.remove(self.files.rejected())?;
        directory.remove(self.files.packed())?;
        self.files.written_files()?.iter().try_for_each(|path| directory.remove(path))?;
        self.files.sync()
    }

    /// Returns a shard's line in the manifest if the shard is finished and its records and rejected inputs add up to
    /// `images`. With `sha256`, the line has the shard's.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finished(&self, shard: usize, images: u64, sha256: bool) -> Result<Option<Shard>, Error> {
        let Some(line) = self.files.finished(shard, sha256)? else { return Ok(None) };
        let accounted = line.records + self.rejects(shard)? == images;
        Ok(accounted.then_some(line))
    }

    /// Writes the list of rejected inputs: those of the listing, then those of all shards. Returns their number; writes
    /// no file if it is 0.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish_rejected(&self, plan: &Plan) -> Result<u64, Error> {
        let mut count = plan.rejected().len() as u64;
        for shard in 0..plan.shard_count() {
            count += self.rejects(shard)?;
        }
        if count > 0 {
            let directory = self.files.directory();
            let mut all = commit::Temporary::new(directory, &self.files.rejected())?;
            all.write(&crate::rejects::to_json_lines(plan.rejected()))?;
            for shard in 0..plan.shard_count() {
                if let Some(lines) = directory.read(self.files.shard_rejects(shard))? {
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
        let directory = self.files.directory();
        for shard in 0..plan.shard_count() {
            directory.remove(self.files.shard_rejects(shard))?;
        }
        let kept = PlanFile::new(options, plan, Stage::Packing).completed(split);
        commit::publish(directory, &self.files.packed(), &kept.to_json())?;
        // Durable before the temporary plan file is removed, so that at least one of the two exists at any time.
        directory.sync()?;
        after(progress, Step::Kept)?;
        directory.remove(self.files.plan())?;
        directory.sync()?;
        after(progress, Step::Finished)
    }

    /// Returns the number of rejected inputs of a shard that is not yet in the manifest.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn rejects(&self, shard: usize) -> Result<u64, Error> {
        crate::rejects::count(&self.files.path(&self.files.shard_rejects(shard)))
    }

    pub(crate) fn files(&self) -> &SplitFiles {
        &self.files
    }
}
