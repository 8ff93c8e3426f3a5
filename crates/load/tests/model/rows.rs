//! The loop that fills a row, with memory pressure and requests.

use super::attempt::{Attempt, RowMemory, Step, fill};
use super::handover::{Handover, Work};
use super::memory_pressure::{Refused, ScratchAdmission};
use super::sync::{Condvar, Mutex};
use super::{Batch, Buffers, PATIENT, Tested, check};
use loom::thread;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a batch, in which images may have scratch.
const BATCH: u64 = 10;

/// Bytes of scratch in addition to the batches.
const POOL: u64 = 10;

/// What rows are filled with: the records of one epoch.
struct Records {
    /// Bytes of each record that is read into memory; 0 for records that are mapped.
    values: u64,
    /// Scratch of the row at each position.
    scratch: &'static [u64],
    memory: ScratchAdmission<Buffers>,
    /// Values and scratch in use.
    used: Arc<AtomicU64>,
    requests: Option<Requests>,
}

/// Bytes that are in use, by all rows and by their own.
struct Used {
    counts: [Arc<AtomicU64>; 2],
    bytes: u64,
}

impl Used {
    fn new(row: &Row<'_>, bytes: u64) -> Self {
        let counts = [row.records.used.clone(), row.used.clone()];
        for count in &counts {
            count.fetch_add(bytes, Ordering::Relaxed);
        }
        Used { counts, bytes }
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        for count in &self.counts {
            count.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// The memory of a row, which is returned after all that it counts.
struct Memory<'a> {
    memory: RowMemory<'a, Buffers>,
    used: Arc<AtomicU64>,
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        assert_eq!(self.used.load(Ordering::Relaxed), 0, "bytes are in use whose memory is returned");
    }
}

/// Records that are requested ahead, in order, up to `room` of them. As `fetch` does, the thread that makes the requests waits only
/// for rows that are done, and a row without room reads its record itself.
struct Requests {
    room: usize,
    state: Mutex<Requested>,
    changed: Condvar,
}

#[derive(Default)]
struct Requested {
    /// Positions of records that have arrived and whose rows are not done.
    arrived: BTreeSet<u64>,
    /// The next position to request.
    next: u64,
    closed: bool,
}

impl Requests {
    fn new(room: usize) -> Self {
        Requests { room, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Requests all records up to position `end`.
    fn run(&self, end: u64) {
        let mut state = self.state.lock().unwrap();
        while !state.closed && state.next < end {
            if state.arrived.len() >= self.room {
                state = self.changed.wait(state).unwrap();
                continue;
            }
            let p = state.next;
            state.arrived.insert(p);
            state.next = p + 1;
            self.changed.notify_all();
        }
    }

    /// Waits for the record at position `p`. Returns whether it was requested.
    fn obtain(&self, p: u64) -> bool {
        let mut state = self.state.lock().unwrap();
        loop {
            if state.closed || state.arrived.contains(&p) {
                return true;
            }
            if state.next > p || state.arrived.len() >= self.room {
                state.next = state.next.max(p + 1);
                return false;
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    fn done(&self, p: u64) {
        self.state.lock().unwrap().arrived.remove(&p);
        self.changed.notify_all();
    }

    fn close(&self) {
        self.state.lock().unwrap().closed = true;
        self.changed.notify_all();
    }
}

impl Records {
    fn new(handover: &Arc<Handover<Buffers>>, values: u64, scratch: &'static [u64], room: Option<usize>) -> Arc<Self> {
        let memory = ScratchAdmission::new(handover.clone(), POOL, 0, BATCH, PATIENT);
        let requests = room.map(Requests::new);
        Arc::new(Records { values, scratch, memory, used: Arc::default(), requests })
    }

    /// Fills a row.
    fn row(&self, tested: &Tested, batch: &Batch) -> Result<(), &'static str> {
        let filled = fill(&mut Row { tested, records: self, batch, used: Arc::default() }, self.values);
        if let Some(requests) = &self.requests {
            requests.done(batch.p);
        }
        assert_eq!(filled?.values.bytes, self.values);
        Ok(())
    }
}

struct Row<'a> {
    tested: &'a Tested,
    records: &'a Records,
    batch: &'a Batch,
    used: Arc<AtomicU64>,
}

impl<'a> Attempt for Row<'a> {
    type Memory = Memory<'a>;
    type Values = Used;
    type Error = &'static str;

    fn admit(&mut self, bytes: u64) -> Result<Self::Memory, &'static str> {
        let memory = RowMemory::admit(&self.records.memory, self.batch, bytes, self.records.values);
        Ok(Memory { memory: memory.ok_or("cancelled")?, used: self.used.clone() })
    }

    fn obtain(&mut self) -> Result<Step<Used>, &'static str> {
        if let Some(requests) = &self.records.requests {
            requests.obtain(self.batch.p);
        }
        match self.batch.is_cancelled() {
            true => Err("cancelled"),
            false => Ok(Step::Done(Used::new(self, self.records.values))),
        }
    }

    fn write(&mut self, _: &Used, memory: &mut Self::Memory) -> Result<Step<()>, &'static str> {
        let scratch = self.records.scratch[self.batch.p as usize];
        let extended = memory.memory.extend(self.batch, scratch).map_err(|refused| match refused {
            Refused::Cancelled => "cancelled",
            Refused::TooLarge(_) => "too large",
        })?;
        if let Step::Done(()) = extended {
            let _used = Used::new(self, scratch);
            let used = self.records.used.load(Ordering::Relaxed);
            self.tested.handover.read(|queues, supply| {
                let (live, yielded) = (queues.iter().map(|queue| queue.live()).sum::<usize>(), supply.pressure.yielded);
                assert!(live + yielded <= supply.most, "{live} batches, memory of {yielded} is scratch");
                assert!(used <= POOL + yielded as u64 * BATCH, "{used} bytes of scratch, {yielded} batches yielded");
            });
        }
        Ok(extended)
    }
}

/// Delivers one epoch, a batch for each entry of `scratch`, with `workers` workers and up to `batches` batches in memory. `room` is the
/// number of records that are requested ahead.
fn deliver(workers: usize, batches: usize, values: u64, scratch: &'static [u64], room: Option<usize>) {
    let len = scratch.len() as u64;
    let tested = Tested::new(batches, 1, len, workers);
    let records = Records::new(&tested.handover, values, scratch, room);
    let threads: Vec<_> = (0..workers)
        .map(|number| {
            let records = records.clone();
            tested.worker(number, move |tested, batch| records.row(tested, batch))
        })
        .collect();
    let requests = room.map(|_| {
        let records = records.clone();
        thread::spawn(move || records.requests.iter().for_each(|requests| requests.run(len)))
    });
    (0..len).for_each(|p| drop(tested.take(p)));
    records.requests.iter().for_each(Requests::close);
    requests.into_iter().for_each(|thread| thread.join().unwrap());
    tested.end(threads);
    assert_eq!(records.used.load(Ordering::Relaxed), 0);
}

#[test]
fn a_large_image_takes_the_memory_of_batches_begun_after_its_own() {
    check(2, || deliver(2, 3, 0, &[20, 5, 5], None));
}

#[test]
fn large_images_take_it_one_after_the_other() {
    check(1, || deliver(2, 3, 0, &[20, 20, 5], None));
}

#[test]
fn rows_that_hold_their_values_do_not_wait_for_each_other() {
    check(2, || deliver(2, 2, 4, &[4, 4], None));
}

#[test]
fn a_large_image_whose_record_was_read_begins_again_with_the_sum() {
    check(2, || deliver(2, 3, 4, &[16, 4, 4], None));
}

#[test]
fn requests_go_on_while_rows_wait_for_memory() {
    check(1, || deliver(2, 2, 6, &[4, 4], Some(1)));
}

#[test]
fn requests_go_on_while_a_large_image_takes_the_memory_of_batches() {
    check(1, || deliver(2, 3, 4, &[16, 4, 4], Some(2)));
}

#[test]
fn a_row_that_waits_for_memory_ends_when_its_consumer_moves() {
    check(2, || {
        let tested = Tested::new(2, 1, 2, 2);
        let records = Records::new(&tested.handover, 4, &[4, 4], None);
        let threads = [0, 1].map(|number| {
            let records = records.clone();
            tested.worker(number, move |tested, batch| records.row(tested, batch))
        });
        tested.handover.seek(0, (0, 1));
        drop(tested.take(1));
        tested.end(threads);
        assert_eq!(records.used.load(Ordering::Relaxed), 0);
    });
}
