//! The AC coefficients that a scan adds to a block, or to consecutive blocks.

use crate::bitstream::bit_reader::{BitReader, FILLED};
use crate::error::Damage;
use crate::huffman::band_table::{BandTable, END_OF_BAND};
use crate::markers::standard::ZIGZAG;

/// The coefficients of a progressive AC scan, and its state.
#[derive(Clone, Copy)]
pub(super) struct Band {
    /// First and last zigzag index.
    pub first: u32,
    pub last: u32,
    /// Successive approximation: low bits not known after the scan.
    pub low: u32,
    /// End-of-band run (EOBRUN): the number of following blocks without new coefficients.
    pub run: u32,
}

impl Band {
    /// All AC coefficients, as in sequential scans.
    pub(super) const ALL: Band = Band { first: 1, last: 63, low: 0, run: 0 };

    /// Decodes new coefficients of a block, of which `set` are not 0. Returns `n` of the end-of-band symbol (EOBn) that ends
    /// them, if one does.
    #[inline(always)]
    pub(super) fn new_coefficients(
        &self,
        table: &BandTable,
        bits: &mut BitReader<'_>,
        block: &mut [i16; 64],
        set: &mut u64,
    ) -> Result<Option<u32>, Damage> {
        let mut k = self.first;
        let mut new = 0;
        let end = loop {
            bits.fill();
            let entry = table.find(bits.held());
            bits.consume(entry & 0xff);
            k += entry >> 8 & 0xff;
            let value = entry as i32 >> 16;
            if k > 64 {
                break match entry >> 8 & 0xff {
                    END_OF_BAND => Some(entry >> 16),
                    // 16 zeros (ZRL) may end beyond the band.
                    _ if value == 0 => None,
                    _ => return Err(Damage::Block),
                };
            }
            let value = (value << self.low) as i16;
            if value != 0 {
                let at = (k - 1) & 63;
                block[usize::from(ZIGZAG[at as usize])] = value;
                new |= 1 << at;
            } else if entry == 0 {
                return Err(Damage::Code);
            } else if entry >> 16 != 0 {
                // All bits of the value are beyond those of a coefficient.
                let at = (k - 1) & 63;
                block[usize::from(ZIGZAG[at as usize])] = 0;
                (new, *set) = (new & !(1 << at), *set & !(1 << at));
            }
            if k > self.last {
                break None;
            }
        };
        *set |= new;
        Ok(end)
    }

    /// Decodes the first scan of the band (T.81, G.1.2.2) in consecutive blocks.
    pub(super) fn first_scan(
        &mut self,
        table: &BandTable,
        bits: &mut BitReader<'_>,
        blocks: &mut [[i16; 64]],
        set: &mut [u64],
    ) -> Result<(), Damage> {
        let mut at = 0;
        while at < blocks.len() {
            if self.run > 0 {
                let n = (blocks.len() - at).min(self.run as usize);
                self.run -= n as u32;
                at += n;
                continue;
            }
            if let Some(n) = self.new_coefficients(table, bits, &mut blocks[at], &mut set[at])? {
                self.run = end_of_band_run(bits, n) - 1;
            }
            at += 1;
        }
        Ok(())
    }

    /// Decodes a refining scan of the band (T.81, G.1.2.3) in consecutive blocks.
    pub(super) fn refining_scan(
        &mut self,
        table: &BandTable,
        bits: &mut BitReader<'_>,
        blocks: &mut [[i16; 64]],
        set: &mut [u64],
    ) -> Result<(), Damage> {
        for (block, set) in blocks.iter_mut().zip(set) {
            self.refine(table, bits, block, set)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn refine(
        &mut self,
        table: &BandTable,
        bits: &mut BitReader<'_>,
        block: &mut [i16; 64],
        set: &mut u64,
    ) -> Result<(), Damage> {
        let one = 1i16 << self.low;
        let all = u64::MAX << self.first & u64::MAX >> (63 - self.last);
        // The coefficients that have a bit in this scan; and those that are 0, from index `k` on.
        let known = *set & all;
        let (mut zeros, mut k) = (all & !known, self.first);
        // Bits are applied after the last symbol, in one loop, whose end is mispredicted once.
        let mut corrections = 0;
        while self.run == 0 && k <= self.last {
            bits.fill();
            let entry = table.find(bits.held());
            bits.consume(entry & 0xff);
            let (coefs, value) = (entry >> 8 & 0xff, entry as i32 >> 16);
            if coefs == END_OF_BAND {
                self.run = end_of_band_run(bits, entry >> 16);
                break;
            }
            // New coefficients have one magnitude bit; an invalid code covers none.
            if coefs == 0 || value.unsigned_abs() > 1 {
                return Err(Damage::Code);
            }
            // Most runs are short, and their lengths unpredictable, so that the first steps have no branch.
            for step in 1..4 {
                zeros &= zeros.wrapping_sub(1) | u64::from(step < coefs).wrapping_sub(1);
            }
            for _ in 4..coefs {
                zeros &= zeros.wrapping_sub(1);
            }
            if zeros == 0 {
                // The band ends before the coefficient.
                if value != 0 {
                    return Err(Damage::Block);
                }
                corrections = read_bits(bits, corrections, (known & u64::MAX << k).count_ones());
                k = 64;
                break;
            }
            let at = zeros.trailing_zeros() & 63;
            corrections = read_bits(bits, corrections, at + 1 - k - coefs);
            if value != 0 {
                block[usize::from(ZIGZAG[at as usize])] = value as i16 * one;
                *set |= 1 << at;
            }
            zeros &= zeros - 1;
            k = at + 1;
        }
        if self.run > 0 {
            if k < 64 {
                bits.fill();
                corrections = read_bits(bits, corrections, (known & u64::MAX << k).count_ones());
            }
            k = 64;
            self.run -= 1;
        }
        let passed = if k < 64 { known & !(u64::MAX << k) } else { known };
        correct(block, passed, corrections, one);
        Ok(())
    }
}

/// Reads the length of an end-of-band run from its symbol EOBn on: the number of blocks, from this one on, without new
/// coefficients.
#[inline(always)]
fn end_of_band_run(bits: &mut BitReader<'_>, n: u32) -> u32 {
    (1 << n) + bits.take(n) as u32
}

/// Reads `n` bits, at most 63, and appends them to `before`. At most one code with its magnitude bit may have been read since
/// the last [`BitReader::fill`].
#[inline(always)]
fn read_bits(bits: &mut BitReader<'_>, before: u64, mut n: u32) -> u64 {
    let mut all = before;
    if n > FILLED - 17 {
        while n > FILLED {
            bits.fill();
            all = all << FILLED | bits.held() >> (64 - FILLED);
            bits.consume(FILLED);
            n -= FILLED;
        }
        bits.fill();
    }
    all = all << n | bits.held() >> 1 >> (63 - n);
    bits.consume(n);
    all
}

/// Adds their next bits, the last one in bit 0 of `bits`, to the coefficients of which `known` has the zigzag
/// indices; none of them is 0.
#[inline(always)]
fn correct(block: &mut [i16; 64], mut known: u64, mut bits: u64, one: i16) {
    while known != 0 {
        let last = 63 - known.leading_zeros();
        known ^= 1 << last;
        let value = &mut block[usize::from(ZIGZAG[last as usize & 63])];
        let bit = -((bits & 1) as i16);
        let open = -i16::from(*value & one == 0);
        let away_from_0 = (one ^ (*value >> 15)) - (*value >> 15);
        *value = value.wrapping_add(away_from_0 & bit & open);
        bits >>= 1;
    }
}
