//! The folder of a dataset as one pack finds it: what is finished, what is in the way, and what is to be cleared.

use crate::commit::{self, Lock};
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
    _lock: Lock,
}

/// What is left to do for a split.
pub(crate) enum Remaining {
    /// Its shards that are not finished, and its manifest.
    Shards,
    /// Nothing but to keep its plan as that of a complete split: the manifest names the split, and it is this one.
    PlanFile(Split),
    /// Nothing.
    Nothing(Split),
}

/// Returns the split that a plan would give, if it is complete already. Takes no lock and writes nothing, so that a
/// complete dataset may be read-only, and any number of processes may ask at once.
///
/// # Errors
/// [`DestinationError::PackedOtherwise`], [`DestinationError::ChangedSince`], [`Error::Read`] if a shard is missing, [`DestinationError::Manifest`],
/// [`Error::Io`].
pub(crate) fn complete(options: &Options, plan: &Plan) -> Result<Option<Split>, Error> {
    let Options { destination, split, force, .. } = options;
    match force {
        true => Ok(None),
        false => {
            complete::complete(&SplitFiles::new(destination, split), &PlanFile::new(options, plan, Stage::Packing))
        }
    }
}

impl Target {
    /// Locks the split's part of a folder, making the folder where it is not there.
    ///
    /// # Errors
    /// [`DestinationError::Locked`], [`Error::Io`].
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let files = SplitFiles::new(&options.destination, &options.split);
        commit::create_folder(files.folder())?;
        let lock = Lock::try_new(files.lock(), files.folder())?;
        Ok(Target { files, _lock: lock })
    }

    /// Makes the folder ready for a plan: puts its plan file in place, or finds it there from an interrupted run; and
    /// with `--force` removes what was there before. The old manifest goes first, then the files that it named; the
    /// plan file says meanwhile that they are being removed, so that a killed run is continued by any later one.
    ///
    /// # Errors
    /// Those of [`complete`], [`DestinationError::SplitExists`], [`DestinationError::OtherPlan`], [`DestinationError::InTheWay`], [`DestinationError::Incompatible`],
    /// [`DestinationError::Manifest`], [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn prepare(&self, options: &Options, plan: &Plan, progress: &dyn Progress) -> Result<Remaining, Error> {
        let schema = manifest_store::of_schema(plan.schema());
        let now = PlanFile::new(options, plan, Stage::Packing);
        let there = commit::read(&self.files.plan())?.map(|bytes| PlanFile::parse(&bytes));
        let named =
            manifest_store::read(self.files.folder())?.and_then(|manifest| manifest.split(self.files.split()).cloned());
        let same = there.as_ref().map(|there| match there.difference(&now) {
            Some(difference) => {
                Err(Error::Destination(DestinationError::OtherPlan { plan: self.files.plan(), difference }))
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
                manifest_store::joined(self.files.folder(), &schema, self.files.split(), false)?;
                return Ok(Remaining::Shards);
            }
            (Some(Err(other)), None) if !clearing && !options.force => return Err(other),
            (None, None) => self.files.nothing_in_the_way()?,
            _ => self.clear(options, plan, &schema, progress)?,
        }
        manifest_store::joined(self.files.folder(), &schema, self.files.split(), false)?;
        commit::create_folder(&self.files.folder().join(names::INDEX_FOLDER))?;
        commit::publish(self.files.plan(), &now.to_json())?;
        commit::sync_folder(self.files.folder())?;
        after(progress, Step::Plan)?;
        Ok(Remaining::Shards)
    }

    /// Removes everything that an earlier pack of the split wrote.
    fn clear(&self, options: &Options, plan: &Plan, new: &Manifest, progress: &dyn Progress) -> Result<(), Error> {
        manifest_store::joined(self.files.folder(), new, self.files.split(), true)?;
        commit::create_folder(&self.files.folder().join(names::INDEX_FOLDER))?;
        let clearing = PlanFile::new(options, plan, Stage::Clearing);
        commit::publish(self.files.plan(), &clearing.to_json())?;
        commit::sync_folder(self.files.folder())?;
        after(progress, Step::Clearing)?;
        manifest_store::remove_split(self.files.folder(), self.files.split())?;
        after(progress, Step::Cleared)?;
        commit::remove(&self.files.rejected())?;
        commit::remove(&self.files.packed())?;
        self.files.ours()?.iter().try_for_each(|path| commit::remove(path))?;
        self.files.sync()
    }

    /// A shard's line in the manifest, if it is finished and accounts, together with the list of its rejects, for each
    /// of `images`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finished(&self, shard: usize, images: u64) -> Result<Option<Shard>, Error> {
        let Some(line) = self.files.finished(shard)? else { return Ok(None) };
        let accounted = line.records + crate::rejects::count(&self.files.shard_rejects(shard))? == images;
        Ok(accounted.then_some(line))
    }

    /// Gathers the rejects of all shards behind those of the listing, into the file that names them; returns how many
    /// there are. No file where there are none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish_rejected(&self, plan: &Plan) -> Result<u64, Error> {
        let mut count = plan.rejected().len() as u64;
        for shard in 0..plan.shard_count() {
            count += crate::rejects::count(&self.files.shard_rejects(shard))?;
        }
        if count > 0 {
            let mut all = commit::Temporary::new(self.files.rejected())?;
            all.write(&crate::rejects::to_json_lines(plan.rejected()))?;
            for shard in 0..plan.shard_count() {
                let path = self.files.shard_rejects(shard);
                if let Some(lines) = commit::read(&path)? {
                    all.write(&lines)?;
                }
            }
            all.publish()?;
        }
        Ok(count)
    }

    /// Removes what only an interrupted pack needs, and keeps the plan as that of a complete split.
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
        for shard in 0..plan.shard_count() {
            commit::remove(&self.files.shard_rejects(shard))?;
        }
        let kept = PlanFile::new(options, plan, Stage::Packing).carried_out(split);
        commit::publish(self.files.packed(), &kept.to_json())?;
        // Durable before the plan's own name goes, so that at least one of the two is always there.
        commit::sync_folder(self.files.folder())?;
        after(progress, Step::Kept)?;
        commit::remove(&self.files.plan())?;
        commit::sync_folder(self.files.folder())
    }

    pub(crate) fn files(&self) -> &SplitFiles {
        &self.files
    }
}
