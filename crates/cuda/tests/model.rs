//! Every interleaving of the hand-over of slots, tried by a model checker: no slot in two hands, batches in order, nobody
//! left waiting.

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}
#[path = "../src/exchange.rs"]
mod exchange;

use exchange::{Acquired, Delivery, Empty, Exchange};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::time::Duration;

/// A slot that knows how many use it.
#[derive(Clone)]
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn enter(&self) {
        assert_eq!(self.0.fetch_add(1, Ordering::Relaxed), 0, "a slot in two hands");
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Tested = Exchange<Slot, (u32, Slot), &'static str, u8>;

const PATIENT: Duration = Duration::from_secs(1 << 30);

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

/// Uploads batches until the consumer goes away or `last` is published, then an epoch's end.
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
    match exchange.take(PATIENT, &mut || false) {
        Ok(Delivery::Batch(batch)) => Some(batch),
        Ok(Delivery::EpochEnd) => None,
        Ok(Delivery::Failed(error)) => panic!("{error}"),
        Err(Empty::Starved { held, .. }) => panic!("starved with {held} held"),
        Err(Empty::Interrupted) => panic!("nobody interrupts"),
    }
}

fn give_back(exchange: &Tested, slot: Slot) {
    slot.leave();
    exchange.release(slot);
}

#[test]
fn batches_come_in_order_and_each_slot_is_in_one_hand() {
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
            give_back(&exchange, slot);
        }
        assert_eq!(expected, 3);
        uploader.join().unwrap();
        assert_eq!((exchange.counts(), exchange.slots() <= 2), ((0, 0), true));
    });
}

#[test]
fn a_batch_may_come_back_from_another_thread() {
    // Three threads: every interleaving with up to three preemptions, which is where such errors show, not all of them.
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
            move || give_back(&exchange, slot)
        });
        let (number, slot) = batch(&exchange).unwrap();
        assert_eq!(number, 1);
        give_back(&exchange, slot);
        other.join().unwrap();
        uploader.join().unwrap();
    });
}

#[test]
fn the_consumer_may_go_away_at_any_moment() {
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
                assert!(exchange.release(slot).is_some(), "after the end a slot is freed by who gives it back");
            }
        }
        drop(free);
        held.1.leave();
        assert!(exchange.release(held.1).is_some());
        assert_eq!(exchange.slots(), 0);
    });
}

#[test]
fn who_holds_everything_is_told_so_and_may_go_on() {
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
        let Err(Empty::Starved { held, why, waited }) = exchange.take(Duration::ZERO, &mut || false) else {
            panic!("nothing can be ready")
        };
        assert_eq!((held, why, waited >= Duration::ZERO), (1, Some(7), true));
        give_back(&exchange, first);
        let (number, second) = batch(&exchange).unwrap();
        assert_eq!(number, 1);
        give_back(&exchange, second);
        assert!(matches!(exchange.take(PATIENT, &mut || false), Ok(Delivery::Failed("the end"))));
        uploader.join().unwrap();
    });
}

#[test]
fn between_epochs_slots_are_freed_until_the_next_is_asked_for() {
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
        give_back(&exchange, slot);
        assert!(batch(&exchange).is_none());
        let (number, slot) = batch(&exchange).unwrap();
        assert_eq!(number, 0);
        give_back(&exchange, slot);
        assert!(batch(&exchange).is_none());
        let freed = uploader.join().unwrap();
        assert!(freed <= 1);
    });
}

#[test]
fn a_slot_that_cannot_be_filled_makes_room_for_another() {
    loom::model(|| {
        let exchange = Tested::new(1);
        let (_, slot) = fill(&exchange, 0, &mut true).unwrap();
        drop(slot);
        exchange.lost();
        assert!(fill(&exchange, 1, &mut true).is_some());
        assert_eq!(exchange.slots(), 1);
    });
}
