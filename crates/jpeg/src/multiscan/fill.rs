//! What libjpeg-turbo makes of damaged entropy-coded data, bit for bit (`jdhuff.c`, `jdphuff.c`, `jdmarker.c`): each case in
//! which it warns and continues.
//!
//! A segment that ends early is followed by zeros up to the end of an MCU; further MCUs stay as they are up to a restart marker.

use super::band::Band;
use super::coefficient_row::{BlockGrid, CoefficientRow};
use super::scan::{Content, Scan};
use super::tables::Tables;
use crate::bitstream::bit_reader::BitReader;
use crate::huffman::code_table::CodeTable;
use crate::huffman::extend;
use crate::markers::parser::ScanHeader;
use crate::markers::segment::next_marker;
use crate::markers::standard::ZIGZAG;

impl Scan {
    /// Decodes `count` MCUs of row `row`, from its start; `parts` are the grids of the scan's components.
    pub(super) fn fill_mcus(
        &mut self,
        (jpeg, row): (&[u8], u32),
        tables: &Tables,
        coefs: &mut CoefficientRow,
        count: usize,
        parts: &[BlockGrid],
    ) {
        let mut fill = self.fill.unwrap_or_default();
        let mut bits = BitReader::resume(jpeg, self.at);
        for mcu in 0..count {
            if !fill.ended {
                fill.last_row = row;
            }
            if self.until_restart == 0 {
                let (next, found) = next_segment(jpeg, bits.offset(), self.restarts as u8 & 7);
                bits.jump(next);
                fill.ended &= !found;
                fill.damaged |= !found;
                self.begin_segment(next);
            }
            if !fill.ended {
                self.fill_mcu(&mut bits, tables, coefs, mcu, parts);
                fill.ended = bits.is_overrun();
            }
            if self.header.restart_interval > 0 {
                self.until_restart -= 1;
            }
        }
        fill.damaged |= fill.ended || bits.met_invalid_code();
        self.at = bits.position();
        self.fill = Some(fill);
    }

    fn fill_mcu(
        &mut self,
        bits: &mut BitReader<'_>,
        tables: &Tables,
        coefs: &mut CoefficientRow,
        mcu: usize,
        parts: &[BlockGrid],
    ) {
        let (blocks, set) = coefs.parts();
        for (i, grid) in parts.iter().enumerate() {
            let (dc, ac) = (tables.codes(self.tables[i].0), tables.codes(self.tables[i].1));
            for b in 0..grid.h * grid.v {
                let index = grid.first + b / grid.h * grid.padded + mcu * grid.h + b % grid.h;
                let (block, set) = (&mut blocks[index], &mut set[index]);
                match self.content {
                    Content::All => {
                        self.dc(bits, dc, i, block);
                        sequential(bits, ac, block, set);
                    }
                    Content::DcFirst => self.dc(bits, dc, i, block),
                    Content::DcRefining => block[0] |= (bits.take(1) << self.band.low) as i16,
                    Content::AcFirst => first(&mut self.band, bits, ac, block, set),
                    Content::AcRefining => refine(&mut self.band, bits, ac, block, set),
                }
            }
        }
    }

    fn dc(&mut self, bits: &mut BitReader<'_>, codes: &CodeTable, part: usize, block: &mut [i16; 64]) {
        let size = u32::from(bits.symbol_or_0(codes));
        let difference = extend(bits.take(size), size) as i16;
        self.predictors[part] = self.predictors[part].wrapping_add(difference);
        block[0] = self.predictors[part].wrapping_shl(self.band.low);
    }
}

/// Returns where the segment after the restart marker of number `expected` (0 to 7) begins, looking from byte `from` on: after that
/// marker, or after one that is likely to be in its place. Otherwise returns the offset of the next marker, which stays, and `false`
/// (`jpeg_resync_to_restart`).
fn next_segment(jpeg: &[u8], mut from: usize, expected: u8) -> (usize, bool) {
    loop {
        let Some((offset, marker)) = next_marker(jpeg, from) else { return (jpeg.len(), false) };
        let ahead = marker.wrapping_sub(0xd0 + expected) & 7;
        match marker {
            // No marker of an image, or one of the two restart markers before.
            0..=0xbf => from = offset + 2,
            0xd0..=0xd7 if ahead > 5 => from = offset + 2,
            // The expected marker, or one too far away to be in its place.
            0xd0..=0xd7 if !matches!(ahead, 1 | 2) => return (offset + 2, true),
            _ => return (offset, false),
        }
    }
}

/// Returns the byte offset from which libjpeg looks for the marker after a scan of `mcus` MCUs.
pub(super) fn end_of_scan(jpeg: &[u8], scan: &ScanHeader, mcus: u64) -> usize {
    let mut at = scan.data;
    let restarts = mcus.saturating_sub(1).checked_div(scan.restart_interval.into()).unwrap_or(0);
    for number in 0..restarts {
        let (next, found) = next_segment(jpeg, at, (number & 7) as u8);
        // A marker of another kind stays to the end of the scan.
        if !found && !matches!(jpeg.get(next + 1), Some(0xd0..=0xd7)) {
            return next;
        }
        at = next;
    }
    at
}

/// Sets a coefficient. Those beyond the last one are the last one.
fn put(block: &mut [i16; 64], set: &mut u64, k: u32, value: i16) {
    let k = k.min(63);
    block[usize::from(ZIGZAG[k as usize])] = value;
    *set = *set & !(1 << k) | u64::from(value != 0) << k;
}

/// Decodes the AC coefficients of a sequential scan.
fn sequential(bits: &mut BitReader<'_>, codes: &CodeTable, block: &mut [i16; 64], set: &mut u64) {
    let mut k = 1;
    while k < 64 {
        let symbol = bits.symbol_or_0(codes);
        let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 && zeros != 15 {
            break;
        }
        k += zeros;
        if size > 0 {
            put(block, set, k, extend(bits.take(size), size) as i16);
        }
        k += 1;
    }
}

/// Decodes the first scan of a band.
fn first(band: &mut Band, bits: &mut BitReader<'_>, codes: &CodeTable, block: &mut [i16; 64], set: &mut u64) {
    if band.run > 0 {
        band.run -= 1;
        return;
    }
    let mut k = band.first;
    while k <= band.last {
        let symbol = bits.symbol_or_0(codes);
        let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 && zeros != 15 {
            band.run = (1 << zeros) + bits.take(zeros) as u32 - 1;
            break;
        }
        k += zeros;
        if size > 0 {
            put(block, set, k, (extend(bits.take(size), size) << band.low) as i16);
        }
        k += 1;
    }
}

/// Decodes a refining scan of a band.
fn refine(band: &mut Band, bits: &mut BitReader<'_>, codes: &CodeTable, block: &mut [i16; 64], set: &mut u64) {
    let one = 1i16 << band.low;
    let mut k = band.first;
    while band.run == 0 && k <= band.last {
        let symbol = bits.symbol_or_0(codes);
        let (mut zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 && zeros != 15 {
            band.run = (1 << zeros) + bits.take(zeros) as u32;
            break;
        }
        // Sizes other than 1 are damage, and mean 1.
        let new = (size > 0).then(|| if bits.take(1) == 1 { one } else { -one });
        while k <= band.last {
            let value = &mut block[usize::from(ZIGZAG[k as usize])];
            match *value {
                0 if zeros == 0 => break,
                0 => zeros -= 1,
                _ => correct(value, bits, one),
            }
            k += 1;
        }
        if let Some(new) = new {
            put(block, set, k, new);
        }
        k += 1;
    }
    if band.run > 0 {
        for k in k..=band.last {
            let value = &mut block[usize::from(ZIGZAG[k as usize])];
            if *value != 0 {
                correct(value, bits, one);
            }
        }
        band.run -= 1;
    }
}

/// Adds its next bit to a coefficient that is not 0.
fn correct(value: &mut i16, bits: &mut BitReader<'_>, one: i16) {
    if bits.take(1) == 1 && *value & one == 0 {
        *value = value.wrapping_add(if *value >= 0 { one } else { -one });
    }
}
