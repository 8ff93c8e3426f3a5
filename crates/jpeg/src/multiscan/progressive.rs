//! Progressive scans (ITU-T T.81, annex G): their permitted order, and what each adds to a block.

use super::scan_decoder::ScanDecoder;
use crate::bitstream::bit_reader::BitReader;
use crate::error::{Damage, Error, Result};
use crate::huffman::extend;
use crate::markers::header::{Header, Process};
use crate::markers::parser::ScanHeader;
use crate::markers::segment::SOS;
use crate::markers::standard::ZIGZAG;

/// For each coefficient of each component, the number of low bits that are not known yet; `None` before its first scan.
pub(crate) struct Progress {
    known: [[Option<u8>; 64]; 3],
    components: usize,
}

impl Progress {
    pub(crate) fn new(components: usize) -> Progress {
        Progress { known: [[None; 64]; 3], components }
    }

    /// Records a scan.
    ///
    /// # Errors
    /// [`Error::Segment`] if it does not continue the scans before it.
    pub(crate) fn admit(&mut self, header: &Header, scan: &ScanHeader) -> Result<()> {
        for part in scan.components() {
            let known = &mut self.known[part.index];
            let fail = |expected, found: u8| Error::Segment {
                marker: SOS,
                offset: scan.offset,
                expected,
                found: found.into(),
            };
            if header.process == Process::Progressive && scan.band.0 > 0 && known[0].is_none() {
                return Err(fail("a DC scan of the component before its AC scans", scan.band.0));
            }
            let (high, low) = scan.bits;
            for bits in &mut known[usize::from(scan.band.0)..=usize::from(scan.band.1)] {
                let continues = match *bits {
                    None => high == 0,
                    Some(unknown) => high != 0 && high == unknown,
                };
                if !continues {
                    return Err(fail("a scan that continues the bits known so far", high));
                }
                *bits = Some(low);
            }
        }
        Ok(())
    }

    /// Whether all bits of all coefficients are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.known[..self.components].iter().flatten().all(|b| *b == Some(0))
    }
}

/// Decodes what a scan adds to a block. `i` is the index of the component in the scan.
pub(super) fn decode_block(
    state: &mut ScanDecoder,
    i: usize,
    bits: &mut BitReader<'_>,
    block: &mut [i16; 64],
) -> Result<(), Damage> {
    match (state.band.0, state.bits.0) {
        (0, 0) => dc_first(state, i, bits, block),
        (0, _) => {
            block[0] |= (bits.take(1) << state.bits.1) as i16;
            Ok(())
        }
        (_, 0) => ac_first(state, bits, block),
        _ => ac_refine(state, bits, block),
    }
}

fn dc_first(state: &mut ScanDecoder, i: usize, bits: &mut BitReader<'_>, block: &mut [i16; 64]) -> Result<(), Damage> {
    let codes = state.dc[i].as_ref().ok_or(Damage::Progression)?;
    let size = u32::from(bits.symbol(codes)?);
    let difference = extend(bits.take(size), size) as i16;
    state.predictors[i] = state.predictors[i].wrapping_add(difference);
    block[0] = state.predictors[i].wrapping_shl(state.bits.1.into());
    Ok(())
}

/// Reads the end-of-band run of a symbol (EOBn): the number of blocks, from this one on, without new coefficients.
fn end_of_band(bits: &mut BitReader<'_>, run: u32) -> u32 {
    (1 << run) + bits.take(run) as u32
}

fn ac_first(state: &mut ScanDecoder, bits: &mut BitReader<'_>, block: &mut [i16; 64]) -> Result<(), Damage> {
    if state.run > 0 {
        state.run -= 1;
        return Ok(());
    }
    let codes = state.ac.as_ref().ok_or(Damage::Progression)?;
    let mut k = state.band.0;
    while k <= state.band.1 {
        let symbol = bits.symbol(codes)?;
        let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 && run != 15 {
            state.run = end_of_band(bits, run) - 1;
            break;
        }
        k += run as usize;
        if size == 0 {
            k += 1;
            continue;
        }
        let value = extend(bits.take(size), size);
        if k > 63 {
            return Err(Damage::Block);
        }
        block[usize::from(ZIGZAG[k])] = (value << state.bits.1) as i16;
        k += 1;
    }
    Ok(())
}

/// Refines a coefficient that is not 0 by its next bit.
fn refine(value: &mut i16, bits: &mut BitReader<'_>, one: i16) {
    if bits.take(1) == 1 && *value & one == 0 {
        *value = if *value >= 0 { value.wrapping_add(one) } else { value.wrapping_sub(one) };
    }
}

fn ac_refine(state: &mut ScanDecoder, bits: &mut BitReader<'_>, block: &mut [i16; 64]) -> Result<(), Damage> {
    let codes = state.ac.as_ref().ok_or(Damage::Progression)?;
    let one = 1i16 << state.bits.1;
    let (mut k, last) = state.band;
    while k <= last && state.run == 0 {
        let symbol = bits.symbol(codes)?;
        let (mut run, size) = (u32::from(symbol >> 4), symbol & 15);
        let new = match size {
            0 if run != 15 => {
                state.run = end_of_band(bits, run);
                break;
            }
            0 => 0,
            1 if bits.take(1) == 1 => one,
            1 => -one,
            _ => return Err(Damage::Code),
        };
        // Skip `run` coefficients that are 0, and refine those that are not.
        while k <= last {
            let value = &mut block[usize::from(ZIGZAG[k])];
            if *value != 0 {
                refine(value, bits, one);
            } else if run == 0 {
                *value = new;
                break;
            } else {
                run -= 1;
            }
            k += 1;
        }
        k += 1;
    }
    if state.run > 0 {
        for &natural in &ZIGZAG[k.min(64)..=last] {
            let value = &mut block[usize::from(natural)];
            if *value != 0 {
                refine(value, bits, one);
            }
        }
        state.run -= 1;
    }
    Ok(())
}
