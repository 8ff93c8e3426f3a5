//! The rows of a batch.

use std::ops::Range;

use crate::Remainder;

/// One row of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The sample at this position of the epoch or, under policy `shard`, of the replica's own order.
    Sample(u64),
    /// The sample at this position, repeated to fill the batch.
    Repeat(u64),
    /// No sample.
    Masked,
}

impl Row {
    /// Returns the position, unless the row is masked.
    pub fn position(self) -> Option<u64> {
        match self {
            Row::Sample(q) | Row::Repeat(q) => Some(q),
            Row::Masked => None,
        }
    }
}

/// Iterates over the rows of a batch.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Rows not yet returned.
    left: Range<u32>,
    /// Number of the first row among `positions`; rows beyond their end hold no sample of their own.
    first: u64,
    positions: Range<u64>,
    pad: bool,
    /// Whether the whole batch was delivered before, to another replica.
    repeated: bool,
}

impl Rows {
    pub(crate) fn new(first: u64, count: u32, positions: Range<u64>, remainder: Remainder) -> Self {
        Rows { left: 0..count, first, positions, pad: remainder == Remainder::Pad, repeated: false }
    }

    /// Returns the number of rows left that have a sample of their own.
    pub(crate) fn samples(&self) -> u64 {
        let next = self.first.saturating_add(self.left.start.into());
        let own = if self.repeated { 0 } else { (self.positions.end - self.positions.start).saturating_sub(next) };
        own.min(self.left.len() as u64)
    }

    #[inline]
    fn row(&self, i: u32) -> Row {
        let Range { start, end } = self.positions;
        let number = self.first.saturating_add(i.into());
        if number < end - start && !self.repeated {
            Row::Sample(start + number)
        } else if self.pad {
            Row::Repeat(start + number % (end - start))
        } else {
            Row::Masked
        }
    }

    /// Makes every row repeated or, unless the remainder is `pad`, masked, if `repeated` is true.
    pub(crate) fn repeated(self, repeated: bool) -> Self {
        Rows { repeated, ..self }
    }
}

impl Iterator for Rows {
    type Item = Row;

    #[inline]
    fn next(&mut self) -> Option<Row> {
        self.left.next().map(|i| self.row(i))
    }

    fn nth(&mut self, n: usize) -> Option<Row> {
        self.left.nth(n).map(|i| self.row(i))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for Rows {}
