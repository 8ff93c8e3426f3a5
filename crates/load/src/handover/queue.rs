//! One replica's batches, in order: those that workers fill, those that are complete, and the ends of epochs.

use super::super::sync::Arc;
use std::collections::VecDeque;

/// A position in a replica's order: the epoch, and the number of positions in it that were delivered before.
pub(crate) type Position = (u64, u64);

/// A batch that several workers fill.
pub(crate) trait Work {
    /// Returns whether there are rows that no worker has claimed.
    fn has_unclaimed(&self) -> bool;

    /// Returns whether every row is done.
    fn is_complete(&self) -> bool;

    /// Cancels the rest of the work, which no consumer will take.
    fn cancel(&self);

    /// Returns whether it was cancelled.
    fn is_cancelled(&self) -> bool;
}

/// One replica's work, in order.
pub(crate) struct Queue<W, E> {
    /// The position of the work that begins next.
    pub(super) next: Position,
    /// Whether that is the first work of an epoch, or after a seek.
    pub(super) first: bool,
    /// The consumer's position.
    pub(super) delivered: Position,
    pub(super) items: VecDeque<Item<W, E>>,
    /// Work with a buffer: building, complete, or held by the consumer.
    pub(super) live: usize,
    /// Work that the consumer holds.
    pub(super) held: usize,
    /// Work that the consumer held when it last called [`super::Handover::take`].
    pub(super) kept: usize,
    /// Whether the consumer waits.
    pub(super) waiting: bool,
    /// Whether no more work begins until the consumer seeks.
    pub(super) stopped: bool,
    /// Why the next work could not begin.
    pub(super) error: Option<E>,
}

pub(super) enum Item<W, E> {
    Work { work: Arc<W>, start: Position, after: Position, failure: Option<E> },
    EpochEnd,
}

impl<W: Work, E> Item<W, E> {
    /// Cancels its work. The caller must hold the lock, so that a worker in [`super::Handover::wait_for`] sees the change.
    pub(super) fn cancel(&self) {
        if let Item::Work { work, .. } = self {
            work.cancel();
        }
    }

    pub(super) fn work(&self) -> Option<&Arc<W>> {
        match self {
            Item::Work { work, .. } => Some(work),
            Item::EpochEnd => None,
        }
    }
}

impl<W: Work, E> Queue<W, E> {
    pub(super) fn new() -> Self {
        Queue {
            next: (0, 0),
            first: true,
            delivered: (0, 0),
            items: VecDeque::new(),
            live: 0,
            held: 0,
            kept: 0,
            waiting: false,
            stopped: false,
            error: None,
        }
    }

    /// Returns the position of the work that begins next.
    pub(crate) fn next(&self) -> Position {
        self.next
    }

    /// Returns whether that is the first work of an epoch, or after a seek.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// Returns the consumer's position.
    pub(crate) fn delivered(&self) -> Position {
        self.delivered
    }

    /// Returns whether nothing begins any more, since work failed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped && self.items.is_empty()
    }

    /// Returns whether the consumer took all batches of an epoch, and has yet to take its end.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.items.front(), Some(Item::EpochEnd))
    }

    /// Returns the amount of work that is building or complete.
    pub(crate) fn queued(&self) -> usize {
        self.items.iter().filter_map(Item::work).count()
    }

    /// Returns the amount of work that is complete.
    pub(crate) fn ready(&self) -> usize {
        self.items.iter().filter_map(Item::work).filter(|work| work.is_complete()).count()
    }

    /// Returns the amount of work with a buffer: building, complete, or held by the consumer.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Returns the amount of work that the consumer holds.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Returns the amount of work that the consumer held when it last called [`super::Handover::take`].
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// Returns whether the consumer is waiting for this work.
    pub(crate) fn is_awaited(&self, work: &W) -> bool {
        self.waiting && self.items.front().and_then(Item::work).is_some_and(|front| std::ptr::eq(&**front, work))
    }

    /// Cancels and removes the work that was begun last; it begins again later. Returns `None`, and changes nothing, if
    /// that work is at the front of the queue or is `except`, or if the queue is stopped.
    pub(crate) fn evict_last(&mut self, except: &W) -> Option<Arc<W>> {
        let at = self.items.iter().rposition(|item| item.work().is_some()).filter(|at| *at > 0)?;
        if self.stopped || self.items[at].work().is_some_and(|work| std::ptr::eq(&**work, except)) {
            return None;
        }
        // Also removes the end of the epoch, if it follows.
        let Item::Work { work, start, .. } = self.items.drain(at..).next()? else { return None };
        self.next = start;
        work.cancel();
        Some(work)
    }
}
