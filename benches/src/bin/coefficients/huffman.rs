//! Huffman codes of at most 11 bits in four bit streams that are decoded together, as zstd has them (RFC 8878, 4.2).

use super::level::Level;

const BITS: u32 = 11;
const STREAMS: usize = 4;
/// Bytes after a stream, so that eight can be loaded at its last bit.
const SLACK: usize = 16;

/// The codes of the bytes of one kind of stream.
pub(crate) struct Codes {
    lengths: [u8; 256],
    codes: [u64; 256],
    /// For each 11 bits: the symbol, and the length of its code in the upper byte.
    table: Vec<u16>,
}

impl Codes {
    /// Makes the codes of bytes that occur `counts` times.
    pub(crate) fn new(counts: &[u64; 256]) -> Self {
        let mut counts = *counts;
        let lengths = loop {
            let lengths = lengths(&counts);
            if lengths.iter().all(|length| u32::from(*length) <= BITS) {
                break lengths;
            }
            // Flattens the distribution until the longest code fits.
            counts.iter_mut().filter(|count| **count > 0).for_each(|count| *count = (*count / 2).max(1));
        };
        let (mut codes, mut table, mut code) = ([0; 256], vec![0; 1 << BITS], 0u64);
        for length in 1..=BITS as u8 {
            for symbol in (0..256).filter(|symbol| lengths[*symbol] == length) {
                codes[symbol] = code;
                let free = BITS - u32::from(length);
                table[(code as usize) << free..(code as usize + 1) << free]
                    .fill(symbol as u16 | u16::from(length) << 8);
                code += 1;
            }
            code <<= 1;
        }
        Codes { lengths, codes, table }
    }

    /// Encodes a stream, a quarter in each.
    pub(crate) fn encode(&self, bytes: &[u8]) -> [Vec<u8>; STREAMS] {
        let quarter = bytes.len().div_ceil(STREAMS).max(1);
        let mut parts = bytes.chunks(quarter);
        std::array::from_fn(|_| {
            let (mut out, mut held, mut count) = (vec![], 0u64, 0);
            for byte in parts.next().unwrap_or_default() {
                let length = u32::from(self.lengths[usize::from(*byte)]);
                (held, count) = (held << length | self.codes[usize::from(*byte)], count + length);
                while count >= 8 {
                    count -= 8;
                    out.push((held >> count) as u8);
                }
            }
            if count > 0 {
                out.push((held << (8 - count)) as u8);
            }
            out.extend([0; SLACK]);
            out
        })
    }

    /// Returns the bytes that streams take in a file.
    pub(crate) fn stored(streams: &[Vec<u8>; STREAMS]) -> usize {
        streams.iter().map(|stream| stream.len() - SLACK).sum()
    }

    /// Decodes a stream.
    pub(crate) fn decode(&self, level: Level, streams: &[Vec<u8>; STREAMS], out: &mut [u8]) {
        match level {
            Level::Portable => self.decode_four(streams, out),
            // SAFETY: the level is allowed only if the processor has them.
            _ => unsafe { self.decode_bmi2(streams, out) },
        }
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
    fn decode_bmi2(&self, streams: &[Vec<u8>; STREAMS], out: &mut [u8]) {
        self.decode_four(streams, out);
    }

    #[inline(always)]
    fn decode_four(&self, streams: &[Vec<u8>; STREAMS], out: &mut [u8]) {
        let quarter = out.len().div_ceil(STREAMS).max(1);
        let mut parts = out.chunks_mut(quarter);
        let mut parts: [&mut [u8]; STREAMS] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        let table: &[u16; 1 << BITS] = self.table[..].try_into().expect("2,048 entries");
        let bits = |stream: usize, at: usize| {
            let eight = streams[stream].get(at / 8..at / 8 + 8).map_or([0; 8], |b| b.try_into().expect("eight bytes"));
            u64::from_be_bytes(eight) << (at % 8)
        };
        let mut at = [0; STREAMS];
        let together = parts.iter().map(|part| part.len()).min().unwrap_or(0) / STREAMS * STREAMS;
        for first in (0..together).step_by(4) {
            // 57 bits are at least five codes.
            let mut held: [u64; STREAMS] = std::array::from_fn(|stream| bits(stream, at[stream]));
            for symbol in first..first + 4 {
                for ((part, held), at) in parts.iter_mut().zip(&mut held).zip(&mut at) {
                    let entry = table[(*held >> (64 - BITS)) as usize];
                    part[symbol] = entry as u8;
                    *held <<= entry >> 8;
                    *at += usize::from(entry >> 8);
                }
            }
        }
        for (stream, part) in parts.iter_mut().enumerate() {
            for byte in &mut part[together..] {
                let entry = table[(bits(stream, at[stream]) >> (64 - BITS)) as usize];
                *byte = entry as u8;
                at[stream] += usize::from(entry >> 8);
            }
        }
    }
}

/// Returns the lengths of optimal codes (Huffman, 1952); 0 for bytes that do not occur.
fn lengths(counts: &[u64; 256]) -> [u8; 256] {
    let mut lengths = [0u8; 256];
    let mut nodes: Vec<(u64, Vec<usize>)> =
        (0..256).filter(|symbol| counts[*symbol] > 0).map(|symbol| (counts[symbol], vec![symbol])).collect();
    if let [(_, only)] = &nodes[..] {
        lengths[only[0]] = 1;
    }
    while nodes.len() > 1 {
        nodes.sort_by_key(|node| std::cmp::Reverse(node.0));
        let (a, b) = (nodes.pop().expect("two nodes"), nodes.pop().expect("two nodes"));
        let symbols = [a.1, b.1].concat();
        symbols.iter().for_each(|symbol| lengths[*symbol] += 1);
        nodes.push((a.0 + b.0, symbols));
    }
    lengths
}
