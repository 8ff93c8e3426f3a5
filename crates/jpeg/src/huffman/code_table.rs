//! Lookup of codes without their magnitude bits.

use crate::markers::huffman_spec::HuffmanSpec;

/// Bits of the first lookup.
const SHORT: u32 = 9;

/// Decodes single codes: short ones by lookup, longer ones by comparison with the last code of each length.
#[derive(Clone)]
pub(crate) struct CodeTable {
    /// `length << 8 | symbol` for the next [`SHORT`] bits; 0 if the code is longer.
    short: [u16; 1 << SHORT],
    /// For each length, the first 16-bit value beyond the codes of that length or less.
    beyond: [u32; 17],
    /// For each length, the index of its first symbol minus its first code.
    offset: [i32; 17],
    symbols: [u8; 256],
}

impl CodeTable {
    pub(crate) fn new(spec: &HuffmanSpec<'_>) -> CodeTable {
        let mut table = CodeTable { short: [0; 1 << SHORT], beyond: [0; 17], offset: [0; 17], symbols: [0; 256] };
        spec.for_each_code(|code, length, symbol| {
            if length <= SHORT {
                let first = (code << (SHORT - length)) as usize;
                table.short[first..first + (1 << (SHORT - length))].fill((length << 8) as u16 | u16::from(symbol));
            }
        });
        let n = spec.symbols.len().min(256);
        table.symbols[..n].copy_from_slice(&spec.symbols[..n]);
        let (mut code, mut index) = (0u32, 0u32);
        for length in 1..=16 {
            let count = u32::from(spec.counts[length - 1]);
            table.offset[length] = index as i32 - code as i32;
            code += count;
            index += count;
            table.beyond[length] = code << (16 - length);
            code <<= 1;
        }
        table
    }

    /// Returns the table of an empty code, in which no lookup succeeds.
    pub(crate) fn empty() -> CodeTable {
        CodeTable::new(&HuffmanSpec { counts: &[0; 16], symbols: &[] })
    }

    /// Returns (length, symbol) of the code at the most significant end of `bits`; `None` for an invalid code.
    #[inline]
    pub(crate) fn find(&self, bits: u64) -> Option<(u32, u8)> {
        match self.short[(bits >> (64 - SHORT)) as usize] {
            0 => self.find_long(bits),
            entry => Some((u32::from(entry >> 8), entry as u8)),
        }
    }

    fn find_long(&self, bits: u64) -> Option<(u32, u8)> {
        let head = (bits >> 48) as u32;
        (SHORT + 1..=16).find(|&l| head < self.beyond[l as usize]).map(|l| {
            let index = (head >> (16 - l)) as i32 + self.offset[l as usize];
            (l, self.symbols[(index & 255) as usize])
        })
    }
}
