//! The state of decoding one of several scans, and the blocks of sequential ones.

use crate::bitstream::bit_reader::BitReader;
use crate::error::{Damage, Result};
use crate::huffman::code_table::CodeTable;
use crate::huffman::extend;
use crate::markers::standard::ZIGZAG;

/// The state of decoding one scan.
pub(super) struct ScanDecoder {
    /// DC tables of the scan's components.
    pub dc: [Option<CodeTable>; 3],
    /// The AC table of a progressive AC scan, which has one component.
    pub ac: Option<CodeTable>,
    /// AC tables of the scan's components.
    pub acs: [Option<CodeTable>; 3],
    /// DC predictors of the scan's components.
    pub predictors: [i16; 3],
    /// End-of-band run (EOBRUN): the number of following blocks without new coefficients.
    pub run: u32,
    /// First and last zigzag index.
    pub band: (usize, usize),
    /// Successive approximation: low bits not known before and after the scan.
    pub bits: (u8, u8),
}

impl ScanDecoder {
    /// Decodes a block of a sequential scan. `i` is the index of the component in the scan.
    pub(super) fn sequential(
        &mut self,
        i: usize,
        bits: &mut BitReader<'_>,
        block: &mut [i16; 64],
    ) -> Result<(), Damage> {
        let (Some(dc), Some(ac)) = (&self.dc[i], &self.acs[i]) else { return Err(Damage::Progression) };
        let size = u32::from(bits.symbol(dc)?);
        let difference = extend(bits.take(size), size) as i16;
        self.predictors[i] = self.predictors[i].wrapping_add(difference);
        block[0] = self.predictors[i];
        let mut k = 1;
        while k < 64 {
            let symbol = bits.symbol(ac)?;
            let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 && run != 15 {
                break;
            }
            k += run;
            let value = extend(bits.take(size), size) as i16;
            if k > 63 {
                return Err(Damage::Block);
            }
            block[usize::from(ZIGZAG[k])] = value;
            k += 1;
        }
        Ok(())
    }
}
