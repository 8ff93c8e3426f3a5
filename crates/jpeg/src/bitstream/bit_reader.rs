//! Reads entropy-coded data bit by bit as it is stored, with byte stuffing, and with every access checked: for images of
//! several scans, which are read at several positions in turn.

use crate::error::Damage;
use crate::huffman::code_table::CodeTable;

/// Bits that [`BitReader::fill`] guarantees.
pub(crate) const FILLED: u32 = 32;

/// A position in entropy-coded data.
#[derive(Clone, Copy)]
pub(crate) struct BitPosition {
    /// Byte offset of the first byte not held.
    next: usize,
    held: u64,
    count: u32,
    /// Bits held that were read past the end of the segment.
    missing: u32,
}

impl BitPosition {
    /// The first bit of the segment that starts at byte `offset`.
    pub(crate) fn at(offset: usize) -> BitPosition {
        BitPosition { next: offset, held: 0, count: 0, missing: 0 }
    }
}

/// The bits of a segment, most significant first. Past its end, which is a marker, it reads zeros, which
/// [`BitReader::is_overrun`] reports.
pub(crate) struct BitReader<'a> {
    jpeg: &'a [u8],
    at: BitPosition,
    /// Whether bits were no code, and were taken for the symbol 0.
    invalid: bool,
}

impl<'a> BitReader<'a> {
    /// Reads from a position in the image.
    pub(crate) fn resume(jpeg: &'a [u8], at: BitPosition) -> BitReader<'a> {
        BitReader { jpeg, at, invalid: false }
    }

    /// The position of the next bit.
    pub(crate) fn position(&self) -> BitPosition {
        self.at
    }

    /// Makes sure that at least [`FILLED`] bits are held.
    #[inline(always)]
    pub(crate) fn fill(&mut self) {
        if self.at.count < FILLED {
            self.refill();
        }
    }

    #[inline]
    fn refill(&mut self) {
        let at = &mut self.at;
        if let Some(head) = self.jpeg.get(at.next..).and_then(|rest| rest.first_chunk::<8>()) {
            let word = u64::from_be_bytes(*head);
            // The high bits of the bytes that are 0xff (and perhaps of others, if there is one).
            let ff = (!word).wrapping_sub(0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080;
            if ff == 0 {
                let bytes = (63 - at.count) / 8;
                // Bits beyond `count` are not dropped: the next refill sets them to the same values.
                at.held |= word >> at.count;
                at.next += bytes as usize;
                at.count += 8 * bytes;
                return;
            }
        }
        self.refill_bytewise();
    }

    #[cold]
    #[inline(never)]
    fn refill_bytewise(&mut self) {
        let at = &mut self.at;
        while at.count <= 56 {
            let byte = match self.jpeg.get(at.next..) {
                Some([0xff, 0, ..]) => {
                    at.next += 2;
                    0xff
                }
                // A fill byte.
                Some([0xff, 0xff, ..]) => {
                    at.next += 1;
                    continue;
                }
                Some(&[byte, ..]) if byte != 0xff => {
                    at.next += 1;
                    byte
                }
                _ => {
                    at.missing += 8;
                    0
                }
            };
            at.held |= u64::from(byte) << (56 - at.count);
            at.count += 8;
        }
    }

    /// The bits held, the next one being the most significant; at least [`FILLED`] after [`BitReader::fill`].
    #[inline(always)]
    pub(crate) fn held(&self) -> u64 {
        self.at.held
    }

    /// Consumes `n` of the bits held.
    #[inline(always)]
    pub(crate) fn consume(&mut self, n: u32) {
        self.at.held <<= n;
        self.at.count -= n;
    }

    /// Reads `n` bits, at most 16.
    #[inline(always)]
    pub(crate) fn take(&mut self, n: u32) -> i32 {
        self.fill();
        let value = (self.at.held >> 1 >> (63 - n)) as i32;
        self.consume(n);
        value
    }

    /// Decodes one Huffman code. After [`BitReader::fill`], 16 bits are left.
    #[inline(always)]
    pub(crate) fn symbol(&mut self, codes: &CodeTable) -> Result<u8, Damage> {
        self.fill();
        let (length, symbol) = codes.find(self.at.held).ok_or(Damage::Code)?;
        self.consume(length);
        Ok(symbol)
    }

    /// Decodes one Huffman code as libjpeg does: bits that are no code are 17 bits of the symbol 0.
    pub(crate) fn symbol_or_0(&mut self, codes: &CodeTable) -> u8 {
        self.fill();
        let found = codes.find(self.at.held);
        self.invalid |= found.is_none();
        let (length, symbol) = found.unwrap_or((17, 0));
        self.consume(length);
        symbol
    }

    /// Whether [`BitReader::symbol_or_0`] met bits that are no code.
    pub(crate) fn met_invalid_code(&self) -> bool {
        self.invalid
    }

    /// Byte offset at which the marker that ends the segment is looked for.
    pub(crate) fn offset(&self) -> usize {
        self.at.next
    }

    /// Continues at byte `offset`.
    pub(crate) fn jump(&mut self, offset: usize) {
        self.at = BitPosition::at(offset);
    }

    /// Whether more bits were read than the segment has.
    pub(crate) fn is_overrun(&self) -> bool {
        self.at.missing > self.at.count
    }

    /// Ends the segment, of which only padding may be left, which consists of ones, and goes to the next one. Returns the
    /// number (0 to 7) of the restart marker between them, and the byte offset of the next segment.
    ///
    /// # Errors
    /// [`Damage::LeftOver`] if other bits are left, [`Damage::Ends`] if no restart marker follows.
    pub(crate) fn next_segment(&mut self) -> Result<(u8, usize), Damage> {
        self.consume(self.at.count % 8);
        loop {
            self.fill();
            if self.at.count <= self.at.missing {
                break;
            }
            if self.take(8) != 0xff {
                return Err(Damage::LeftOver);
            }
        }
        match self.jpeg.get(self.at.next..) {
            Some(&[0xff, m @ 0xd0..=0xd7, ..]) => {
                let start = self.at.next + 2;
                self.at = BitPosition::at(start);
                Ok((m & 7, start))
            }
            _ => Err(Damage::Ends),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits read from stuffed data, wherever the position is saved and resumed, are those of the data without stuffing.
    #[test]
    fn reads_the_bits_of_unstuffed_data() {
        let mut state = 5u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % n
        };
        for round in 0..500 {
            let data: Vec<u8> =
                (0..random(60)).map(|_| if random(1 + round % 9) == 0 { 0xff } else { random(256) as u8 }).collect();
            let mut jpeg: Vec<u8> = vec![0; 3];
            for &byte in &data {
                jpeg.push(byte);
                if byte == 0xff {
                    jpeg.push(0);
                }
            }
            let ends: &[u8] = [&[0xff, 0xd9][..], &[0xff, 0xff, 0xd3], &[]][round as usize % 3];
            jpeg.extend_from_slice(ends);
            let mut at = BitPosition::at(3);
            let mut bit = 0;
            while bit < data.len() * 8 {
                let n = (random(17) as usize).min(data.len() * 8 - bit);
                let mut reader = BitReader::resume(&jpeg, at);
                let expected = (bit..bit + n).fold(0, |v, b| v << 1 | i32::from(data[b / 8] >> (7 - b % 8) & 1));
                assert_eq!(reader.take(n as u32), expected);
                assert!(!reader.is_overrun());
                at = reader.position();
                bit += n;
            }
            let mut reader = BitReader::resume(&jpeg, at);
            let next = reader.next_segment();
            match round % 3 {
                1 => assert_eq!(next.ok(), Some((3, jpeg.len()))),
                _ => assert!(matches!(next, Err(Damage::Ends))),
            }
            reader = BitReader::resume(&jpeg, at);
            assert_eq!(reader.take(9), 0);
            assert!(reader.is_overrun());
        }
    }
}
