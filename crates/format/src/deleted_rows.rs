//! The bitmap of the deleted rows of a shard.

use crate::{Error, Result};

/// Rows whose deleted ones are counted together.
const BLOCK: usize = 512;
/// Bytes of a block.
const BLOCK_BYTES: usize = BLOCK / 8;

/// The rows of a shard, some of which are deleted. Finds the *n*th row that is not.
///
/// ```
/// use shardtool_format::DeletedRows;
/// let deleted = DeletedRows::parse(&[0b0000_0110], 5, 2)?;
/// assert!(deleted.contains(1) && !deleted.contains(3));
/// assert_eq!([0, 1, 2, 3].map(|n| deleted.live_row(n)), [Some(0), Some(3), Some(4), None]);
/// # Ok::<(), shardtool_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedRows {
    /// A bit for each row, 1 if it is deleted, the least significant bit of each byte first.
    bits: Vec<u8>,
    records: u64,
    /// For each block of rows, the rows before it that are not deleted; at last all of them.
    live: Vec<u64>,
}

impl DeletedRows {
    /// Parses the bitmap of `records` rows, of which `deleted` are deleted.
    ///
    /// # Errors
    /// [`Error::BitmapValue`].
    pub fn parse(bits: &[u8], records: u64, deleted: u64) -> Result<Self> {
        let wrong = |problem| Err(Error::BitmapValue { problem });
        if bits.len() as u64 != records.div_ceil(8) {
            return wrong(format!("{} bytes expected, {} found", records.div_ceil(8), bits.len()));
        }
        let unused = bits.last().is_some_and(|last| !records.is_multiple_of(8) && last >> (records % 8) != 0);
        if unused {
            return wrong("an unused bit that is not 0".to_owned());
        }
        let rows = DeletedRows::of(bits.to_vec(), records);
        let found = records - rows.live_rows();
        if found != deleted {
            return wrong(format!("{deleted} rows expected, {found} found"));
        }
        Ok(rows)
    }

    /// Creates a bitmap of rows that are not deleted.
    pub fn none(records: u64) -> Self {
        DeletedRows::of(vec![0; records.div_ceil(8) as usize], records)
    }

    fn of(bits: Vec<u8>, records: u64) -> Self {
        let (mut live, mut before, mut left) = (vec![], 0, records);
        for block in bits.chunks(BLOCK_BYTES) {
            live.push(before);
            let rows = left.min(BLOCK as u64);
            let deleted: u32 = block.iter().map(|byte| byte.count_ones()).sum();
            before += rows - u64::from(deleted);
            left -= rows;
        }
        live.push(before);
        DeletedRows { bits, records, live }
    }

    /// Returns the same rows with further ones deleted.
    pub fn with(&self, rows: impl IntoIterator<Item = u64>) -> Self {
        let mut bits = self.bits.clone();
        for row in rows.into_iter().filter(|row| *row < self.records) {
            bits[(row / 8) as usize] |= 1 << (row % 8);
        }
        DeletedRows::of(bits, self.records)
    }

    /// Returns whether all rows that are deleted in `other`, of the same shard, are deleted here.
    pub fn contains_all(&self, other: &DeletedRows) -> bool {
        self.bits.len() == other.bits.len() && self.bits.iter().zip(&other.bits).all(|(here, there)| there & !here == 0)
    }

    /// Returns the bitmap as it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bits
    }

    /// Returns the number of rows, deleted or not.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.live[self.live.len() - 1]
    }

    /// Returns whether a row is deleted; rows past the end are not.
    pub fn contains(&self, row: u64) -> bool {
        self.bits.get((row / 8) as usize).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }

    /// Returns the `n`th row that is not deleted, from 0; `None` if there are fewer.
    pub fn live_row(&self, n: u64) -> Option<u64> {
        if n >= self.live_rows() {
            return None;
        }
        let block = self.live.partition_point(|before| *before <= n) - 1;
        let mut left = (n - self.live[block]) as u32;
        for (at, byte) in self.bits.iter().enumerate().skip(block * BLOCK_BYTES) {
            let live = byte.count_zeros();
            if left >= live {
                left -= live;
                continue;
            }
            let mut bits = !byte;
            for _ in 0..left {
                bits &= bits - 1;
            }
            return Some(at as u64 * 8 + u64::from(bits.trailing_zeros()));
        }
        None
    }

    /// Returns how many rows before this one are not deleted; `None` if it is deleted itself, or past the end.
    pub fn rank(&self, row: u64) -> Option<u64> {
        if row >= self.records || self.contains(row) {
            return None;
        }
        let block = (row / BLOCK as u64) as usize;
        let (start, end) = (block * BLOCK_BYTES, (row / 8) as usize);
        let whole: u32 = self.bits[start..end].iter().map(|byte| byte.count_zeros()).sum();
        let before = (!self.bits[end] & ((1u8 << (row % 8)) - 1)).count_ones();
        Some(self.live[block] + u64::from(whole) + u64::from(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with a list of the rows, for lengths around blocks and bytes.
    #[test]
    fn rows_are_found_by_number_and_back() {
        for records in [0u64, 1, 7, 8, 9, 511, 512, 513, 1024, 5000] {
            for step in [1, 2, 3, 7, 511, 513] {
                let gone: Vec<u64> = (0..records).filter(|row| row % step == step / 2).collect();
                let deleted = DeletedRows::none(records).with(gone.iter().copied());
                let live: Vec<u64> = (0..records).filter(|row| !gone.contains(row)).collect();
                let found: Vec<u64> = (0..).map_while(|n| deleted.live_row(n)).collect();
                assert_eq!(found, live, "{records} rows, every {step}th deleted");
                for row in 0..records + 9 {
                    let expected = live.binary_search(&row).ok().map(|at| at as u64);
                    assert_eq!(deleted.rank(row), expected, "row {row} of {records}");
                }
                let again = DeletedRows::parse(deleted.as_bytes(), records, gone.len() as u64).unwrap();
                assert_eq!(again, deleted);
            }
        }
    }

    #[test]
    fn other_bitmaps_are_refused() {
        for (bits, records, deleted) in [
            (&[0b1][..], 1, 0),
            (&[0b0], 1, 1),
            (&[0b10], 1, 0),
            (&[0b1_0000], 4, 0),
            (&[], 1, 0),
            (&[0, 0], 8, 0),
            (&[0xff], 8, 7),
        ] {
            assert!(DeletedRows::parse(bits, records, deleted).is_err(), "{bits:?} {records} {deleted}");
        }
        assert!(DeletedRows::parse(&[0xff], 8, 8).is_ok() && DeletedRows::parse(&[], 0, 0).is_ok());
    }
}
