//! A split that the tasks of an engine write: begins it, and commits one attempt of each task.

use super::keys::{self, Keys};
use super::task::{TaskOptions, TaskShard};
use crate::commit::Directory;
use crate::error::{DestinationError, WriterError};
use crate::ordered::ordered;
use crate::place::{NewFile, Place, StoreFolder};
use crate::progress::{Progress, Step, after};
use crate::sample::SampleSchema;
use crate::split::attempt;
use crate::split::files::{SplitFiles, lock_file, rejected_file, rejects_of};
use crate::split::manifest_store;
use crate::{CommittedSplit, Error, Options};
use shardtool_format::checksum::crc32c;
use shardtool_format::manifest::{Shard, Split};
use shardtool_format::names;
use std::fmt;
use std::path::Path;

/// Returns a new id for [`TaskOptions`].
pub fn new_write_id() -> String {
    attempt::new_write()
}

/// A split that the tasks of an engine write, in the process that begins and commits it. While it exists, other commands do
/// not write the split. The tasks use [`TaskWriter`](super::TaskWriter) with the same options.
pub struct TaskWrite(Box<dyn Write + Send + Sync>);

impl fmt::Debug for TaskWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskWrite").finish_non_exhaustive()
    }
}

impl TaskWrite {
    /// Begins a write, creating the folder if it does not exist. Features are given to [`TaskWrite::commit`] at the latest.
    ///
    /// # Errors
    /// [`DestinationError::SplitExists`], [`DestinationError::Locked`], [`WriterError::UnfinishedPack`], [`Error::Option`],
    /// [`Error::Name`], [`Error::Io`].
    pub fn begin(options: &TaskOptions) -> Result<Self, Error> {
        let (packing, _) = options.check()?;
        Ok(TaskWrite(match shardtool_store::is_url(&packing.destination) {
            true => Box::new(WriteOf::<StoreFolder>::begin(options, &packing)?),
            false => Box::new(WriteOf::<Directory>::begin(options, &packing)?),
        }))
    }

    /// Completes the split: checks the shards, of which of each task the first by name is taken, joins the lists of rejected
    /// inputs, names the shards in the manifest in the order of tasks, and removes the files of all other attempts. `options`
    /// have the features and labels of all tasks.
    ///
    /// # Errors
    /// [`WriterError::TaskShard`], [`WriterError::TasksKey`], [`DestinationError::SplitExists`],
    /// [`DestinationError::Incompatible`], [`Error::Stopped`], [`Error::Io`].
    pub fn commit(
        &self,
        options: &TaskOptions,
        shards: Vec<TaskShard>,
        progress: &dyn Progress,
    ) -> Result<CommittedSplit, Error> {
        let (packing, schema) = options.check()?;
        self.0.commit(&packing, &schema, shards, progress)
    }

    /// Gives the write up: removes the files of all attempts, as far as they have ended. `clean` removes those of later ones.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn abandon(&self) -> Result<(), Error> {
        self.0.remove_lost()
    }
}

/// [`TaskWrite`] for a kind of place.
trait Write {
    fn commit(
        &self,
        options: &Options,
        schema: &SampleSchema,
        shards: Vec<TaskShard>,
        progress: &dyn Progress,
    ) -> Result<CommittedSplit, Error>;
    fn remove_lost(&self) -> Result<(), Error>;
}

struct WriteOf<P: Place> {
    files: SplitFiles<P>,
    id: String,
    _lock: P::Lock,
}

impl<P: Place> WriteOf<P> {
    fn begin(options: &TaskOptions, packing: &Options) -> Result<Self, Error> {
        let (Options { destination, single_writer, .. }, split) = (packing, packing.split());
        let (place, lock) = P::join(destination, &lock_file(split), *single_writer)?;
        let files = SplitFiles::new(place, split);
        if files.place().manifest()?.is_some_and(|manifest| manifest.split(split).is_some()) {
            let (destination, split) = (destination.clone(), split.to_owned());
            return Err(Error::Destination(DestinationError::SplitExists { destination, split }));
        }
        if files.place().read(&files.plan())?.is_some() {
            return Err(Error::Writer(WriterError::UnfinishedPack { plan: files.path(&files.plan()) }));
        }
        Ok(WriteOf { files, id: options.write.clone(), _lock: lock })
    }

    /// Checks that all shards are as their tasks wrote them, and that no two have a key in common.
    fn check(&self, shards: &[TaskShard]) -> Result<(), Error> {
        let (place, mut all) = (self.files.place(), Keys::default());
        let index = |shard: &Shard| names::index_path(Path::new(&shard.file));
        let read = |i: usize| {
            let TaskShard { task, shard, .. } = &shards[i];
            let wrong =
                |path: &Path| Error::Writer(WriterError::TaskShard { task: *task, path: self.files.path(path) });
            let (path, file) = (Path::new(&shard.file), place.read(&index(shard))?);
            if place.length(path)? != Some(shard.bytes) {
                return Err(wrong(path));
            }
            file.filter(|file| crc32c(file) == shard.index_crc32c).ok_or_else(|| wrong(&index(shard)))
        };
        ordered(P::AT_ONCE, shards.len(), 2 * P::AT_ONCE.get(), read, |i, file: Result<Vec<u8>, Error>| {
            let (file, shard) = (file?, &shards[i].shard);
            keys::each_of(&file, &self.files.path(&index(shard)), |key| match all.insert(key) {
                true => Ok(()),
                false => Err(self.repeated(key, &shards[..i], shard)?),
            })
        })
    }

    /// Returns the error of a key that an earlier shard has, too.
    fn repeated(&self, key: &[u8], earlier: &[TaskShard], second: &Shard) -> Result<Error, Error> {
        let mut first = &second.file;
        for TaskShard { shard, .. } in earlier {
            let path = names::index_path(Path::new(&shard.file));
            let file = self.files.place().read(&path)?.unwrap_or_default();
            keys::each_of(&file, &self.files.path(&path), |found| {
                if found == key {
                    first = &shard.file;
                }
                Ok(())
            })?;
        }
        Ok(Error::Writer(WriterError::TasksKey {
            key: String::from_utf8_lossy(key).into_owned(),
            split: self.files.split().to_owned(),
            shards: (first.clone(), second.file.clone()),
        }))
    }

    /// Joins the lists of rejected inputs, in the order of tasks. Returns their number.
    fn publish_rejected(&self, shards: &[TaskShard]) -> Result<u64, Error> {
        let (place, count) = (self.files.place(), shards.iter().map(|shard| shard.rejected).sum());
        if count > 0 {
            let mut all = place.create(&self.files.rejected())?;
            for TaskShard { shard, .. } in shards.iter().filter(|shard| shard.rejected > 0) {
                let list = rejects_of(&shard.file);
                let lines = place
                    .read(&list)?
                    .ok_or_else(|| Error::io("read", &self.files.path(&list))(std::io::ErrorKind::NotFound.into()))?;
                all.write(&lines)?;
            }
            all.publish()?;
        }
        Ok(count)
    }
}

impl<P: Place> Write for WriteOf<P> {
    fn commit(
        &self,
        options: &Options,
        schema: &SampleSchema,
        mut shards: Vec<TaskShard>,
        progress: &dyn Progress,
    ) -> Result<CommittedSplit, Error> {
        let (files, place) = (&self.files, self.files.place());
        shards.sort_by(|a, b| (a.task, &a.shard.file).cmp(&(b.task, &b.shard.file)));
        shards.dedup_by_key(|shard| shard.task);
        self.check(&shards)?;
        let rejected = self.publish_rejected(&shards)?;
        if rejected == 0 {
            place.remove(&files.rejected())?;
        }
        place.create_folder(Path::new(names::INDEX_FOLDER))?;
        files.sync()?;
        after(progress, Step::Rejected)?;
        let entry =
            Split { name: options.split().to_owned(), shards: shards.into_iter().map(|shard| shard.shard).collect() };
        let manifest = manifest_store::of_schema(schema);
        manifest_store::add_splits(place, &manifest, std::slice::from_ref(&entry))?;
        after(progress, Step::Manifest)?;
        // No plan of an earlier split of this name is left for a later pack.
        place.remove(&files.packed())?;
        self.remove_lost()?;
        after(progress, Step::Finished)?;
        let rejected_file = (rejected > 0).then(|| files.path(Path::new(&rejected_file(&entry.name))));
        let classes = schema.classes.len() as u64;
        Ok(CommittedSplit { split: entry, rejected, rejected_file, classes, already_complete: false })
    }

    fn remove_lost(&self) -> Result<(), Error> {
        let place = self.files.place();
        // Ends the uploads of killed tasks.
        place.remove_joined(&self.files.lock())?;
        attempt::remove_lost(place, &|of| of.split == self.files.split() && of.write == self.id)
    }
}
