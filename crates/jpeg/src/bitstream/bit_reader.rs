//! Reads an entropy-coded segment bit by bit, with every access checked: for images of several scans.

use crate::error::Damage;
use crate::huffman::code_table::CodeTable;

/// The bits of a segment, most significant first. Past the end it reads zeros, which [`BitReader::is_overrun`] reports.
pub(crate) struct BitReader<'a> {
    rest: &'a [u8],
    held: u64,
    count: u32,
    /// Bits of `count` that were read past the end.
    missing: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> BitReader<'a> {
        BitReader { rest: data, held: 0, count: 0, missing: 0 }
    }

    fn refill(&mut self) {
        if let Some((head, _)) = self.rest.split_first_chunk::<8>() {
            let bytes = (63 - self.count) / 8;
            self.held |= u64::from_be_bytes(*head) >> self.count;
            // Bits beyond `count` are not dropped: the next refill sets them to the same values.
            self.rest = &self.rest[bytes as usize..];
            self.count += 8 * bytes;
            return;
        }
        while self.count <= 56 {
            let byte = match self.rest {
                [first, rest @ ..] => {
                    self.rest = rest;
                    *first
                }
                [] => {
                    self.missing += 8;
                    0
                }
            };
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// Reads `n` bits, at most 16.
    #[inline]
    pub(crate) fn take(&mut self, n: u32) -> i32 {
        if self.count < n {
            self.refill();
        }
        let value = (self.held >> 1 >> (63 - n)) as i32;
        self.consume(n);
        value
    }

    fn consume(&mut self, n: u32) {
        self.held <<= n;
        self.count -= n;
    }

    /// Decodes one Huffman code.
    #[inline]
    pub(crate) fn symbol(&mut self, codes: &CodeTable) -> Result<u8, Damage> {
        if self.count < 16 {
            self.refill();
        }
        let (length, symbol) = codes.find(self.held).ok_or(Damage::Code)?;
        self.consume(length);
        Ok(symbol)
    }

    /// Whether more bits were read than the segment has.
    pub(crate) fn is_overrun(&self) -> bool {
        self.missing > self.count
    }

    /// Whether only padding is left, which consists of ones.
    pub(crate) fn only_padding_left(&mut self) -> bool {
        self.consume(self.count % 8);
        while self.count > self.missing {
            if self.take(8) != 0xff {
                return false;
            }
        }
        self.rest.iter().all(|&b| b == 0xff)
    }
}
