//! The folder of a dataset as one pack finds it: what is finished, what is in the way, and what is to be cleared.

use crate::commit::{self, Lock};
use crate::pack::{Progress, Step, after};
use crate::plan_file::{PlanFile, Stage};
use crate::{Error, Options, Plan, catalogue};
use shardtool_format::checksum::crc32c;
use shardtool_format::index::Index;
use shardtool_format::manifest::{Manifest, Shard, Split};
use shardtool_format::names;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder of a dataset, locked for one split.
pub(crate) struct Target {
    folder: PathBuf,
    split: String,
    _lock: Lock,
}

/// What is left to do for a split.
pub(crate) enum Left {
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
/// [`Error::PackedOtherwise`], [`Error::ChangedSince`], [`Error::Read`] if a shard is missing, [`Error::Manifest`],
/// [`Error::Io`].
pub(crate) fn complete(options: &Options, plan: &Plan) -> Result<Option<Split>, Error> {
    let Options { destination, split, force, .. } = options;
    // An unfinished pack decides: it may be replacing the split.
    if *force || commit::read(&plan_path(destination, split))?.is_some() {
        return Ok(None);
    }
    let Some(kept) = commit::read(&packed_path(destination, split))? else { return Ok(None) };
    let Some(there) = catalogue::read(destination)?.and_then(|manifest| manifest.split(split).cloned()) else {
        return Ok(None);
    };
    let kept = PlanFile::parse(&kept);
    let (destination, split) = (destination.clone(), split.clone());
    if let Some(difference) = kept.difference(&PlanFile::new(options, plan, Stage::Packing)) {
        return Err(Error::PackedOtherwise { destination, split, difference });
    }
    if !kept.gave(&there) {
        return Err(Error::ChangedSince { destination, split });
    }
    let indexes = destination.join(names::INDEX_FOLDER);
    for shard in &there.shards {
        for path in [destination.join(&shard.file), indexes.join(names::index_file(&shard.file))] {
            if let Err(error) = std::fs::metadata(&path) {
                return Err(Error::io("read", &path)(error));
            }
        }
    }
    Ok(Some(there))
}

/// The plan of an unfinished pack.
fn plan_path(folder: &Path, split: &str) -> PathBuf {
    folder.join(format!(".pack-{split}.json"))
}

/// The plan of a complete split.
fn packed_path(folder: &Path, split: &str) -> PathBuf {
    folder.join(format!(".packed-{split}.json"))
}

/// The report of inputs that a pack rejected.
pub(crate) fn rejected_path(folder: &Path, split: &str) -> PathBuf {
    folder.join(format!("rejected-{split}.jsonl"))
}

impl Target {
    /// Locks the split's part of a folder, making the folder where it is not there.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Io`].
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let folder = options.destination.clone();
        commit::create_folder(&folder)?;
        let lock = Lock::try_new(folder.join(format!(".pack-{}.lock", options.split)), &folder)?;
        Ok(Target { folder, split: options.split.clone(), _lock: lock })
    }

    /// Makes the folder ready for a plan: puts its plan file in place, or finds it there from an interrupted run; and
    /// with `--force` removes what was there before. The old manifest goes first, then the files that it named; the
    /// plan file says meanwhile that they are being removed, so that a killed run is continued by any later one.
    ///
    /// # Errors
    /// Those of [`complete`], [`Error::SplitExists`], [`Error::OtherPlan`], [`Error::InTheWay`], [`Error::Incompatible`],
    /// [`Error::Manifest`], [`Error::Stopped`], [`Error::Io`].
    pub(crate) fn prepare(&self, options: &Options, plan: &Plan, progress: &dyn Progress) -> Result<Left, Error> {
        let described = catalogue::of_plan(plan);
        let now = PlanFile::new(options, plan, Stage::Packing);
        let there = commit::read(&self.plan_file())?.map(|bytes| PlanFile::parse(&bytes));
        let named = catalogue::read(&self.folder)?.and_then(|manifest| manifest.split(&self.split).cloned());
        let same = there.as_ref().map(|there| match there.difference(&now) {
            Some(difference) => Err(Error::OtherPlan { plan: self.plan_file(), difference }),
            None => Ok(()),
        });
        let clearing = there.as_ref().is_some_and(|there| there.stage() == Stage::Clearing);
        // Another process may have completed the split before this one took the lock.
        if let Some(split) = complete(options, plan)? {
            return Ok(Left::Nothing(split));
        }
        match (same, named) {
            (Some(Ok(())), Some(split)) if !clearing && !options.force => return Ok(Left::PlanFile(split)),
            (_, Some(_)) if !options.force => {
                return Err(Error::SplitExists { destination: self.folder.clone(), split: self.split.clone() });
            }
            (Some(Ok(())), None) if !clearing => {
                catalogue::joined(&self.folder, &described, &self.split, false)?;
                return Ok(Left::Shards);
            }
            (Some(Err(other)), None) if !clearing && !options.force => return Err(other),
            (None, None) => self.nothing_in_the_way()?,
            _ => self.clear(options, plan, &described, progress)?,
        }
        catalogue::joined(&self.folder, &described, &self.split, false)?;
        commit::create_folder(&self.folder.join(names::INDEX_FOLDER))?;
        commit::publish(self.plan_file(), &now.to_json())?;
        commit::sync_folder(&self.folder)?;
        after(progress, Step::Plan)?;
        Ok(Left::Shards)
    }

    /// Removes everything that an earlier pack of the split wrote.
    fn clear(&self, options: &Options, plan: &Plan, new: &Manifest, progress: &dyn Progress) -> Result<(), Error> {
        catalogue::joined(&self.folder, new, &self.split, true)?;
        commit::create_folder(&self.folder.join(names::INDEX_FOLDER))?;
        let clearing = PlanFile::new(options, plan, Stage::Clearing);
        commit::publish(self.plan_file(), &clearing.to_json())?;
        commit::sync_folder(&self.folder)?;
        after(progress, Step::Clearing)?;
        catalogue::remove_split(&self.folder, &self.split)?;
        after(progress, Step::Cleared)?;
        commit::remove(&self.rejected_file())?;
        commit::remove(&packed_path(&self.folder, &self.split))?;
        self.ours()?.iter().try_for_each(|path| commit::remove(path))?;
        self.sync()
    }

    /// Files that packs of this split wrote, or seem to have written. Indexes first: an index commits its shard, so a
    /// shard must not outlive its removal and look finished.
    fn ours(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = vec![];
        for folder in [self.folder.join(names::INDEX_FOLDER), self.folder.clone()] {
            let entries = match std::fs::read_dir(&folder) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(Error::io("list", &folder))?,
            };
            for entry in entries {
                let entry = entry.map_err(Error::io("list", &folder))?;
                if entry.file_name().to_str().is_some_and(|name| self.is_ours(name)) {
                    found.push(entry.path());
                }
            }
        }
        Ok(found)
    }

    /// Whether a pack of this split writes a file of this name, whatever its plan: a shard, its index, the list of its
    /// rejects, or one of these under its temporary name.
    fn is_ours(&self, name: &str) -> bool {
        let name = name.strip_prefix('.').map_or(name, |name| name.strip_suffix(".tmp").unwrap_or(name));
        let name = name.strip_prefix('.').unwrap_or(name);
        let Some(rest) = name.strip_prefix(&self.split).and_then(|name| name.strip_prefix('-')) else { return false };
        let suffix = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = rest.len() - suffix.len();
        digits >= 5 && matches!(suffix, ".tfrecord" | ".tfrecord.index" | ".rejected.jsonl")
    }

    fn nothing_in_the_way(&self) -> Result<(), Error> {
        let hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        match self.ours()?.into_iter().find(|path| !hidden(path)) {
            Some(path) => Err(Error::InTheWay { path }),
            None => Ok(()),
        }
    }

    /// A shard's line in the manifest, if it is finished: its index is in place, says how long the shard is, and
    /// accounts, together with the list of rejects, for each of `images`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finished(&self, shard: usize, images: u64) -> Result<Option<Shard>, Error> {
        let Some(file) = commit::read(&self.index(shard))? else { return Ok(None) };
        let Ok(index) = Index::parse(&file) else { return Ok(None) };
        let whole = (0..index.columns().len()).all(|column| index.check(&file, column).is_ok());
        let long = std::fs::metadata(self.shard(shard)).is_ok_and(|meta| meta.len() == index.shard_bytes());
        let accounted = index.records() + crate::reject::count(&self.shard_rejects(shard))? == images;
        Ok((whole && long && accounted).then(|| Shard {
            file: names::shard_file(&self.split, shard),
            records: index.records(),
            bytes: index.shard_bytes(),
            crc32c: index.shard_crc(),
            index_bytes: file.len() as u64,
            index_crc32c: crc32c(&file),
        }))
    }

    /// Gathers the rejects of all shards behind those of the listing, into the file that names them; returns how many
    /// there are. No file where there are none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn publish_rejected(&self, plan: &Plan) -> Result<u64, Error> {
        let mut count = plan.rejected().len() as u64;
        for shard in 0..plan.shard_count() {
            count += crate::reject::count(&self.shard_rejects(shard))?;
        }
        if count > 0 {
            let mut all = commit::Temporary::new(self.rejected_file())?;
            all.write(&crate::reject::to_json_lines(plan.rejected()))?;
            for shard in 0..plan.shard_count() {
                let path = self.shard_rejects(shard);
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
            commit::remove(&self.shard_rejects(shard))?;
        }
        let kept = PlanFile::new(options, plan, Stage::Packing).carried_out(split);
        commit::publish(packed_path(&self.folder, &self.split), &kept.to_json())?;
        // Durable before the plan's own name goes, so that at least one of the two is always there.
        commit::sync_folder(&self.folder)?;
        after(progress, Step::Kept)?;
        commit::remove(&self.plan_file())?;
        commit::sync_folder(&self.folder)
    }

    /// Makes the names of shards and indexes durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn sync(&self) -> Result<(), Error> {
        commit::sync_folder(&self.folder.join(names::INDEX_FOLDER))?;
        commit::sync_folder(&self.folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn shard(&self, shard: usize) -> PathBuf {
        self.folder.join(names::shard_file(&self.split, shard))
    }

    pub(crate) fn index(&self, shard: usize) -> PathBuf {
        let index = names::index_file(&names::shard_file(&self.split, shard));
        self.folder.join(names::INDEX_FOLDER).join(index)
    }

    /// Rejects of one shard, until the manifest is in place.
    pub(crate) fn shard_rejects(&self, shard: usize) -> PathBuf {
        let shard = names::shard_file(&self.split, shard);
        let name = format!(".{}.rejected.jsonl", shard.trim_end_matches(".tfrecord"));
        self.folder.join(names::INDEX_FOLDER).join(name)
    }

    pub(crate) fn rejected_file(&self) -> PathBuf {
        rejected_path(&self.folder, &self.split)
    }

    fn plan_file(&self) -> PathBuf {
        plan_path(&self.folder, &self.split)
    }
}
