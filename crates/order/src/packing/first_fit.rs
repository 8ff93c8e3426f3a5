//! First-fit decreasing bin packing (D. S. Johnson, "Near-optimal bin packing algorithms", 1973).

/// Packs windows, one after the other, in the same memory: 16 bytes per item, and 8 more per row in the search tree.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstFit {
    /// Items by descending tokens, equal ones ascending: the complement of the tokens above the item's number.
    sorted: Vec<u64>,
    /// A complete binary tree over the rows: each node has the most free tokens of a row below it. The children of node i are
    /// 2i and 2i + 1, the leaves are the second half.
    free: Vec<u32>,
    /// The row of each item.
    rows: Vec<u32>,
}

impl FirstFit {
    /// Puts items of these tokens, each at most `capacity`, into rows. Returns the number of rows.
    pub(super) fn pack(&mut self, tokens: &[u32], capacity: u32) -> u32 {
        self.sorted.clear();
        self.sorted.extend((0u32..).zip(tokens).map(|(item, &t)| u64::from(!t) << 32 | u64::from(item)));
        self.sorted.sort_unstable();
        let leaves = tokens.len().next_power_of_two();
        self.free.clear();
        self.free.resize(2 * leaves, capacity);
        self.rows.clear();
        self.rows.resize(tokens.len(), 0);
        let mut begun = 0;
        for &entry in &self.sorted {
            let (item, tokens) = (entry as u32, !((entry >> 32) as u32));
            // A row that has not begun has the whole capacity, so some row always fits.
            let mut node = 1;
            while node < leaves {
                node *= 2;
                node += usize::from(self.free[node] < tokens);
            }
            let row = (node - leaves) as u32;
            self.rows[item as usize] = row;
            begun = begun.max(row + 1);
            self.free[node] -= tokens;
            while node > 1 {
                node /= 2;
                self.free[node] = self.free[2 * node].max(self.free[2 * node + 1]);
            }
        }
        begun
    }

    /// Returns the row of each item that was packed last.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }
}
