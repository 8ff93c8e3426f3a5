//! The hand-over of batches.

use super::handover::{Delivery, Empty, Queue, Step, Work};
use super::{Batch, Buffers, PATIENT, Tested, check, good};
use loom::sync::atomic::Ordering;
use loom::thread;

#[test]
fn delivers_in_order_with_one_worker() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        let worker = tested.worker(0, good);
        (0..3).for_each(|p| drop(tested.take(p)));
        assert!(matches!(tested.handover.take(0, PATIENT, &mut || false), Ok(Delivery::EpochEnd(0))));
        assert!(matches!(tested.handover.take(0, PATIENT, &mut || false), Ok(Delivery::End)));
        tested.end([worker]);
    });
}

#[test]
fn delivers_in_order_with_two_workers_on_the_rows_of_a_batch() {
    check(2, || {
        let tested = Tested::new(2, 2, 2, 2);
        let workers = [tested.worker(0, good), tested.worker(1, good)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn reuses_a_buffer_that_another_thread_returns() {
    check(3, || {
        let tested = Tested::new(1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let held = tested.take(0);
        let other = thread::spawn(move || drop(held));
        drop(tested.take(1));
        other.join().unwrap();
        tested.end([worker]);
    });
}

#[test]
fn consumer_may_stop_at_any_moment() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        let worker = tested.worker(0, good);
        drop(tested.take(0));
        tested.end([worker]);
    });
}

#[test]
fn a_batch_that_outlives_the_workers_returns_its_buffer() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        let worker = tested.worker(0, good);
        let held = tested.take(0);
        tested.handover.close();
        worker.join().unwrap();
        drop(held);
        tested.end([]);
    });
}

#[test]
fn seek_cancels_what_was_begun() {
    check(2, || {
        let tested = Tested::new(2, 1, 4, 1);
        let worker = tested.worker(0, good);
        drop(tested.take(0));
        tested.handover.seek(0, (0, 2));
        (2..4).for_each(|p| drop(tested.take(p)));
        tested.end([worker]);
    });
}

#[test]
fn delivers_what_precedes_a_failure_then_the_failure_then_nothing_until_a_seek() {
    check(2, || {
        let tested = Tested::new(2, 1, 3, 2);
        let fails = |_: &Tested, batch: &Batch| if batch.p == 1 { Err("panic") } else { Ok(()) };
        let workers = [tested.worker(0, fails), tested.worker(1, fails)];
        drop(tested.take(0));
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("panic")) => {}
            other => panic!("{:?}", other.err()),
        }
        assert!(matches!(tested.take_error(), Empty::Stopped));
        tested.handover.seek(0, (0, 2));
        drop(tested.take(2));
        tested.end(workers);
    });
}

#[test]
fn a_batch_without_memory_is_an_error_after_those_before_it() {
    check(3, || {
        let tested = Tested::new(2, 1, 2, 1);
        tested.handover.update(|_, supply| supply.fails_at = 1);
        let worker = tested.worker(0, good);
        drop(tested.take(0));
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("no memory")) => {}
            other => panic!("{:?}", other.err()),
        }
        tested.end([worker]);
    });
}

#[test]
fn a_batch_that_begins_wakes_the_other_workers() {
    check(2, || {
        let tested = Tested::new(1, 2, 1, 2);
        // The first row is done only once another worker has claimed the second one.
        let row = |tested: &Tested, batch: &Batch| {
            tested.handover.update(|_, _| ());
            let claimed = |_: &mut [_], _: &mut _| match batch.has_unclaimed() {
                true => Step::Wait(PATIENT),
                false => Step::Done(()),
            };
            tested.handover.wait_for(batch, claimed).ok_or("cancelled")
        };
        let workers = [tested.worker(0, row), tested.worker(1, row)];
        drop(tested.take(0));
        tested.end(workers);
    });
}

#[test]
fn seek_wakes_a_worker_that_waits_with_a_row_in_progress() {
    check(3, || {
        let tested = Tested::new(2, 1, 2, 1);
        // Waits until cancelled.
        let waits = |tested: &Tested, batch: &Batch| match batch.p {
            0 => tested.handover.wait_for(batch, |_, _| Step::Wait::<_, ()>(PATIENT)).ok_or("cancelled"),
            _ => Ok(()),
        };
        let worker = tested.worker(0, waits);
        tested.handover.seek(0, (0, 1));
        drop(tested.take(1));
        tested.end([worker]);
    });
}

#[test]
fn a_failed_row_wakes_a_worker_that_waits_with_another_row() {
    check(2, || {
        let tested = Tested::new(1, 2, 1, 2);
        // One row waits until the batch is cancelled, which the other one's failure does.
        let row = |tested: &Tested, batch: &Batch| match batch.left.load(Ordering::Relaxed) {
            2 if batch.unclaimed.load(Ordering::Relaxed) == 1 => {
                tested.handover.wait_for(batch, |_, _| Step::Wait::<_, ()>(PATIENT)).ok_or("cancelled")
            }
            _ => Err("failed"),
        };
        let workers = [tested.worker(0, row), tested.worker(1, row)];
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("failed")) => {}
            other => panic!("{:?}", other.err()),
        }
        tested.end(workers);
    });
}

#[test]
fn evicted_batches_begin_again_in_order() {
    check(2, || {
        let tested = Tested::new(2, 1, 2, 2);
        // The first batch waits until it is alone in memory.
        let alone = |tested: &Tested, batch: &Batch| {
            if batch.p > 0 {
                return Ok(());
            }
            let decide = |queues: &mut [Queue<Batch, &'static str>], _: &mut Buffers| match queues[0].live() {
                1 => Step::Done(()),
                _ => match queues[0].evict_last(batch) {
                    Some(evicted) => Step::Drop(vec![evicted]),
                    None => Step::Wait(PATIENT),
                },
            };
            tested.handover.wait_for(batch, decide).ok_or("cancelled")
        };
        let workers = [tested.worker(0, alone), tested.worker(1, alone)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn eviction_wakes_a_worker_that_waits_with_a_row_of_the_evicted_batch() {
    check(2, || {
        let tested = Tested::new(2, 1, 2, 2);
        // The first batch waits until it is alone in memory, and lets no other begin; the second until the first is delivered.
        let row = |tested: &Tested, batch: &Batch| {
            let decide = |queues: &mut [Queue<Batch, &'static str>], supply: &mut Buffers| match batch.p {
                0 if queues[0].live() == 1 => Step::Done(()),
                0 => {
                    supply.prefetch = 1;
                    match queues[0].evict_last(batch) {
                        Some(evicted) => Step::Drop(vec![evicted]),
                        None => Step::Wait(PATIENT),
                    }
                }
                _ if queues[0].delivered() == (0, 1) => Step::Done(()),
                _ => Step::Wait(PATIENT),
            };
            tested.handover.wait_for(batch, decide).ok_or("cancelled")
        };
        let workers = [tested.worker(0, row), tested.worker(1, row)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn a_consumer_that_holds_everything_is_starved_until_it_returns_a_batch() {
    check(3, || {
        let tested = Tested::new(1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let held = tested.take(0);
        let Empty::Starved { held: 1, why: (), .. } = tested.take_error() else { panic!("nothing can be complete") };
        drop(held);
        drop(tested.take(1));
        tested.end([worker]);
    });
}

#[test]
fn a_consumer_that_keeps_batches_gets_more_where_the_supply_grows() {
    check(3, || {
        let tested = Tested::new(2, 1, 3, 1);
        tested.handover.update(|_, supply| supply.grows = true);
        let worker = tested.worker(0, good);
        let held: Vec<_> = (0..3).map(|p| tested.take(p)).collect();
        drop(held);
        tested.end([worker]);
    });
}

#[test]
fn taking_a_batch_lets_the_next_one_begin() {
    check(3, || {
        let tested = Tested::new(3, 1, 3, 1);
        tested.handover.update(|_, supply| supply.prefetch = 1);
        let worker = tested.worker(0, good);
        let held: Vec<_> = (0..3).map(|p| tested.take(p)).collect();
        drop(held);
        tested.end([worker]);
    });
}

/// Takes two batches of `rows` rows with one buffer. After the first delivery, `then` of two workers are active.
fn with_another_number_of_workers(rows: usize, active: usize, then: usize) {
    check(2, move || {
        let tested = Tested::new(1, rows, 2, active);
        tested.handover.update(|_, supply| supply.active_then = Some(then));
        let workers = [tested.worker(0, good), tested.worker(1, good)];
        (0..2).for_each(|p| drop(tested.take(p)));
        tested.end(workers);
    });
}

#[test]
fn a_worker_that_is_no_longer_active_passes_its_wake_up_on() {
    with_another_number_of_workers(1, 2, 1);
}

#[test]
fn a_worker_that_becomes_active_with_a_delivery_begins_to_work() {
    with_another_number_of_workers(2, 1, 2);
}

#[test]
fn a_worker_that_becomes_active_begins_to_work() {
    check(3, || {
        let tested = Tested::new(1, 1, 1, 0);
        let worker = tested.worker(0, good);
        tested.handover.update(|_, supply| supply.active = 1);
        drop(tested.take(0));
        tested.end([worker]);
    });
}

#[test]
fn two_replicas_each_get_their_batches_in_order() {
    check(2, || {
        let tested = Tested::with_replicas(2, 1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let other = tested.consumer(1, 2);
        (0..2).for_each(|p| drop(tested.take_of(0, p)));
        other.join().unwrap();
        tested.end([worker]);
    });
}

#[test]
fn two_workers_serve_two_replicas() {
    check(1, || {
        let tested = Tested::with_replicas(2, 1, 1, 1, 2);
        let workers = [tested.worker(0, good), tested.worker(1, good)];
        let other = tested.consumer(1, 1);
        drop(tested.take_of(0, 0));
        other.join().unwrap();
        tested.end(workers);
    });
}

#[test]
fn a_replica_whose_consumer_holds_everything_does_not_stop_the_other() {
    check(3, || {
        let tested = Tested::with_replicas(2, 1, 1, 2, 1);
        let worker = tested.worker(0, good);
        let held = tested.take_of(0, 0);
        (0..2).for_each(|p| drop(tested.take_of(1, p)));
        drop(held);
        drop(tested.take_of(0, 1));
        tested.end([worker]);
    });
}

#[test]
fn a_buffer_that_one_replica_returns_lets_the_other_begin() {
    check(2, || {
        let tested = Tested::with_replicas(2, 1, 1, 1, 1);
        tested.handover.update(|_, supply| supply.shared = true);
        let worker = tested.worker(0, good);
        let other = tested.consumer(1, 1);
        drop(tested.take_of(0, 0));
        other.join().unwrap();
        tested.end([worker]);
    });
}

#[test]
fn a_failure_or_seek_of_one_replica_does_not_change_the_other() {
    check(2, || {
        let tested = Tested::with_replicas(2, 1, 1, 2, 1);
        let fails = |_: &Tested, batch: &Batch| match (batch.replica, batch.p) {
            (0, 0) => Err("panic"),
            _ => Ok(()),
        };
        let worker = tested.worker(0, fails);
        let other = tested.consumer(1, 2);
        match tested.handover.take(0, PATIENT, &mut || false) {
            Err(Empty::Failed("panic")) => {}
            other => panic!("{:?}", other.err()),
        }
        tested.handover.seek(0, (0, 1));
        drop(tested.take_of(0, 1));
        other.join().unwrap();
        tested.end([worker]);
    });
}
