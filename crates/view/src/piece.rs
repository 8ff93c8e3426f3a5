//! The matching records of one shard, in little memory: a list of rows, or a bit for each row.

/// Rows of a shard, ascending.
#[derive(Debug)]
pub(crate) enum Piece {
    Few(Box<[u32]>),
    /// Bit `row % 64` of word `row / 64`, and the number of bits that are set.
    Many {
        words: Box<[u64]>,
        count: u64,
    },
}

impl Piece {
    /// Keeps ascending rows of a shard of `records`.
    pub(crate) fn new(rows: &[u32], records: u64) -> Self {
        // A bit for each row is shorter than 32 for each that matches.
        if 32 * rows.len() as u64 <= records {
            return Piece::Few(rows.into());
        }
        let mut words = vec![0u64; records.div_ceil(64) as usize];
        rows.iter().for_each(|row| words[*row as usize / 64] |= 1 << (row % 64));
        Piece::Many { words: words.into(), count: rows.len() as u64 }
    }

    /// Returns the number of rows.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Piece::Few(rows) => rows.len() as u64,
            Piece::Many { count, .. } => *count,
        }
    }

    /// Returns the memory that the rows take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Piece::Few(rows) => 4 * rows.len() as u64,
            Piece::Many { words, .. } => 8 * words.len() as u64,
        }
    }

    /// Returns the rows without the first `skipped`.
    pub(crate) fn rows(&self, skipped: usize) -> impl Iterator<Item = u32> {
        let (few, words): (&[u32], &[u64]) = match self {
            Piece::Few(rows) => (rows, &[]),
            Piece::Many { words, .. } => (&[], words),
        };
        let bits = words.iter().zip((0..).step_by(64)).flat_map(|(word, first)| {
            let rest = std::iter::successors(Some(*word), |rest| Some(rest & rest.wrapping_sub(1)));
            rest.take_while(|rest| *rest != 0).map(move |rest| first + rest.trailing_zeros())
        });
        few.iter().copied().chain(bits).skip(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_in_either_form() {
        let records = 1000u32;
        for every in [1, 2, 31, 32, 33, 500] {
            let rows: Vec<_> = (0..records).filter(|row| row % every == every - 1).collect();
            let piece = Piece::new(&rows, records.into());
            assert_eq!(piece.count(), rows.len() as u64);
            assert!(piece.bytes() <= 128, "{every}: {} bytes", piece.bytes());
            for skipped in [0, 1, rows.len() / 2, rows.len()] {
                assert_eq!(piece.rows(skipped).collect::<Vec<_>>(), rows[skipped..], "{every}, {skipped}");
            }
        }
        assert_eq!(Piece::new(&[], 0).rows(0).count(), 0);
    }
}
