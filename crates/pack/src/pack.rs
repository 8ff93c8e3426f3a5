//! A pack from beginning to end, in the order that survives being killed at any point: plan file, shards each with its
//! index, list of rejects, manifest; then the plan file goes.

use crate::commit::{self, Temporary};
use crate::index_writer::{IndexWriter, Indexed, Payload};
use crate::ordered::{Window, ordered};
use crate::record::{Record, RecordWriter};
use crate::target::{Left, Target};
use crate::{Error, OnError, Options, PixelStore, Plan, Reason, Rejection, catalogue, plan, reject};
use shardtool_format::manifest::{Shard, Split};
use shardtool_format::names;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Told how a run gets on; may end it. All methods do nothing by default.
pub trait Progress: Sync {
    /// How much there is to do: images, and bytes of their files.
    fn total(&self, images: u64, bytes: u64) {
        let _ = (images, bytes);
    }
    /// So many more images are done, rejected ones included, of so many bytes.
    fn done(&self, images: u64, bytes: u64) {
        let _ = (images, bytes);
    }
    /// A step of the commit is durable. `Break` ends the run with [`Error::Stopped`]; the same call goes on from there.
    fn after(&self, step: Step) -> ControlFlow<()> {
        let _ = step;
        ControlFlow::Continue(())
    }
}

/// No progress is reported.
impl Progress for () {}

/// A durable step of the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The plan file says that old files are being removed.
    Clearing,
    /// The manifest no longer names the old split.
    Cleared,
    /// The plan file is in place.
    Plan,
    /// A shard is in place.
    Shard,
    /// Its index is in place: the shard is finished.
    Index,
    /// The list of rejects is in place, if there are any.
    Rejected,
    /// The manifest names the split: it exists.
    Manifest,
}

/// What a pack did.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The split, as the manifest names it.
    pub split: Split,
    /// Inputs that could not be packed.
    pub rejected: u64,
    /// The file that lists them, if there are any.
    pub rejected_file: Option<PathBuf>,
    /// Bytes of the sources' files, rejected ones included.
    pub source_bytes: u64,
    /// Number of named classes.
    pub classes: u64,
    /// Shards that an interrupted run had finished.
    pub resumed_shards: u64,
}

/// Packs a source into a split of a dataset. A run that was killed or stopped goes on where it was when called again
/// with the same source and options, and ends with the same bytes.
///
/// # Errors
/// What is wrong with options, source or destination, and [`Error::Io`]. Nothing half-written is left under its own
/// name; finished shards stay for the next run.
pub fn pack(options: &Options, progress: &dyn Progress) -> Result<Summary, Error> {
    let plan = plan(options)?;
    let target = Target::new(options)?;
    let (split, resumed) = match target.prepare(options, &plan, progress)? {
        Left::PlanFile(manifest) => {
            let split = manifest.split(&options.split).expect("`prepare` found the split").clone();
            let resumed = split.shards.len();
            (split, resumed)
        }
        Left::Shards => {
            let (shards, resumed) = write_shards(options, &plan, &target, progress)?;
            (Split { name: options.split.clone(), shards }, resumed)
        }
    };
    let rejected_file = target.rejected_file();
    let rejected = match catalogue::read(target.folder())?.is_some_and(|m| m.split(&options.split).is_some()) {
        true => reject::count(&rejected_file)?,
        false => {
            target.sync()?;
            let rejected = target.publish_rejected(&plan)?;
            after(progress, Step::Rejected)?;
            catalogue::add_split(target.folder(), &catalogue::of_plan(&plan), split.clone())?;
            after(progress, Step::Manifest)?;
            rejected
        }
    };
    target.remove_plan(&plan)?;
    Ok(Summary {
        split,
        rejected,
        rejected_file: (rejected > 0).then_some(rejected_file),
        source_bytes: plan.source_bytes(),
        classes: plan.classes().len() as u64,
        resumed_shards: resumed as u64,
    })
}

/// Tells of a step.
///
/// # Errors
/// [`Error::Stopped`] if that is to be the last.
pub(crate) fn after(progress: &dyn Progress, step: Step) -> Result<(), Error> {
    match progress.after(step) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}

/// Writes the shards that are not finished. Returns all of them, and how many were finished.
fn write_shards(
    options: &Options,
    plan: &Plan,
    target: &Target,
    progress: &dyn Progress,
) -> Result<(Vec<Shard>, usize), Error> {
    progress.total(plan.images(), plan.source_bytes());
    let mut shards = vec![];
    for shard in 0..plan.shard_count() {
        let positions = plan.positions(shard);
        let finished = target.finished(shard, positions.len() as u64)?;
        if finished.is_some() {
            if options.on_error == OnError::Fail {
                first_reject(target, shard)?;
            }
            let bytes = positions.clone().map(|p| plan.listing.entries[plan.entry(p)].size).sum();
            progress.done(positions.len() as u64, bytes);
        }
        shards.push(finished);
    }
    let left: Vec<_> = (0..shards.len()).filter(|shard| shards[*shard].is_none()).collect();
    let resumed = shards.len() - left.len();
    for (number, shard) in write_left(options, plan, target, progress, &left)? {
        shards[number] = Some(shard);
    }
    Ok((shards.into_iter().flatten().collect(), resumed))
}

/// Writes these shards: records are made on several threads and written on this one, while another makes the shard
/// before durable.
fn write_left(
    options: &Options,
    plan: &Plan,
    target: &Target,
    progress: &dyn Progress,
    left: &[usize],
) -> Result<Vec<(usize, Shard)>, Error> {
    let positions: Vec<_> = left.iter().map(|shard| plan.positions(*shard)).collect();
    let mut end = 0;
    let ends: Vec<usize> = positions
        .iter()
        .map(|p| {
            end += p.len();
            end
        })
        .collect();
    let entry = |i: usize| {
        let shard = ends.partition_point(|end| *end <= i);
        let position = positions[shard].end - (ends[shard] - i);
        &plan.listing.entries[plan.entry(position)]
    };
    let largest = plan.listing.entries.iter().map(|e| e.size).max().unwrap_or(0);
    let jobs = options.jobs.get();
    let window = Window {
        // Decoded images are larger than their files say, so fewer may wait.
        pieces: if options.pixels == PixelStore::Encoded && options.resize.is_none() { 16 * jobs } else { 2 * jobs },
        weight: jobs as u64 * largest.max(4 << 20),
    };
    let buffers = Buffers::default();
    let (finished, to_commit) = sync_channel(1);
    std::thread::scope(|scope| {
        let committer = scope.spawn(|| commit_all(target, progress, to_commit));
        let mut writer = Writer { options, target, left, ends: &ends, next: 0, open: None, finished };
        let written = ordered(
            options.jobs,
            end,
            window,
            |i| entry(i).size,
            || RecordWriter::new(&plan.listing, options),
            |records, i| records.record(entry(i), buffers.take()),
            |i, record| {
                let entry = entry(i);
                if let Some(used) = writer.take(i, &entry.key, record)? {
                    buffers.put(used);
                }
                progress.done(1, entry.size);
                Ok(())
            },
        )
        .and_then(|()| writer.close(end));
        drop(writer);
        let committed = committer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // The committer's error is the cause where both have one.
        committed.and_then(|shards| written.map(|()| shards))
    })
}

/// The first reject of a finished shard, as the error that `--on-error fail` makes of it.
fn first_reject(target: &Target, shard: usize) -> Result<(), Error> {
    let path = target.shard_rejects(shard);
    match reject::count(&path)? {
        0 => Ok(()),
        _ => Err(Error::RejectedBefore { path }),
    }
}

/// Writes records into shards, one shard after the other.
struct Writer<'a> {
    options: &'a Options,
    target: &'a Target,
    /// Numbers of the shards to write.
    left: &'a [usize],
    /// Where each of them ends in the sequence of records.
    ends: &'a [usize],
    /// The next of them to be opened.
    next: usize,
    open: Option<Open>,
    finished: SyncSender<Finished>,
}

/// The shard that is being written.
struct Open {
    file: Temporary,
    index: IndexWriter,
    rejected: Vec<Rejection>,
}

/// A shard that is written, but not yet durable.
struct Finished {
    number: usize,
    file: Temporary,
    indexed: Indexed,
    rejected: Vec<Rejection>,
}

impl Writer<'_> {
    /// Takes the i-th record, or why it cannot be; hands back its buffer.
    fn take(&mut self, i: usize, key: &str, record: Result<Record, Reason>) -> Result<Option<Vec<u8>>, Error> {
        self.close(i)?;
        if self.open.is_none() {
            self.open = Some(self.open()?);
        }
        let open = self.open.as_mut().expect("opened above");
        match record {
            Ok(record) => {
                open.index.push(record.data(), record.data_crc)?;
                open.file.write(&record.frame)?;
                Ok(Some(record.frame))
            }
            Err(reason) => {
                let rejection = Rejection { input: key.to_owned(), reason };
                if self.options.on_error == OnError::Fail {
                    return Err(Error::Rejected(Box::new(rejection)));
                }
                open.rejected.push(rejection);
                Ok(None)
            }
        }
    }

    /// Hands every shard that ends at or before the i-th record to the committer, shards without records as well.
    fn close(&mut self, i: usize) -> Result<(), Error> {
        while self.next < self.left.len() && self.ends[self.next] <= i {
            let Open { file, index, rejected } = match self.open.take() {
                Some(open) => open,
                None => self.open()?,
            };
            let number = self.left[self.next];
            // The committer goes away only with an error of its own, which is the one reported.
            let finished = Finished { number, file, indexed: index.finish(), rejected };
            self.finished.send(finished).map_err(|_| Error::Stopped)?;
            self.next += 1;
        }
        Ok(())
    }

    fn open(&self) -> Result<Open, Error> {
        let number = self.left[self.next];
        let payload = Payload::Examples { image: Some(names::IMAGE_ENCODED.to_owned()) };
        let name = names::shard_file(&self.options.split, number);
        Ok(Open {
            file: Temporary::new(self.target.shard(number))?,
            index: IndexWriter::new(&name, payload, self.options.entry_points),
            rejected: vec![],
        })
    }
}

/// Makes shards durable, each followed by its index, which says that it is.
fn commit_all(
    target: &Target,
    progress: &dyn Progress,
    finished: Receiver<Finished>,
) -> Result<Vec<(usize, Shard)>, Error> {
    let mut shards = vec![];
    for Finished { number, file, indexed, rejected } in finished {
        file.publish()?;
        after(progress, Step::Shard)?;
        match rejected.is_empty() {
            true => commit::remove(&target.shard_rejects(number))?,
            false => commit::publish(target.shard_rejects(number), &reject::to_json_lines(&rejected))?,
        }
        commit::publish(target.index(number), &indexed.index)?;
        after(progress, Step::Index)?;
        shards.push((number, indexed.shard));
    }
    Ok(shards)
}

/// Buffers of records that are written, to be used again.
#[derive(Default)]
struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Larger ones are given back to the allocator.
    const KEPT: usize = 4 << 20;

    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop().unwrap_or_default()
    }

    fn put(&self, buffer: Vec<u8>) {
        if buffer.capacity() <= Self::KEPT {
            self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(buffer);
        }
    }
}
