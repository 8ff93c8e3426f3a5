//! Checks every interleaving of the hand-over of slots with loom: no slot is used twice at once, batches arrive in
//! order, and no thread waits for ever.

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}
#[path = "../src/exchange.rs"]
mod exchange;

use exchange::{Acquired, Delivery, Exchange, NoBatch};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::time::Duration;

/// A slot that counts its users.
#[derive(Clone)]
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn enter(&self) {
        assert_eq!(self.0.fetch_add(1, Ordering::Relaxed), 0, "a slot is used twice at once");
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Tested = Exchange<Slot, (u32, Slot), &'static str, u8>;

const LONG: Duration = Duration::from_secs(1 << 30);

fn fill(exchange: &Tested, number: u32, may_grow: &mut bool) -> Option<(u32, Slot)> {
    let mut refused = None;
    let slot = loop {
        match exchange.acquire(refused) {
            Acquired::Slot(slot) => break slot,
            Acquired::Stopped => return None,
            Acquired::Grow if *may_grow => {
                exchange.grew();
                break Slot(Arc::new(AtomicUsize::new(0)));
            }
            Acquired::Grow => refused = Some(7),
        }
    };
    slot.enter();
    Some((number, slot))
}

/// Publishes batches 0 to `last` − 1, unless the consumer is gone before, then the end of an epoch.
fn upload(exchange: &Tested, last: u32) {
    for number in 0..last {
        let Some(batch) = fill(exchange, number, &mut true) else { return };
        if let Err((_, slot)) = exchange.publish(batch) {
            slot.leave();
            assert!(exchange.release(slot).is_some());
            return;
        }
    }
    exchange.end_epoch();
}

fn batch(exchange: &Tested) -> Option<(u32, Slot)> {
    match exchange.take(LONG, &mut || false) {
        Ok(Delivery::Batch(batch)) => Some(batch),
        Ok(Delivery::EpochEnd) => None,
        Ok(Delivery::Failed(error)) => panic!("{error}"),
        Err(NoBatch::Exhausted { held, .. }) => panic!("exhausted with {held} held"),
        Err(NoBatch::Interrupted) => panic!("no interrupt was requested"),
    }
}

fn release(exchange: &Tested, slot: Slot) {
    slot.leave();
    exchange.release(slot);
}

#[test]
fn batches_arrive_in_order_and_no_slot_is_used_twice_at_once() {
    loom::model(|| {
        let exchange = Arc::new(Tested::new(2));
        let uploader = thread::spawn({
            let exchange = exchange.clone();
            move || upload(&exchange, 3)
        });
        let mut expected = 0;
        while let Some((number, slot)) = batch(&exchange) {
            assert_eq!(number, expected);
            expected += 1;
            release(&exchange, slot);
        }
        assert_eq!(expected, 3);
        uploader.join().unwrap();
        assert_eq!((exchange.counts(), exchange.slots() <= 2), ((0, 0), true));
    });
}

#[test]
fn batch_may_be_released_by_another_thread() {
    // Three threads: with at most three preemptions, since all interleavings would take too long.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let exchange = Arc::new(Tested::new(1));
        let uploader = thread::spawn({
            let exchange = exchange.clone();
            move || upload(&exchange, 2)
        });
        let (number, slot) = batch(&exchange).unwrap();
        assert_eq!(number, 0);
        let other = thread::spawn({
            let exchange = exchange.clone();
            move || release(&exchange, slot)
        });
        let (number, slot) = batch(&exchange).unwrap();
        assert_eq!(number, 1);
        release(&exchange, slot);
        other.join().unwrap();
        uploader.join().unwrap();
    });
}

#[test]
fn consumer_may_stop_at_any_moment() {
    loom::model(|| {
        let exchange = Arc::new(Tested::new(1));
        let uploader = thread::spawn({
            let exchange = exchange.clone();
            move || {
                upload(&exchange, 3);
                assert!(exchange.stopped());
            }
        });
        let held = batch(&exchange).unwrap();
        exchange.stop();
        uploader.join().unwrap();
        let (ready, free) = exchange.clear(false);
        for delivery in ready {
            if let Delivery::Batch((_, slot)) = delivery {
                slot.leave();
                assert!(exchange.release(slot).is_some(), "after the end, the releasing thread frees the slot");
            }
        }
        drop(free);
        held.1.leave();
        assert!(exchange.release(held.1).is_some());
        assert_eq!(exchange.slots(), 0);
    });
}

#[test]
fn consumer_that_holds_every_slot_gets_an_error_and_may_continue() {
    loom::model(|| {
        let exchange = Arc::new(Tested::new(2));
        let uploader = thread::spawn({
            let exchange = exchange.clone();
            move || {
                // The first slot can be made, the second is refused.
                let mut may_grow = true;
                for number in 0..2 {
                    let batch = fill(&exchange, number, &mut may_grow).unwrap();
                    may_grow = false;
                    assert!(exchange.publish(batch).is_ok());
                }
                exchange.fail("the end");
            }
        });
        let (_, first) = batch(&exchange).unwrap();
        let Err(NoBatch::Exhausted { held, why, waited }) = exchange.take(Duration::ZERO, &mut || false) else {
            panic!("no batch can be ready")
        };
        assert_eq!((held, why, waited >= Duration::ZERO), (1, Some(7), true));
        release(&exchange, first);
        let (number, second) = batch(&exchange).unwrap();
        assert_eq!(number, 1);
        release(&exchange, second);
        assert!(matches!(exchange.take(LONG, &mut || false), Ok(Delivery::Failed("the end"))));
        uploader.join().unwrap();
    });
}

#[test]
fn slots_are_freed_between_epochs_until_the_next_is_requested() {
    loom::model(|| {
        let exchange = Arc::new(Tested::new(1));
        let uploader = thread::spawn({
            let exchange = exchange.clone();
            move || {
                upload(&exchange, 1);
                let mut freed = 0;
                exchange.idle(|| true, |_| freed += 1);
                upload(&exchange, 1);
                freed
            }
        });
        let (_, slot) = batch(&exchange).unwrap();
        release(&exchange, slot);
        assert!(batch(&exchange).is_none());
        let (number, slot) = batch(&exchange).unwrap();
        assert_eq!(number, 0);
        release(&exchange, slot);
        assert!(batch(&exchange).is_none());
        let freed = uploader.join().unwrap();
        assert!(freed <= 1);
    });
}

#[test]
fn slot_that_cannot_be_filled_is_replaced() {
    loom::model(|| {
        let exchange = Tested::new(1);
        let (_, slot) = fill(&exchange, 0, &mut true).unwrap();
        drop(slot);
        exchange.lost();
        assert!(fill(&exchange, 1, &mut true).is_some());
        assert_eq!(exchange.slots(), 1);
    });
}

/// A slot of a size, which counts the memory of all slots.
struct Sized {
    size: usize,
    memory: Arc<AtomicUsize>,
}

impl Drop for Sized {
    fn drop(&mut self) {
        self.memory.fetch_sub(self.size, Ordering::Relaxed);
    }
}

#[test]
fn slots_that_are_too_small_are_replaced_within_the_memory() {
    // With at most three preemptions, since all interleavings would take too long.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        type Exchanged = Exchange<Sized, Sized, &'static str, usize>;
        const LIMIT: usize = 2;
        let exchange = Arc::new(Exchanged::new(2));
        let uploader = thread::spawn({
            let exchange = exchange.clone();
            move || {
                let memory = Arc::new(AtomicUsize::new(0));
                // The third batch takes all of the memory, so that the uploader waits for the slots before it.
                for size in [1, 1, 2] {
                    let allocate = |others: bool| {
                        let now = memory.load(Ordering::Relaxed);
                        if now + size > LIMIT {
                            assert!(others, "memory that no slot holds is free");
                            return Ok::<_, ()>(Err(now));
                        }
                        memory.fetch_add(size, Ordering::Relaxed);
                        Ok(Ok(Sized { size, memory: memory.clone() }))
                    };
                    let slot = exchange.fitting_slot(|slot| slot.size >= size, allocate).unwrap().unwrap();
                    assert!(slot.size >= size && memory.load(Ordering::Relaxed) <= LIMIT);
                    assert!(exchange.publish(slot).is_ok());
                }
                exchange.end_epoch();
            }
        });
        let mut sizes = vec![];
        loop {
            match exchange.take(LONG, &mut || false) {
                Ok(Delivery::Batch(slot)) => {
                    sizes.push(slot.size);
                    exchange.release(slot);
                }
                Ok(Delivery::EpochEnd) => break,
                _ => panic!("no batch fails"),
            }
        }
        assert_eq!(sizes, [1, 1, 2]);
        uploader.join().unwrap();
        assert_eq!(exchange.slots(), 1);
    });
}
