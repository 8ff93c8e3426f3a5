//! The runs of a row: alternating lengths of white and black, beginning with white.

use super::RowError;

/// The runs of the row that is being decoded.
pub(super) struct Runs {
    lengths: Vec<i64>,
    /// The pixels that the runs cover, those of `pending` included.
    pub(super) position: i64,
    /// The pixels of the run whose last code has not been read.
    pub(super) pending: i64,
    width: i64,
}

impl Runs {
    /// Returns the most runs that a row may have, as in libtiff. More than that is damage.
    pub(super) fn most(width: u32, two_dimensional: bool) -> usize {
        (width as usize + 1).next_multiple_of(32) * if two_dimensional { 2 } else { 1 }
    }

    pub(super) fn new(width: u32, two_dimensional: bool) -> Self {
        let lengths = Vec::with_capacity(Self::most(width, two_dimensional));
        Runs { lengths, position: 0, pending: 0, width: width.into() }
    }

    /// Begins the next row.
    pub(super) fn clear(&mut self) {
        self.lengths.clear();
        (self.position, self.pending) = (0, 0);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.position >= self.width
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns whether the next run is black.
    pub(super) fn is_black(&self) -> bool {
        self.lengths.len() % 2 == 1
    }

    pub(super) fn width(&self) -> i64 {
        self.width
    }

    pub(super) fn lengths(&self) -> &[i64] {
        &self.lengths
    }

    /// Continues the run.
    pub(super) fn extend(&mut self, pixels: i64) {
        self.position += pixels;
        self.pending += pixels;
    }

    /// Ends the run after further `pixels`.
    pub(super) fn end(&mut self, pixels: i64) -> Result<(), RowError> {
        if self.lengths.len() == self.lengths.capacity() {
            return Err(RowError::TooManyRuns);
        }
        self.lengths.push(self.pending + pixels);
        self.position += pixels;
        self.pending = 0;
        Ok(())
    }

    /// Appends a run up to the end of the row without moving the position, as libtiff does for an end-of-line code inside a row.
    pub(super) fn end_row_early(&mut self) -> Result<(), RowError> {
        let (position, pending) = (self.position, std::mem::take(&mut self.pending));
        self.end(self.width - position)?;
        (self.position, self.pending) = (position, pending);
        Ok(())
    }

    /// Removes a pair of empty runs from the end.
    pub(super) fn remove_empty_pair(&mut self) {
        if let [.., 0, 0] = self.lengths[..] {
            self.lengths.truncate(self.lengths.len() - 2);
        }
    }

    /// Gives the row its width, as libtiff does: the runs that go beyond it are removed, and the rest of the row is white.
    pub(super) fn clean_up(&mut self) -> Result<(), RowError> {
        if self.pending != 0 {
            self.end(0)?;
        }
        while self.position > self.width
            && let Some(length) = self.lengths.pop()
        {
            self.position -= length;
        }
        if self.position < self.width {
            self.position = self.position.max(0);
            if self.is_black() {
                self.end(0)?;
            }
            self.end(self.width - self.position)?;
        }
        Ok(())
    }

    /// Sets the bits of the black pixels of `row`, whose bits are zero, and cuts the runs at the width.
    pub(super) fn fill(&mut self, row: &mut [u8]) {
        let mut x = 0;
        for (i, length) in self.lengths.iter_mut().enumerate() {
            *length = (*length).clamp(0, self.width - x);
            if i % 2 == 1 {
                fill_bits(row, x as usize, (x + *length) as usize);
            }
            x += *length;
        }
    }
}

/// Sets the bits `start..end`, the highest bit of a byte first.
fn fill_bits(row: &mut [u8], start: usize, end: usize) {
    if start == end {
        return;
    }
    let (first, last) = (start / 8, (end - 1) / 8);
    let (from, to) = (0xff >> (start % 8), 0xff << (7 - (end - 1) % 8));
    if first == last {
        row[first] |= from & to;
    } else {
        row[first] |= from;
        row[first + 1..last].fill(0xff);
        row[last] |= to;
    }
}
