//! Optimal Huffman codes, and writing bits with them.

use crate::huffman::HuffmanSpec;
use crate::transcode::symbols::{MAGNITUDE, Symbol, TABLES};

/// How often each symbol occurs.
pub(crate) struct Frequencies(pub [u32; 256]);

/// A code made for one image.
pub(crate) struct Code {
    /// Number of codes of each length from 1 to 16 bits.
    pub lengths: [u8; 16],
    /// The symbols, in order of their codes.
    pub symbols: Vec<u8>,
    /// Code and length in bits of each symbol.
    codes: [(u16, u8); 256],
}

/// Longest code of a JPEG.
const LONGEST: usize = 16;

impl Code {
    /// The best code for those counts, with no code of more than 16 bits and none of only ones (ITU-T T.81, K.2).
    pub(crate) fn new(counts: &Frequencies) -> Code {
        let mut depths = depths(counts);
        // T.81, figure K.3: two codes too long become one shorter by a bit, and a code above makes room for the other.
        let mut lengths = [0usize; 64];
        depths.iter().for_each(|&(_, depth)| lengths[depth] += 1);
        for long in (LONGEST + 1..64).rev() {
            while lengths[long] > 0 {
                let above = (1..long - 1).rev().find(|&l| lengths[l] > 0).unwrap_or(1);
                lengths[long] -= 2;
                lengths[long - 1] += 1;
                lengths[above + 1] += 2;
                lengths[above] -= 1;
            }
        }
        // The code of only ones goes to the symbol that does not exist: the last of the longest.
        if let Some(longest) = lengths.iter_mut().rev().find(|n| **n > 0) {
            *longest -= 1;
        }
        depths.retain(|&(symbol, _)| symbol < 256);
        depths.sort_by_key(|&(symbol, depth)| (depth, symbol));
        let symbols: Vec<u8> = depths.iter().map(|&(symbol, _)| symbol as u8).collect();
        let lengths = std::array::from_fn(|i| lengths[i + 1] as u8);
        let mut codes = [(0, 0); 256];
        HuffmanSpec { counts: &lengths, symbols: &symbols }
            .each(|code, length, symbol| codes[usize::from(symbol)] = (code as u16, length as u8));
        Code { lengths, symbols, codes }
    }
}

/// Each symbol that occurs, and 256, which stands for the code of only ones, with its depth in Huffman's tree.
fn depths(counts: &Frequencies) -> Vec<(usize, usize)> {
    let mut leaves: Vec<(usize, usize)> = (0..256).filter(|&s| counts.0[s] > 0).map(|s| (s, 0)).collect();
    leaves.push((256, 0));
    if leaves.len() == 1 {
        leaves.push((0, 0));
    }
    let weight = |s: usize| u64::from(counts.0.get(s).copied().unwrap_or(0)).max(u64::from(s < 256));
    // Each tree: weight, and its leaves. Of equal weights the one with the higher symbols is taken first, so that 256
    // is among the deepest.
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

/// Entropy-coded data being written, with byte stuffing.
pub(crate) struct EntropyWriter {
    bytes: Vec<u8>,
    /// Of each symbol of each table: its code, moved up by the magnitude bits that follow it, and above bit 32 the length of
    /// both.
    codes: Box<[u64; TABLES << 8]>,
    held: u64,
    count: u32,
}

impl EntropyWriter {
    /// A writer that appends to `bytes`, with the codes of each table in turn.
    pub(crate) fn new(bytes: Vec<u8>, tables: &[Code]) -> EntropyWriter {
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

    /// Writes a symbol's code and its magnitude.
    #[inline]
    pub(crate) fn put(&mut self, symbol: Symbol) {
        let code = self.codes[symbol as usize & ((TABLES << 8) - 1)];
        self.bits(code as u32 | symbol >> MAGNITUDE, (code >> 32) as u32);
    }

    /// Fewer than 32 bits are held between calls, and a code with its magnitude has at most 31.
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
        let stuffed = (!word).wrapping_sub(0x0101_0101) & word & 0x8080_8080 != 0;
        match stuffed {
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

    /// Fills the last byte with ones, and gives back what was written.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let n = (8 - self.count % 8) % 8;
        self.bits((1 << n) - 1, n);
        while self.count >= 8 {
            self.count -= 8;
            self.byte((self.held >> self.count) as u8);
        }
        self.bytes
    }
}
