//! Optimal Huffman codes, and writing of entropy-coded data with them.

use super::symbols::{Frequencies, MAGNITUDE_SHIFT, Symbol, TABLES};
use crate::markers::huffman_spec::HuffmanSpec;

/// A Huffman code for the symbols of one image.
pub(super) struct HuffmanCode {
    /// Number of codes of each length from 1 to 16 bits.
    pub lengths: [u8; 16],
    /// The symbols, in order of their codes.
    pub symbols: Vec<u8>,
    /// Code and length in bits of each symbol.
    codes: [(u16, u8); 256],
}

/// Bits of the longest code that T.81 allows.
const MAX_LENGTH: usize = 16;

impl HuffmanCode {
    /// Returns the optimal code for symbols of these frequencies in which no code is longer than 16 bits or consists of ones
    /// only (ITU-T T.81, K.2).
    pub(super) fn optimal(frequencies: &Frequencies) -> HuffmanCode {
        let mut depths = tree_depths(frequencies);
        // T.81, figure K.3: of two codes that are too long, one becomes a bit shorter, and the other one moves below a
        // shorter code, which becomes a bit longer.
        let mut lengths = [0usize; 64];
        depths.iter().for_each(|&(_, depth)| lengths[depth] += 1);
        for long in (MAX_LENGTH + 1..64).rev() {
            while lengths[long] > 0 {
                let above = (1..long - 1).rev().find(|&l| lengths[l] > 0).unwrap_or(1);
                lengths[long] -= 2;
                lengths[long - 1] += 1;
                lengths[above + 1] += 2;
                lengths[above] -= 1;
            }
        }
        // The code of ones only, the last of the longest, belongs to the reserved symbol 256.
        if let Some(longest) = lengths.iter_mut().rev().find(|n| **n > 0) {
            *longest -= 1;
        }
        depths.retain(|&(symbol, _)| symbol < 256);
        depths.sort_by_key(|&(symbol, depth)| (depth, symbol));
        let symbols: Vec<u8> = depths.iter().map(|&(symbol, _)| symbol as u8).collect();
        let lengths = std::array::from_fn(|i| lengths[i + 1] as u8);
        let mut codes = [(0, 0); 256];
        HuffmanSpec { counts: &lengths, symbols: &symbols }
            .for_each_code(|code, length, symbol| codes[usize::from(symbol)] = (code as u16, length as u8));
        HuffmanCode { lengths, symbols, codes }
    }
}

/// Returns each symbol that occurs, and the reserved symbol 256, with its depth in the Huffman tree.
fn tree_depths(frequencies: &Frequencies) -> Vec<(usize, usize)> {
    let mut leaves: Vec<(usize, usize)> = (0..256).filter(|&s| frequencies[s] > 0).map(|s| (s, 0)).collect();
    leaves.push((256, 0));
    if leaves.len() == 1 {
        leaves.push((0, 0));
    }
    let weight = |s: usize| u64::from(frequencies.get(s).copied().unwrap_or(0)).max(u64::from(s < 256));
    // Each tree is its weight and its leaves. Of equal weights, the tree with the higher symbols is merged first, so that 256
    // is among the deepest leaves.
    let mut trees: Vec<(u64, Vec<usize>)> =
        leaves.iter().enumerate().map(|(i, &(s, _))| (weight(s), vec![i])).collect();
    while trees.len() > 1 {
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.0));
        if let (Some(a), Some(b)) = (trees.pop(), trees.pop()) {
            let members: Vec<usize> = a.1.into_iter().chain(b.1).collect();
            members.iter().for_each(|&i| leaves[i].1 += 1);
            trees.push((a.0 + b.0, members));
        }
    }
    leaves
}

/// Writes entropy-coded data with byte stuffing.
pub(super) struct EntropyWriter {
    bytes: Vec<u8>,
    /// For each symbol of each table: its code, shifted left by the number of magnitude bits that follow it; from bit 32 on
    /// the length of code and magnitude.
    codes: Box<[u64; TABLES << 8]>,
    held: u64,
    count: u32,
}

impl EntropyWriter {
    /// Returns a writer that appends to `bytes`; `tables` are the codes of each table in order.
    pub(super) fn new(bytes: Vec<u8>, tables: &[HuffmanCode]) -> EntropyWriter {
        let mut codes = Box::new([0; TABLES << 8]);
        for (table, code) in tables.iter().enumerate().take(TABLES) {
            for (symbol, &(bits, length)) in code.codes.iter().enumerate() {
                // The low four bits of a symbol are the number of magnitude bits, in DC and AC tables alike.
                let size = symbol as u64 & 15;
                codes[table << 8 | symbol] = u64::from(bits) << size | (u64::from(length) + size) << 32;
            }
        }
        EntropyWriter { bytes, codes, held: 0, count: 0 }
    }

    /// Writes the code of a symbol and its magnitude bits.
    #[inline]
    pub(super) fn put(&mut self, symbol: Symbol) {
        let code = self.codes[symbol as usize & ((TABLES << 8) - 1)];
        self.bits(code as u32 | symbol >> MAGNITUDE_SHIFT, (code >> 32) as u32);
    }

    /// Writes the low `n` bits of `bits`. Fewer than 32 bits are held between calls, and a code with its magnitude has at most
    /// 31.
    #[inline]
    fn bits(&mut self, bits: u32, n: u32) {
        self.held = self.held << n | u64::from(bits);
        self.count += n;
        if self.count >= 32 {
            self.count -= 32;
            self.word((self.held >> self.count) as u32);
        }
    }

    /// Writes four bytes.
    #[inline]
    fn word(&mut self, word: u32) {
        // Whether any byte is ff, that is, 0 in the complement.
        let needs_stuffing = (!word).wrapping_sub(0x0101_0101) & word & 0x8080_8080 != 0;
        match needs_stuffing {
            false => self.bytes.extend_from_slice(&word.to_be_bytes()),
            true => word.to_be_bytes().into_iter().for_each(|b| self.byte(b)),
        }
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
        if byte == 0xff {
            self.bytes.push(0);
        }
    }

    /// Pads the last byte with ones, and returns all bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let n = (8 - self.count % 8) % 8;
        self.bits((1 << n) - 1, n);
        while self.count >= 8 {
            self.count -= 8;
            self.byte((self.held >> self.count) as u8);
        }
        self.bytes
    }
}
