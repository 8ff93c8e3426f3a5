//! How pairs of images are mixed.

use std::ops::Range;

/// How pairs of images are mixed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pairs {
    /// The share of each row's own image.
    pub(super) share: f64,
    /// Columns and rows that are replaced; `None` mixes every value.
    pub(super) rectangle: Option<(Range<usize>, Range<usize>)>,
    /// The row that each one is mixed with.
    pub(super) partners: Vec<usize>,
}

impl Pairs {
    /// Leaves each of `rows` rows as it is.
    pub(super) fn identity(rows: usize) -> Self {
        Pairs { share: 1.0, rectangle: None, partners: (0..rows).collect() }
    }

    /// `valid` says which rows of the batch have a sample.
    pub(super) fn new(share: f64, rectangle: Option<(Range<usize>, Range<usize>)>, valid: &[bool]) -> Self {
        Pairs { share, rectangle, partners: partners(valid) }
    }
}

/// Returns for each row the one that it is mixed with: the next valid one; itself if no other is valid, or it is not.
pub(super) fn partners(valid: &[bool]) -> Vec<usize> {
    let n = valid.len();
    let next = |row: usize| (1..n).map(|step| (row + step) % n).find(|other| valid[*other]);
    (0..n).map(|row| if valid[row] { next(row).unwrap_or(row) } else { row }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_the_next_valid_rows() {
        assert_eq!(partners(&[true, true, true]), [1, 2, 0]);
        assert_eq!(partners(&[false, true, false, true, true]), [0, 3, 2, 4, 1]);
        assert_eq!(partners(&[true, false]), [0, 1]);
        assert!(partners(&[]).is_empty());
    }
}
