//! Runs work in parallel and delivers results in order, with a bounded number of items in flight.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard};

/// How much may be in flight before the first unfinished item is consumed.
pub(crate) struct Window {
    /// Number of items.
    pub(crate) pieces: usize,
    /// Their total weight, in any unit; a single heavier item is allowed.
    pub(crate) weight: u64,
}

/// As [`ordered_by_weight`], with items of unknown weight and workers without state. At most `pieces` items are in progress
/// or wait for `consume`.
///
/// # Errors
/// As for [`ordered_by_weight`].
pub(crate) fn ordered<R: Send, E>(
    jobs: NonZeroUsize,
    count: usize,
    pieces: usize,
    work: impl Fn(usize) -> R + Sync,
    consume: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let window = Window { pieces, weight: u64::MAX };
    ordered_by_weight(jobs, count, window, |_| 0, || (), |(), i| work(i), consume)
}

/// Calls `work` for each of 0 to `count` on `jobs` threads, and `consume` for each result in that order on this thread.
/// Each worker has its own state. Items are claimed in order, so the first unfinished one is always in progress.
///
/// # Errors
/// The first error of `consume`; no further item is started then.
pub(crate) fn ordered_by_weight<S, R: Send, E>(
    jobs: NonZeroUsize,
    count: usize,
    window: Window,
    weight: impl Fn(usize) -> u64 + Sync,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
    mut consume: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    if jobs.get() == 1 || count < 2 {
        let mut state = state();
        return (0..count).try_for_each(|i| consume(i, work(&mut state, i)));
    }
    let queue = Queue { inner: Mutex::new(Inner::default()), room: Condvar::new(), ready: Condvar::new() };
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(count) {
            scope.spawn(|| {
                let _stop = StopOnPanic(&queue);
                let mut state = state();
                while let Some(i) = queue.claim(count, &window, &weight) {
                    let result = work(&mut state, i);
                    queue.put(i, result);
                }
            });
        }
        let _stop = Stop(&queue);
        for i in 0..count {
            // If a worker panicked there is nothing to wait for; the scope propagates its panic.
            let Some(result) = queue.take(weight(i)) else { return Ok(()) };
            consume(i, result)?;
        }
        Ok(())
    })
}

struct Queue<R> {
    inner: Mutex<Inner<R>>,
    /// Signals room for another claim.
    room: Condvar,
    /// Signals that the first result may be ready.
    ready: Condvar,
}

struct Inner<R> {
    claimed: usize,
    /// Number of results taken, which is the number of the first item in `results`.
    taken: usize,
    results: VecDeque<Option<R>>,
    weight: u64,
    stop: bool,
}

impl<R> Default for Inner<R> {
    fn default() -> Self {
        Inner { claimed: 0, taken: 0, results: VecDeque::new(), weight: 0, stop: false }
    }
}

impl<R> Queue<R> {
    fn lock(&self) -> MutexGuard<'_, Inner<R>> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn claim(&self, count: usize, window: &Window, weight: impl Fn(usize) -> u64) -> Option<usize> {
        let mut q = self.lock();
        loop {
            if q.stop || q.claimed == count {
                return None;
            }
            let (flying, piece) = (q.claimed - q.taken, weight(q.claimed));
            if flying == 0 || (flying < window.pieces && q.weight.saturating_add(piece) <= window.weight) {
                q.claimed += 1;
                q.weight += piece;
                q.results.push_back(None);
                return Some(q.claimed - 1);
            }
            q = self.room.wait(q).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn put(&self, i: usize, result: R) {
        let mut q = self.lock();
        let at = i - q.taken;
        q.results[at] = Some(result);
        if at == 0 {
            self.ready.notify_one();
        }
    }

    fn take(&self, weight: u64) -> Option<R> {
        let mut q = self.lock();
        loop {
            if let Some(Some(_)) = q.results.front() {
                let result = q.results.pop_front().flatten();
                q.taken += 1;
                q.weight -= weight;
                self.room.notify_all();
                return result;
            }
            if q.stop {
                return None;
            }
            q = self.ready.wait(q).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn stop(&self) {
        self.lock().stop = true;
        self.room.notify_all();
        self.ready.notify_all();
    }
}

struct Stop<'a, R>(&'a Queue<R>);

impl<R> Drop for Stop<'_, R> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

struct StopOnPanic<'a, R>(&'a Queue<R>);

impl<R> Drop for StopOnPanic<'_, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    const JOBS: NonZeroUsize = NonZeroUsize::new(4).unwrap();

    #[test]
    fn results_come_in_order_and_stay_within_the_window() {
        let (flying, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut seen = vec![];
        let work = |_: &mut (), i: usize| {
            most.fetch_max(flying.fetch_add(1, SeqCst) + 1, SeqCst);
            (0..(i * 7919) % 5000).fold(i, |a, b| std::hint::black_box(a ^ b));
            i * i
        };
        let window = Window { pieces: 6, weight: 10 };
        let done: Result<(), ()> = ordered_by_weight(
            JOBS,
            500,
            window,
            |i| (i % 12) as u64,
            || (),
            work,
            |i, r| {
                flying.fetch_sub(1, SeqCst);
                seen.push((i, r));
                Ok(())
            },
        );
        done.unwrap();
        assert_eq!(seen, (0..500).map(|i| (i, i * i)).collect::<Vec<_>>());
        assert!(most.load(SeqCst) <= 7, "{} in flight", most.load(SeqCst));
    }

    #[test]
    fn error_stops_the_work() {
        let begun = AtomicUsize::new(0);
        let work = |_| begun.fetch_add(1, SeqCst);
        let done = ordered(JOBS, 1000, 8, work, |i, _| if i == 10 { Err(i) } else { Ok(()) });
        assert_eq!(done, Err(10));
        assert!(begun.load(SeqCst) < 40, "{} begun", begun.load(SeqCst));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn panic_propagates_without_a_deadlock() {
        let work = |i: usize| assert!(i != 20, "on purpose");
        let _: Result<(), ()> = ordered(JOBS, 100, 8, work, |_, ()| Ok(()));
    }
}
