//! Writes a split sample by sample, from a program instead of a source. Records, shards and indexes are those of
//! [`crate::pack()`]. A writer's shards lie in a separate folder until all parts of the split are finished; [`commit`]
//! then moves them into the dataset and adds the split to the manifest.
//!
//! ```text
//! DATASET/.write-train/part-00000-of-00002/   plan.json, train-00000.tfrecord …, _index/…
//! ```
//!
//! | module | responsibility |
//! |---|---|
//! | `options` | options of a writer |
//! | `sample` | a sample of a program: image, label, values |
//! | `part` | the folder of a part, and its plan file |
//! | `keys` | the set of written keys |
//! | `commit_parts` | moves the parts into the dataset |
//! | `task` | one attempt of a task of an engine, which retries tasks: a shard under a unique name |
//! | `task_write` | begins a split that such tasks write, and commits one attempt of each |

mod commit_parts;
pub(crate) mod keys;
mod options;
mod part;
mod sample;
mod task;
mod task_write;

use crate::commit::{Directory, Lock};
use crate::error::SampleProblem;
use crate::error::WriterError;
use crate::progress::{Progress, Silent};
use crate::record::RecordWriter;
use crate::sample::SampleSchema;
use crate::shard_writer::{ShardWriter, Written};
use crate::split::files::SplitFiles;
use crate::split::plan_file::PlanFile;
use crate::split::{complete, manifest_store};
use crate::{Error, Options, Shards};
use keys::Keys;
use part::{Opened, Part};
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

pub use commit_parts::{Committed, commit};
pub use options::WriterOptions;
pub use sample::{Image, Label, Sample, Value};
pub use task::{TaskOptions, TaskShard, TaskWriter};
pub use task_write::{TaskWrite, new_write_id};

/// Writes a split, or a part of one, sample by sample. Any number of threads may write: records are made in parallel
/// and stored in the order in which they are ready.
///
/// If a writer is dropped or killed before [`Writer::finish`], its finished shards are kept. The next writer with the
/// same options continues after them: its [`Writer::write`] skips the keys in them. So running the same program again
/// completes the split, with the same bytes if a single thread writes.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// use shardtool_pack::{PixelArray, Sample, Writer, WriterOptions};
///
/// let options = WriterOptions::new(folder.path().join("dataset"), "train").with_classes(["dark", "light"]);
/// let writer = Writer::open(&options)?;
/// for (key, class, value) in [("a", "dark", 10), ("b", "light", 250)] {
///     let pixels = vec![value; 16 * 16 * 3];
///     let pixels = PixelArray::new(&pixels, 16, 16, 3, false).expect("its size fits");
///     writer.write(&Sample::new(key).with_pixels(pixels).with_label(class))?;
/// }
/// let committed = writer.finish()?.expect("a writer of the whole split commits it");
/// assert_eq!(committed.split.records(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Writer {
    options: Options,
    schema: SampleSchema,
    plan: PlanFile,
    /// The part's folder; `None` if the split is complete.
    part: Option<Part>,
    /// Whether finishing this part commits the split.
    commits: bool,
    state: Mutex<State>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("destination", &self.options.destination)
            .field("split", &self.options.split())
            .finish_non_exhaustive()
    }
}

struct State {
    /// The locks of the part and of the dataset, held until the writer is closed.
    locks: Option<(Lock, Lock)>,
    closed: bool,
    /// The part or the whole split was finished before.
    complete: bool,
    open: Option<ShardWriter>,
    /// Bytes of the open shard.
    bytes: u64,
    /// Lines of the finished shards.
    shards: Vec<Shard>,
    /// How many of them an earlier writer finished.
    resumed: usize,
    /// Keys in shards of an earlier writer.
    before: Keys,
    /// Keys that this writer wrote.
    written: Keys,
}

impl Writer {
    /// Opens a new writer, or continues an unfinished one with the same options.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Name`], [`WriterError::OtherPlan`], [`Error::Destination`], [`Error::Io`].
    pub fn open(options: &WriterOptions) -> Result<Self, Error> {
        let (commits, part) = (options.part.is_none(), options.part.unwrap_or((0, 1)));
        let (options, schema) = options.check()?;
        let plan = PlanFile::of_writer(&options, &schema, part);
        if let Some(split) = SplitFiles::<Directory>::open(&options.destination, options.split())?
            && !options.force
            && let Some(there) = complete::complete(&split, &plan, &|_| Ok(false))?
        {
            let mut before = Keys::default();
            for shard in &there.shards {
                before.read(&split.path(&names::index_path(Path::new(&shard.file))))?;
            }
            let state = State { resumed: there.shards.len(), shards: there.shards, ..State::new(before, true) };
            return Ok(Writer { options, schema, plan, part: None, commits, state: Mutex::new(state) });
        }
        let directory = Directory::create(&options.destination)?;
        let dataset = Lock::share_dataset(&directory)?;
        let new = manifest_store::of_schema(&schema);
        let split = SplitFiles::new(directory, options.split());
        // A killed commit may have added the split to the manifest.
        let replaces = options.force || commit_parts::is_committing(&split)?;
        manifest_store::joined(split.directory(), &new, options.split(), replaces)?;
        let number = part.0;
        let Opened { part, shards, finished, lock } = Part::open(&split, part, &plan, options.force, commits)?;
        let mut before = Keys::default();
        for shard in 0..shards.len() {
            let index = part.files().index(shard);
            if part.files().directory().exists(&index)? {
                before.read(&part.files().path(&index))?;
            } else {
                // A killed commit has moved it into the dataset.
                let moved = part::shards_before(&split, number)? + shard;
                before.read(&split.path(&split.index(moved)))?;
            }
        }
        let state =
            State { locks: Some((lock, dataset)), resumed: shards.len(), shards, ..State::new(before, finished) };
        Ok(Writer { options, schema, plan, part: Some(part), commits, state: Mutex::new(state) })
    }

    /// Writes a sample. Returns `false` without writing if an earlier writer stored its key in a finished shard.
    ///
    /// # Errors
    /// [`WriterError::Sample`], after which the writer can take the next sample; [`WriterError::Closed`];
    /// [`Error::Io`], which closes the writer.
    pub fn write(&self, sample: &Sample<'_>) -> Result<bool, Error> {
        let key = sample.key;
        let problem = |problem: SampleProblem| {
            Error::Writer(WriterError::Sample { key: key.to_owned(), problem: Box::new(problem) })
        };
        if !self.state().must_write(key)? {
            return Ok(false);
        }
        let packed = sample::resolve(sample, &self.schema, &self.options.arrays).map_err(problem)?;
        let image = sample::image(sample, &self.schema).map_err(problem)?;
        let mut records = RecordWriter::new(&self.schema, &self.options);
        let record = records.sample(&packed, image, None, &[], vec![]).map_err(|reason| problem(reason.into()))?;
        let mut state = self.state();
        // Another thread may have written the key in the meantime.
        if !state.must_write(key)? {
            return Ok(false);
        }
        state.closed = true;
        let bytes = record.frame.len() as u64;
        let mut open = match state.open.take() {
            Some(open) => open,
            None => ShardWriter::new(&self.options, &self.schema, self.part().files(), state.shards.len())?,
        };
        open.push(record)?;
        state.written.insert(key.as_bytes());
        state.open = Some(open);
        state.bytes += bytes;
        let Shards::Size(shard_size) = self.options.shards else { unreachable!("a writer's shards have a size") };
        if state.bytes >= shard_size {
            self.close_shard(&mut state, &())?;
        }
        // Every error above leaves the writer closed.
        state.closed = false;
        Ok(true)
    }

    /// Makes the last shard durable and finishes the part. Commits the split if it has no other parts.
    ///
    /// # Errors
    /// [`WriterError::Closed`], [`Error::Io`], and those of [`commit`].
    pub fn finish(&self) -> Result<Option<Committed>, Error> {
        self.finish_with(&Silent)
    }

    /// As [`Writer::finish`], and reports the commit.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn finish_with(&self, progress: &dyn Progress) -> Result<Option<Committed>, Error> {
        let mut state = self.state();
        if std::mem::replace(&mut state.closed, true) {
            return Err(Error::Writer(WriterError::Closed));
        }
        if !state.complete {
            self.close_shard(&mut state, progress)?;
            self.part().finish(self.plan.clone(), &state.shards)?;
        }
        let resumed = state.resumed as u64;
        state.locks = None;
        drop(state);
        if !self.commits {
            return Ok(None);
        }
        let (destination, split) = (&self.options.destination, self.options.split());
        let committed = commit(destination, split, self.options.force, progress)?;
        let resumed_shards = if committed.already_complete { 0 } else { resumed };
        Ok(Some(Committed { resumed_shards, ..committed }))
    }

    /// Closes the writer without finishing it: drops the open shard and keeps the finished ones for the next writer.
    pub fn abandon(&self) {
        let mut state = self.state();
        state.closed = true;
        state.open = None;
        state.locks = None;
    }

    /// Returns the number of samples written so far, those of an earlier writer included.
    pub fn records(&self) -> u64 {
        let state = self.state();
        (state.before.len() + state.written.len()) as u64
    }

    fn close_shard(&self, state: &mut State, progress: &dyn Progress) -> Result<(), Error> {
        let Some(open) = state.open.take() else { return Ok(()) };
        let mut written = Written::default();
        open.finish()?.commit(self.part().files(), progress, &mut written)?;
        state.shards.extend(written.shards.into_iter().map(|(_, shard)| shard));
        state.bytes = 0;
        Ok(())
    }

    fn part(&self) -> &Part {
        self.part.as_ref().expect("an incomplete split has a folder for the part")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Writer {
    /// Says what a writer leaves that was dropped before it was finished.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let nothing = state.open.is_none() && state.shards.is_empty();
        if state.closed || state.complete || nothing {
            return;
        }
        let (written, kept) = (state.written.len(), state.shards.iter().map(|shard| shard.records).sum::<u64>());
        log::warn!(
            "the writer of split `{}` in {} was dropped before `finish`: {} samples in finished shards are kept, {} others are not; a \
             writer with the same options continues, and skips the keys that are kept",
            self.options.split(),
            self.options.destination.display(),
            kept,
            (state.before.len() as u64 + written as u64).saturating_sub(kept),
        );
    }
}

impl State {
    fn new(before: Keys, complete: bool) -> Self {
        let (shards, written) = (vec![], Keys::default());
        State { locks: None, closed: false, complete, open: None, bytes: 0, shards, resumed: 0, before, written }
    }

    /// Returns whether a key is still to be written.
    ///
    /// # Errors
    /// [`WriterError::Closed`], [`WriterError::Sample`].
    fn must_write(&self, key: &str) -> Result<bool, Error> {
        let problem =
            |problem| Err(Error::Writer(WriterError::Sample { key: key.to_owned(), problem: Box::new(problem) }));
        match () {
            () if self.closed => Err(Error::Writer(WriterError::Closed)),
            () if self.before.contains(key.as_bytes()) => Ok(false),
            () if self.complete => problem(SampleProblem::Complete),
            () if self.written.contains(key.as_bytes()) => problem(SampleProblem::DuplicateKey),
            () => Ok(true),
        }
    }
}
