//! Position → place: the three orders, bound to one epoch.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

use crate::Error;
use crate::permutation::{MAX, Permutation, TABLE, split};
use crate::prf::{Domain, key};

/// In which order an epoch visits the places `[0, N)` of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// 0, 1, 2, …
    Sequential,
    /// One permutation of all places.
    Shuffled,
    /// Runs of `run` consecutive places are shuffled, then every `window` of them together, for storage that likes long
    /// runs. At most `run` × `window` places are in play at once.
    Interleaved {
        /// L, places a block.
        run: NonZeroU32,
        /// C, blocks a window.
        window: NonZeroU32,
    },
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Sequential => f.write_str("sequential"),
            Order::Shuffled => f.write_str("shuffled"),
            Order::Interleaved { run, window } => write!(f, "interleaved (run {run}, window {window})"),
        }
    }
}

/// An order bound to N places, a seed and an epoch: the function position → place. Its memory does not depend on N.
#[derive(Clone, Debug)]
pub struct EpochOrder {
    len: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Sequential,
    Shuffled(Permutation),
    Interleaved(Interleaved),
}

impl EpochOrder {
    /// The order of one epoch over the places `[0, len)`.
    ///
    /// # Errors
    /// [`Error::TooManySamples`] when `len` exceeds 2⁶³.
    pub fn new(order: Order, len: u64, seed: u64, epoch: u64) -> Result<Self, Error> {
        if len > MAX {
            return Err(Error::TooManySamples { len });
        }
        let kind = match order {
            Order::Sequential => Kind::Sequential,
            Order::Shuffled => Kind::Shuffled(Permutation::bounded(len, key(Domain::Shuffled, seed, epoch, 0))),
            Order::Interleaved { run, window } => {
                Kind::Interleaved(Interleaved::new(len, run.get().into(), window.get().into(), seed, epoch))
            }
        };
        Ok(EpochOrder { len, kind })
    }

    /// N.
    #[expect(clippy::len_without_is_empty, reason = "the size of a domain, not of a collection")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The place visited at position `q`. In interleaved order this sets up q's window each time; who asks for many
    /// positions takes a [`cursor`](EpochOrder::cursor).
    ///
    /// # Panics
    /// When `q` is N or more.
    pub fn at(&self, q: u64) -> u64 {
        assert!(q < self.len, "position {q} of an epoch of {}", self.len);
        match &self.kind {
            Kind::Sequential => q,
            Kind::Shuffled(p) => p.forward(q),
            Kind::Interleaved(i) => {
                let w = i.window(i.window_of(q));
                w.place(i, w.permutation.forward(q - w.first))
            }
        }
    }

    /// The same function for positions that lie near each other: remembers the last window.
    pub fn cursor(&self) -> Cursor {
        Cursor { order: self.clone(), window: None }
    }
}

/// An [`EpochOrder`] that remembers the window it last used: at most 40 KiB.
#[derive(Clone, Debug)]
pub struct Cursor {
    order: EpochOrder,
    window: Option<Window>,
}

impl Cursor {
    /// N.
    #[expect(clippy::len_without_is_empty, reason = "the size of a domain, not of a collection")]
    pub fn len(&self) -> u64 {
        self.order.len
    }

    /// The place visited at position `q`.
    ///
    /// # Panics
    /// When `q` is N or more.
    #[inline]
    pub fn at(&mut self, q: u64) -> u64 {
        assert!(q < self.order.len, "position {q} of an epoch of {}", self.order.len);
        match &self.order.kind {
            Kind::Sequential => q,
            Kind::Shuffled(p) => p.forward(q),
            Kind::Interleaved(i) => {
                let w = i.window_at(q, &mut self.window);
                w.place(i, w.permutation.forward(q - w.first))
            }
        }
    }

    /// The places visited at positions `q`, `q + 1`, …, one for each element of `places`.
    ///
    /// # Panics
    /// When a position is N or more.
    pub fn fill(&mut self, q: u64, places: &mut [u64]) {
        let end = q.saturating_add(places.len() as u64);
        assert!(end <= self.order.len, "positions {q} to {end} of an epoch of {}", self.order.len);
        match &self.order.kind {
            Kind::Sequential => count_from(q, places),
            Kind::Shuffled(p) => {
                count_from(q, places);
                p.forward_all(places);
            }
            Kind::Interleaved(i) => fill_windows(i, &mut self.window, q, places),
        }
    }
}

fn count_from(q: u64, places: &mut [u64]) {
    places.iter_mut().zip(q..).for_each(|(place, q)| *place = q);
}

fn fill_windows(order: &Interleaved, cached: &mut Option<Window>, mut q: u64, mut places: &mut [u64]) {
    while !places.is_empty() {
        let window = order.window_at(q, cached);
        let n = (window.positions().end - q).min(places.len() as u64);
        let (now, later) = places.split_at_mut(n as usize);
        count_from(q - window.first, now);
        window.permutation.forward_all(now);
        now.iter_mut().for_each(|t| *t = window.place(order, *t));
        (q, places) = (q + n, later);
    }
}

/// Blocks of L places, permuted; each C of them a window, permuted inside; the N mod L last places join the last window.
#[derive(Clone, Debug)]
struct Interleaved {
    len: u64,
    run: u64,
    window: u64,
    seed: u64,
    epoch: u64,
    blocks: Permutation,
}

impl Interleaved {
    fn new(len: u64, run: u64, window: u64, seed: u64, epoch: u64) -> Self {
        let blocks = Permutation::bounded(len / run, key(Domain::Blocks, seed, epoch, 0));
        Interleaved { len, run, window, seed, epoch, blocks }
    }

    fn windows(&self) -> u64 {
        self.blocks.len().div_ceil(self.window).max(1)
    }

    fn window_of(&self, q: u64) -> u64 {
        (q / (self.window * self.run)).min(self.windows() - 1)
    }

    /// The window of position `q`: the one held, or a new one in its stead.
    #[inline]
    fn window_at<'a>(&self, q: u64, held: &'a mut Option<Window>) -> &'a Window {
        if held.as_ref().is_some_and(|w| !w.positions().contains(&q)) {
            *held = None;
        }
        held.get_or_insert_with(|| self.window(self.window_of(q)).with_block_starts(self))
    }

    fn window(&self, index: u64) -> Window {
        let first = index * self.window * self.run;
        let first_block = index * self.window;
        let blocks = first_block..self.blocks.len().min(first_block + self.window);
        let last = index + 1 == self.windows();
        let body = (blocks.end - blocks.start) * self.run;
        let len = body + if last { self.len % self.run } else { 0 };
        let permutation = Permutation::bounded(len, key(Domain::Window, self.seed, self.epoch, index));
        Window { first, body, blocks, starts: Vec::new(), permutation }
    }
}

/// One window: its list is the places of its blocks, block after block, then the tail if it is the last.
#[derive(Clone, Debug)]
struct Window {
    /// The window's first position.
    first: u64,
    /// Length of the list without the tail.
    body: u64,
    /// Numbers of the window's blocks in the permuted sequence.
    blocks: Range<u64>,
    /// First place of each block, or empty where not remembered.
    starts: Vec<u64>,
    permutation: Permutation,
}

impl Window {
    /// Remembers where each block begins, where the window has so few that this memory is bounded.
    fn with_block_starts(mut self, order: &Interleaved) -> Self {
        if self.blocks.end - self.blocks.start <= TABLE {
            self.starts = self.blocks.clone().map(|k| order.blocks.forward(k) * order.run).collect();
        }
        self
    }

    fn positions(&self) -> Range<u64> {
        self.first..self.first + self.permutation.len()
    }

    /// The place that stands at `t` of the window's list.
    #[inline]
    fn place(&self, order: &Interleaved, t: u64) -> u64 {
        if t >= self.body {
            return order.blocks.len() * order.run + (t - self.body);
        }
        let (block, within) = split(t, order.run);
        let start = match self.starts.get(block as usize) {
            Some(&start) => start,
            None => order.blocks.forward(self.blocks.start + block) * order.run,
        };
        start + within
    }
}
