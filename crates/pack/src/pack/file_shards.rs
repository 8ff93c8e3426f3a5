//! Writes the records of image files into shards: records are made on several threads, written on one, and made durable
//! on another.

use super::target::Target;
use crate::ordered::{Window, ordered_by_weight};
use crate::place::Place;
use crate::plan::FilePlan;
use crate::progress::{Progress, check};
use crate::record::{Record, RecordWriter};
use crate::sample::SampleSchema;
use crate::shard_writer::{Finished, ShardWriter, Written};
use crate::source::Entry;
use crate::{Error, Options, PixelStore, Reason, Rejection};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Finished shards are made durable in groups, by several threads: a file system writes what they wait for at once. A group
/// ends with this number of shards, this number of bytes, or this time after its first shard.
const GROUP_SHARDS: usize = 32;
const GROUP_BYTES: u64 = 32 << 20;
const GROUP_TIME: Duration = Duration::from_secs(1);

/// Writes the shards with these numbers. A shard is made durable while the next one is written.
///
/// # Errors
/// [`Error::Rejected`] under [`OnError::Fail`], [`Error::Stopped`], [`Error::Io`].
pub(crate) fn write<P: Place>(
    options: &Options,
    plan: &FilePlan,
    target: &Target<P>,
    progress: &dyn Progress,
    left: &[usize],
) -> Result<Written, Error> {
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
    let largest = plan.listing.entries.iter().map(Entry::bytes).max().unwrap_or(0);
    let jobs = options.jobs.get();
    let window = Window {
        // Decoded images are larger than their files, so fewer of them may be in flight.
        pieces: if options.pixels == PixelStore::Encoded && options.resize.is_none() { 16 * jobs } else { 2 * jobs },
        weight: jobs as u64 * largest.max(4 << 20),
    };
    let buffers = Buffers::default();
    let (finished, to_commit) = sync_channel(1);
    thread::scope(|scope| {
        let committer = scope.spawn(|| commit_all(target, progress, to_commit));
        let mut writer = Writer {
            options,
            schema: &plan.listing.schema,
            target,
            left,
            ends: &ends,
            next: 0,
            open: None,
            group: Group::default(),
            finished,
        };
        let written = ordered_by_weight(
            options.jobs,
            end,
            window,
            |i| entry(i).bytes(),
            || RecordWriter::new(&plan.listing.schema, options),
            |records, i| records.file(&plan.listing, entry(i), buffers.take()),
            |i, record| {
                let entry = entry(i);
                if let Some(used) = writer.take(i, &entry.key, record)? {
                    buffers.put(used);
                }
                progress.done(1, entry.bytes());
                check(progress)
            },
        )
        .and_then(|()| writer.close(end));
        // Also if the run was stopped: these shards need not be written again.
        let written = written.and(writer.send());
        drop(writer);
        let committed = committer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // If both fail, the committer's error is the cause.
        committed.and_then(|shards| written.map(|()| shards))
    })
}

/// Writes records into one shard after the other.
struct Writer<'a, P: Place> {
    options: &'a Options,
    schema: &'a SampleSchema,
    target: &'a Target<P>,
    /// Numbers of the shards to write.
    left: &'a [usize],
    /// The end of each of them in the sequence of records.
    ends: &'a [usize],
    /// The next one to open.
    next: usize,
    open: Option<ShardWriter<P>>,
    group: Group<P>,
    finished: SyncSender<Vec<Finished<P>>>,
}

/// Finished shards that are not yet passed to the committer.
struct Group<P: Place> {
    shards: Vec<Finished<P>>,
    bytes: u64,
    /// When its first shard was finished.
    since: Option<Instant>,
}

impl<P: Place> Default for Group<P> {
    fn default() -> Self {
        Group { shards: vec![], bytes: 0, since: None }
    }
}

impl<P: Place> Group<P> {
    fn push(&mut self, shard: Finished<P>) {
        self.bytes += shard.bytes();
        self.shards.push(shard);
        self.since.get_or_insert_with(Instant::now);
    }

    fn is_full(&self) -> bool {
        let waited = self.since.is_some_and(|since| since.elapsed() >= GROUP_TIME);
        waited || self.shards.len() >= GROUP_SHARDS || self.bytes >= GROUP_BYTES
    }
}

impl<P: Place> Writer<'_, P> {
    /// Writes the i-th record or its rejection; returns the record's buffer.
    fn take(&mut self, i: usize, key: &str, record: Result<Record, Reason>) -> Result<Option<Vec<u8>>, Error> {
        self.close(i)?;
        if self.group.is_full() {
            self.send()?;
        }
        if self.open.is_none() {
            self.open = Some(ShardWriter::new(self.options, self.schema, self.target.files(), self.left[self.next])?);
        }
        let open = self.open.as_mut().expect("opened above");
        match record {
            Ok(record) => open.push(record).map(Some),
            Err(reason) => {
                open.reject(Rejection::new(key.to_owned(), reason)?)?;
                Ok(None)
            }
        }
    }

    /// Finishes every shard that ends at or before the i-th record, empty ones included.
    fn close(&mut self, i: usize) -> Result<(), Error> {
        while self.next < self.left.len() && self.ends[self.next] <= i {
            let open = match self.open.take() {
                Some(open) => open,
                None => ShardWriter::new(self.options, self.schema, self.target.files(), self.left[self.next])?,
            };
            self.group.push(open.finish()?);
            self.next += 1;
            if self.group.is_full() {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Passes the finished shards to the committer.
    fn send(&mut self) -> Result<(), Error> {
        let group = std::mem::take(&mut self.group);
        // The committer ends early only with an error, which is reported instead.
        self.finished.send(group.shards).map_err(|_| Error::Stopped)
    }
}

/// Makes shards durable, each followed by its index, whose presence marks the shard as finished.
fn commit_all<P: Place>(
    target: &Target<P>,
    progress: &dyn Progress,
    finished: Receiver<Vec<Finished<P>>>,
) -> Result<Written, Error> {
    let mut written = Written::default();
    finished.into_iter().try_for_each(|group| commit_group(target, progress, group, &mut written))?;
    Ok(written)
}

fn commit_group<P: Place>(
    target: &Target<P>,
    progress: &dyn Progress,
    group: Vec<Finished<P>>,
    written: &mut Written,
) -> Result<(), Error> {
    let helpers = 1..group.len();
    let queue = Mutex::new(group.into_iter());
    let stop = || *queue.lock().unwrap_or_else(PoisonError::into_inner) = vec![].into_iter();
    let work = || -> Result<Written, Error> {
        let mut written = Written::default();
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(shard) = next else { return Ok(written) };
            target.commit(shard, progress, &mut written).inspect_err(|_| stop())?;
        }
    };
    thread::scope(|scope| {
        // Threads that cannot be started are not needed.
        let helpers: Vec<_> = helpers.filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut results = vec![work()];
        results.extend(helpers.into_iter().map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        results.into_iter().try_for_each(|result| {
            written.append(result?);
            Ok(())
        })
    })
}

/// Buffers of written records, for reuse.
#[derive(Default)]
struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Larger buffers are freed.
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
