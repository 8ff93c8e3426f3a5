//! Writes the samples of one attempt of a task: a shard with a name that no other attempt has.

use super::keys::Keys;
use super::sample::{self, Sample};
use super::{WriterError, WriterOptions};
use crate::commit::Directory;
use crate::error::SampleProblem;
use crate::place::{Place, StoreFolder};
use crate::record::RecordWriter;
use crate::sample::SampleSchema;
use crate::shard_writer::{ShardWriter, Written};
use crate::split::attempt;
use crate::split::files::{SplitFiles, lock_file};
use crate::{Error, Options, Reason, Rejection};
use shardtool_format::manifest::{DType, Shard};
use shardtool_format::names;
use std::fmt;
use std::path::Path;

/// Options of a split that the tasks of an engine write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Folder or URL, split, and how samples are stored; `part`, `force` and `shard_size` are not used.
    pub writer: WriterOptions,
    /// The id of the write, the same for all its tasks: [`new_write_id`](super::new_write_id).
    pub write: String,
    /// Whether nothing else writes to the destination, a store that does not compare versions of objects.
    pub single_writer: bool,
}

impl TaskOptions {
    /// Returns options for a write.
    pub fn new(writer: WriterOptions, write: impl Into<String>) -> Self {
        TaskOptions { writer, write: write.into(), single_writer: false }
    }

    /// Checks ranges and names. Returns the options of a pack and the schema.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Name`].
    pub(super) fn check(&self) -> Result<(Options, SampleSchema), Error> {
        if !attempt::is_write(&self.write) {
            return Err(Error::Option { option: "write id", expected: "16 decimal digits" });
        }
        let (mut options, schema) = self.writer.check()?;
        options.destination = shardtool_store::local_path(&options.destination);
        options.single_writer = self.single_writer;
        Ok((options, schema))
    }
}

/// The shard that an attempt of a task has finished.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskShard {
    /// The number of the task, from 0.
    pub task: u64,
    /// The shard's line in the manifest.
    pub shard: Shard,
    /// Number of rejected samples.
    pub rejected: u64,
}

/// Writes the samples of one attempt of a task into one shard. Attempts, of this task or of others, share no file, so that an
/// engine may run a task again at any time, also while another attempt is still running:
/// [`TaskWrite::commit`](super::TaskWrite::commit) names one attempt of each task in the manifest, and removes the others'
/// files. Dropped before [`TaskWriter::finish`], it leaves nothing.
pub struct TaskWriter(Box<dyn Attempt + Send>);

impl fmt::Debug for TaskWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskWriter").finish_non_exhaustive()
    }
}

impl TaskWriter {
    /// Begins an attempt of a task. The folder or store is that of all tasks.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Name`], [`Error::Destination`] while a process writes the whole split, [`Error::Io`].
    pub fn open(options: &TaskOptions, task: u64) -> Result<Self, Error> {
        let url = shardtool_store::is_url(&shardtool_store::local_path(&options.writer.destination));
        Ok(TaskWriter(match url {
            true => Box::new(AttemptOf::<StoreFolder>::open(options, task)?),
            false => Box::new(AttemptOf::<Directory>::open(options, task)?),
        }))
    }

    /// Writes a sample.
    ///
    /// # Errors
    /// [`WriterError::Sample`], after which the writer can take the next sample; [`Error::Io`], after which it cannot.
    pub fn write(&mut self, sample: &Sample<'_>) -> Result<(), Error> {
        self.0.write(sample)
    }

    /// Adds features that the samples written from now on may have.
    ///
    /// # Errors
    /// [`Error::Option`] if a name is taken or not valid.
    pub fn add_features(&mut self, features: Vec<(String, DType)>) -> Result<(), Error> {
        self.0.add_features(features)
    }

    /// Adds a sample that cannot be written to the list of rejected inputs, with the reason.
    pub fn reject(&mut self, input: &str, reason: &str) {
        self.0.reject(input, reason);
    }

    /// Makes the shard and its index durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self) -> Result<TaskShard, Error> {
        self.0.finish()
    }
}

/// [`TaskWriter`] for a kind of place.
trait Attempt {
    fn add_features(&mut self, features: Vec<(String, DType)>) -> Result<(), Error>;
    fn write(&mut self, sample: &Sample<'_>) -> Result<(), Error>;
    fn reject(&mut self, input: &str, reason: &str);
    fn finish(self: Box<Self>) -> Result<TaskShard, Error>;
}

struct AttemptOf<P: Place> {
    given: TaskOptions,
    options: Options,
    schema: SampleSchema,
    files: SplitFiles<P>,
    task: u64,
    shard: ShardWriter<P>,
    written: Keys,
    rejected: u64,
    _lock: P::Lock,
}

impl<P: Place> AttemptOf<P> {
    fn open(options: &TaskOptions, task: u64) -> Result<Self, Error> {
        let (packing, schema) = options.check()?;
        let (Options { destination, single_writer, .. }, split) = (&packing, packing.split());
        let (place, lock) = P::join(destination, &lock_file(split), *single_writer)?;
        place.create_folder(Path::new(names::INDEX_FOLDER))?;
        let files = SplitFiles::new(place, split);
        let name = attempt::new_shard(split, &options.write, task as usize);
        let shard = ShardWriter::with_name(&packing, &schema, files.place(), task as usize, name)?;
        let written = Keys::default();
        let given = options.clone();
        Ok(AttemptOf { given, options: packing, schema, files, task, shard, written, rejected: 0, _lock: lock })
    }
}

impl<P: Place> Attempt for AttemptOf<P> {
    fn add_features(&mut self, features: Vec<(String, DType)>) -> Result<(), Error> {
        self.given.writer.features.extend(features);
        self.schema = self.given.check()?.1;
        Ok(())
    }

    fn write(&mut self, sample: &Sample<'_>) -> Result<(), Error> {
        let key = sample.key;
        let problem = |problem: SampleProblem| {
            Error::Writer(WriterError::Sample { key: key.to_owned(), problem: Box::new(problem) })
        };
        if self.written.contains(key.as_bytes()) {
            return Err(problem(SampleProblem::DuplicateKey));
        }
        let packed = sample::resolve(sample, &self.schema, &self.options.arrays).map_err(problem)?;
        let image = sample::image(sample, &self.schema).map_err(problem)?;
        let mut records = RecordWriter::new(&self.schema, &self.options);
        let record = records.sample(&packed, image, None, &[], vec![]).map_err(|reason| problem(reason.into()))?;
        self.shard.push(record)?;
        self.written.insert(key.as_bytes());
        Ok(())
    }

    fn reject(&mut self, input: &str, reason: &str) {
        let reason = Reason::Sample { text: reason.to_owned() };
        let listed = self.shard.reject(Rejection { input: input.to_owned(), reason });
        debug_assert!(listed.is_ok(), "the options of a writer skip rejected inputs");
        self.rejected += 1;
    }

    fn finish(self: Box<Self>) -> Result<TaskShard, Error> {
        let AttemptOf { files, task, shard, rejected, _lock, .. } = *self;
        let mut written = Written::default();
        shard.finish()?.commit(&files, &(), &mut written)?;
        files.sync()?;
        let (_, shard) = written.shards.pop().expect("the shard that was committed");
        Ok(TaskShard { task, shard, rejected })
    }
}
