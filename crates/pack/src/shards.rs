//! Records into shards, and shards into place: records are made on several threads, written on one, and made durable on
//! another.

use crate::commit::{self, Temporary};
use crate::index_writer::{IndexWriter, Indexed, Payload};
use crate::optimize::Optimized;
use crate::ordered::{Window, ordered};
use crate::pack::{Progress, Step, after};
use crate::record::{self, Record, RecordWriter};
use crate::target::Target;
use crate::{Error, OnError, Options, PixelStore, Plan, Reason, Rejection, reject};
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Shards that were written.
pub(crate) struct Written {
    /// Each shard's number and its line in the manifest.
    pub(crate) shards: Vec<(usize, Shard)>,
    /// What a better layout of JPEGs gained.
    pub(crate) optimized: Optimized,
}

/// Writes the shards with these numbers. A shard is made durable while the next one is written.
///
/// # Errors
/// [`Error::Rejected`] under [`OnError::Fail`], [`Error::Stopped`], [`Error::Io`].
pub(crate) fn write(
    options: &Options,
    plan: &Plan,
    target: &Target,
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
        let optimized = Optimized::default();
        let mut writer = Writer { options, target, left, ends: &ends, next: 0, open: None, optimized, finished };
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
        let optimized = std::mem::take(&mut writer.optimized);
        drop(writer);
        let committed = committer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // The committer's error is the cause where both have one.
        committed.and_then(|shards| written.map(|()| Written { shards, optimized }))
    })
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
    optimized: Optimized,
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
            Ok(Record { frame, data_crc, entries, outcome }) => {
                open.index.push_with_entries(record::data(&frame), data_crc, entries)?;
                open.file.write(&frame)?;
                self.optimized.add(&outcome);
                Ok(Some(frame))
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
