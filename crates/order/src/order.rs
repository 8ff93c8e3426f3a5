//! Position → source position: the three orders, for one epoch.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;

use crate::Error;
use crate::permutation::{MAX, Permutation, TABLE, split};
use crate::prf::{Domain, key};

/// The order in which an epoch visits the source positions `[0, N)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Order {
    /// 0, 1, 2, …
    Sequential,
    /// One permutation of all source positions.
    Shuffled,
    /// Blocks of `run` consecutive source positions are shuffled, then the contents of each `window` of blocks, for storage
    /// that reads long runs faster. A window has at most `run` × `window` source positions, the last one up to `run` − 1
    /// more.
    Interleaved {
        /// L, source positions per block.
        run: NonZeroU32,
        /// C, blocks per window.
        window: NonZeroU32,
    },
}

impl Order {
    /// Returns the name used in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Order::Sequential => "sequential",
            Order::Shuffled => "shuffled",
            Order::Interleaved { .. } => "interleaved",
        }
    }

    /// Returns `run` and `window` of the interleaved order.
    pub fn interleaving(self) -> Option<(NonZeroU32, NonZeroU32)> {
        match self {
            Order::Interleaved { run, window } => Some((run, window)),
            Order::Sequential | Order::Shuffled => None,
        }
    }
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

/// An order for N source positions, a seed and an epoch: the function position → source position. Its memory does not
/// depend on N.
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
    /// Makes the order of one epoch over the source positions `[0, len)`.
    ///
    /// # Errors
    /// [`Error::TooManySamples`] if `len` exceeds 2⁶³.
    pub fn new(order: Order, len: u64, seed: u64, epoch: u64) -> Result<Self, Error> {
        if len > MAX {
            return Err(Error::TooManySamples { len });
        }
        Ok(EpochOrder::bounded(order, len, seed, epoch))
    }

    /// As [`EpochOrder::new`], for a length already known to be at most 2⁶³.
    pub(crate) fn bounded(order: Order, len: u64, seed: u64, epoch: u64) -> Self {
        let kind = match order {
            Order::Sequential => Kind::Sequential,
            Order::Shuffled => Kind::Shuffled(Permutation::bounded(len, key(Domain::Shuffled, seed, epoch, 0))),
            Order::Interleaved { run, window } => {
                Kind::Interleaved(Interleaved::new(len, run.get().into(), window.get().into(), seed, epoch))
            }
        };
        EpochOrder { len, kind }
    }

    /// Returns N.
    #[expect(clippy::len_without_is_empty, reason = "the size of a domain, not of a collection")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the source position visited at position `q`. In interleaved order each call sets up the window of `q`; use
    /// a [`cursor`](EpochOrder::cursor) for many positions.
    ///
    /// # Panics
    /// If `q` is N or more.
    pub fn at(&self, q: u64) -> u64 {
        assert!(q < self.len, "position {q} of an epoch of {}", self.len);
        match &self.kind {
            Kind::Sequential => q,
            Kind::Shuffled(p) => p.forward(q),
            Kind::Interleaved(i) => {
                let w = i.window(i.window_of(q));
                w.source_position(i, w.permutation.forward(q - w.first))
            }
        }
    }

    /// Returns a cursor, which computes the same function and keeps the last window.
    pub fn cursor(&self) -> Cursor {
        Cursor { order: self.clone(), window: None }
    }
}

/// An [`EpochOrder`] that keeps the window it last used: at most 40 KiB.
#[derive(Clone, Debug)]
pub struct Cursor {
    order: EpochOrder,
    window: Option<Window>,
}

impl Cursor {
    /// Returns N.
    #[expect(clippy::len_without_is_empty, reason = "the size of a domain, not of a collection")]
    pub fn len(&self) -> u64 {
        self.order.len
    }

    /// Returns the source position visited at position `q`.
    ///
    /// # Panics
    /// If `q` is N or more.
    #[inline]
    pub fn at(&mut self, q: u64) -> u64 {
        assert!(q < self.order.len, "position {q} of an epoch of {}", self.order.len);
        match &self.order.kind {
            Kind::Sequential => q,
            Kind::Shuffled(p) => p.forward(q),
            Kind::Interleaved(i) => {
                let w = i.window_at(q, &mut self.window);
                w.source_position(i, w.permutation.forward(q - w.first))
            }
        }
    }

    /// Writes the source positions visited at positions `q`, `q + 1`, … to `out`.
    ///
    /// # Panics
    /// If a position is N or more.
    pub fn fill(&mut self, q: u64, out: &mut [u64]) {
        let end = q.saturating_add(out.len() as u64);
        assert!(end <= self.order.len, "positions {q} to {end} of an epoch of {}", self.order.len);
        match &self.order.kind {
            Kind::Sequential => count_from(q, out),
            Kind::Shuffled(p) => {
                count_from(q, out);
                p.forward_all(out);
            }
            Kind::Interleaved(i) => fill_windows(i, &mut self.window, q, out),
        }
    }
}

fn count_from(q: u64, out: &mut [u64]) {
    out.iter_mut().zip(q..).for_each(|(out, q)| *out = q);
}

fn fill_windows(order: &Interleaved, cached: &mut Option<Window>, mut q: u64, mut out: &mut [u64]) {
    while !out.is_empty() {
        let window = order.window_at(q, cached);
        let n = (window.positions().end - q).min(out.len() as u64);
        let (now, later) = out.split_at_mut(n as usize);
        count_from(q - window.first, now);
        window.permutation.forward_all(now);
        now.iter_mut().for_each(|t| *t = window.source_position(order, *t));
        (q, out) = (q + n, later);
    }
}

/// Permuted blocks of L source positions; each C blocks are a window, whose contents are permuted. The last N mod L source
/// positions belong to the last window.
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

    /// Returns the window of position `q`: the one held, or a new one that replaces it.
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

/// One window. Its list holds the source positions of its blocks, block after block; in the last window the tail follows.
#[derive(Clone, Debug)]
struct Window {
    /// The window's first position.
    first: u64,
    /// Length of the list without the tail.
    body: u64,
    /// Indices of the window's blocks in the permuted sequence.
    blocks: Range<u64>,
    /// First source position of each block; empty if the window has too many blocks.
    starts: Vec<u64>,
    permutation: Permutation,
}

impl Window {
    /// Stores the start of each block, if the window has at most [`TABLE`] blocks, which bounds the memory.
    fn with_block_starts(mut self, order: &Interleaved) -> Self {
        if self.blocks.end - self.blocks.start <= TABLE {
            self.starts = self.blocks.clone().map(|k| order.blocks.forward(k) * order.run).collect();
        }
        self
    }

    fn positions(&self) -> Range<u64> {
        self.first..self.first + self.permutation.len()
    }

    /// Returns entry `t` of the window's list.
    #[inline]
    fn source_position(&self, order: &Interleaved, t: u64) -> u64 {
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
