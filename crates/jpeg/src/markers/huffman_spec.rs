//! A Huffman table as a DHT segment specifies it (T.81, B.2.4.2).

/// Code lengths and symbols of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct HuffmanSpec<'a> {
    /// Number of codes of each length from 1 to 16 bits (BITS).
    pub counts: &'a [u8; 16],
    /// The symbols in the order of their codes (HUFFVAL).
    pub symbols: &'a [u8],
}

impl HuffmanSpec<'_> {
    /// Whether the counts describe a prefix code for exactly these symbols.
    pub(crate) fn is_prefix_code(&self) -> bool {
        let mut left = 1i32;
        for &count in self.counts {
            left = (left << 1) - i32::from(count);
            if left < 0 {
                return false;
            }
        }
        self.symbols.len() == self.counts.iter().map(|&c| usize::from(c)).sum::<usize>()
    }

    /// Calls `f` with every (code, length in bits, symbol) in the order of the codes.
    #[inline]
    pub(crate) fn for_each_code(&self, mut f: impl FnMut(u32, u32, u8)) {
        let (mut code, mut symbols) = (0u32, self.symbols.iter());
        for (length, &count) in (1u32..).zip(self.counts) {
            for &symbol in symbols.by_ref().take(usize::from(count)) {
                f(code, length, symbol);
                code += 1;
            }
            code <<= 1;
        }
    }
}
