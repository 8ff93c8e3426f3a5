//! The position in a sequential scan, and decoding from it over restart markers.

use super::layout::ScanLayout;
use super::parameters::Speculation;
use crate::bitstream::bit_cursor::BitCursor;
use crate::bitstream::unstuffed::UnstuffedData;
use crate::cpu::Bmi2;
use crate::entropy::decode;
use crate::entropy::job::{DecodeJob, McuTables, Stop};
use crate::error::{Damage, Error};
use crate::markers::header::Header;

/// What stays the same while a scan is decoded.
pub(crate) struct ScanContext<'a> {
    pub layout: &'a ScanLayout,
    pub unstuffed: &'a UnstuffedData,
    /// The tables of an MCU; empty for scan-only decoding.
    pub tables: &'a McuTables<'a>,
    pub bmi2: Option<Bmi2>,
    pub speculation: Speculation,
}

/// The state before an MCU.
#[derive(Clone, Copy)]
pub(crate) struct ScanState {
    pub cursor: BitCursor,
    /// Index of the entropy-coded segment.
    pub segment: usize,
    /// Index of the MCU in the scan.
    pub mcu: u64,
    /// DC predictors, in the order of the scan's components.
    pub predictors: [i16; 3],
    /// MCUs before the next restart marker.
    left: u64,
}

/// Damage in a scan, and where it was found.
pub(crate) struct ScanError {
    mcu: u64,
    segment: usize,
    /// Index of the byte in the unstuffed data.
    byte: usize,
    damage: Damage,
}

impl ScanError {
    /// Converts to the error that is reported, with a byte offset in the image.
    pub(crate) fn into_error(self, header: &Header, unstuffed: &UnstuffedData) -> Error {
        let (across, rows) = header.mcus();
        let segment = unstuffed.segments()[self.segment.min(unstuffed.segments().len() - 1)];
        // Stuffed bytes in the segment are not counted, so the offset is approximate.
        let offset = (segment.stored + self.byte.saturating_sub(segment.start)).min(unstuffed.stored_end());
        let row = (self.mcu / u64::from(across)).min(u64::from(rows) - 1) as u32;
        Error::Damaged { row, rows, offset, damage: self.damage }
    }
}

impl ScanState {
    /// Returns the state before MCU `mcu`, whose first bit is bit `bit` of the unstuffed data, in segment `segment`.
    pub(crate) fn at(
        layout: &ScanLayout,
        unstuffed: &UnstuffedData,
        mcu: u64,
        bit: usize,
        segment: usize,
        predictors: [i16; 3],
    ) -> ScanState {
        let cursor = BitCursor::at(unstuffed.bytes(), bit);
        ScanState { cursor, segment, mcu, predictors, left: layout.interval - mcu % layout.interval }
    }

    /// Loads the cursor's first byte again, for a state that was made before its data were.
    pub(crate) fn reload(&mut self, unstuffed: &UnstuffedData) {
        self.cursor = BitCursor::at(unstuffed.bytes(), self.cursor.bit());
    }

    /// Returns the error that the data are damaged at this position.
    pub(crate) fn error(&self, damage: Damage) -> ScanError {
        ScanError { mcu: self.mcu, segment: self.segment, byte: self.cursor.bit() / 8, damage }
    }

    /// Whether no restart marker comes before or between the next `mcus` MCUs.
    pub(crate) fn is_uninterrupted(&self, mcus: u64) -> bool {
        self.left >= mcus
    }

    /// Decodes `mcus` MCUs. DC coefficients remain differences.
    pub(crate) fn decode(
        &mut self,
        context: &ScanContext<'_>,
        mcus: u64,
        coefs: &mut [i16],
        last: &mut [u8],
    ) -> Result<(), ScanError> {
        let mut done = 0;
        while done < mcus {
            let now = self.uninterrupted(context, mcus - done)?;
            let block = done as usize * context.layout.mcu_blocks;
            let blocks = now as usize * context.layout.mcu_blocks;
            let (coefs, last) = (&mut coefs[block * 64..], &mut last[block..]);
            let job = DecodeJob { cursor: &mut self.cursor, coefs, last, blocks, mcu_offsets: &mut [] };
            let result = decode::decode(context.bmi2, context.unstuffed.bytes(), context.tables, job);
            self.finish(context, now, result)?;
            done += now;
        }
        Ok(())
    }

    /// Decodes MCUs from two positions in one loop, each into its own buffers.
    pub(crate) fn decode_two(
        context: &ScanContext<'_>,
        (a, b): (&mut ScanState, &mut ScanState),
        mcus: (u64, u64),
        coefs: (&mut [i16], &mut [i16]),
        last: (&mut [u8], &mut [u8]),
    ) -> Result<(), ScanError> {
        let count = context.layout.mcu_blocks;
        let mut done = (0, 0);
        while done.0 < mcus.0 && done.1 < mcus.1 {
            let now = (a.uninterrupted(context, mcus.0 - done.0)?, b.uninterrupted(context, mcus.1 - done.1)?);
            let (blocks_a, blocks_b) = (now.0 as usize * count, now.1 as usize * count);
            let (from_a, from_b) = (done.0 as usize * count, done.1 as usize * count);
            let coefs = (&mut coefs.0[from_a * 64..], &mut coefs.1[from_b * 64..]);
            let last = (&mut last.0[from_a..], &mut last.1[from_b..]);
            let job = |cursor, coefs, last, blocks| DecodeJob { cursor, coefs, last, blocks, mcu_offsets: &mut [] };
            let jobs = (job(&mut a.cursor, coefs.0, last.0, blocks_a), job(&mut b.cursor, coefs.1, last.1, blocks_b));
            let (end_a, end_b) = decode::decode_two(context.bmi2, context.unstuffed.bytes(), context.tables, jobs);
            a.finish(context, now.0, end_a)?;
            b.finish(context, now.1, end_b)?;
            done = (done.0 + now.0, done.1 + now.1);
        }
        let at = (done.0 as usize * count, done.1 as usize * count);
        a.decode(context, mcus.0 - done.0, &mut coefs.0[at.0 * 64..], &mut last.0[at.0..])?;
        b.decode(context, mcus.1 - done.1, &mut coefs.1[at.1 * 64..], &mut last.1[at.1..])
    }

    /// Consumes a restart marker that is due, and returns how many of the next `mcus` MCUs come before the one after it.
    pub(crate) fn uninterrupted(&mut self, context: &ScanContext<'_>, mcus: u64) -> Result<u64, ScanError> {
        if self.left == 0 {
            self.restart(context)?;
        }
        Ok(mcus.min(self.left))
    }

    /// Advances by `mcus` MCUs without a restart marker between them.
    pub(crate) fn advance(&mut self, mcus: u64) {
        self.mcu += mcus;
        self.left -= mcus;
    }

    /// Advances by `mcus` decoded MCUs, and checks that they did not read beyond their segment.
    pub(crate) fn finish(
        &mut self,
        context: &ScanContext<'_>,
        mcus: u64,
        result: Result<(), Stop>,
    ) -> Result<(), ScanError> {
        if let Err((block, damage)) = result {
            self.mcu += (block / context.layout.mcu_blocks) as u64;
            return Err(self.error(damage));
        }
        self.advance(mcus);
        match self.cursor.bit() <= context.unstuffed.segments()[self.segment].end * 8 {
            true => Ok(()),
            false => Err(self.error(Damage::Ends)),
        }
    }

    /// Whether only padding is left in the segment. Padding consists of ones; some encoders add a whole byte of them.
    pub(crate) fn only_padding_left(&self, context: &ScanContext<'_>) -> bool {
        let rest = self.cursor.bit().div_ceil(8)..context.unstuffed.segments()[self.segment].end;
        context.unstuffed.bytes()[rest].iter().all(|&b| b == 0xff)
    }

    /// Consumes a restart marker, which must be the expected one and follow after nothing but padding.
    pub(crate) fn restart(&mut self, context: &ScanContext<'_>) -> Result<(), ScanError> {
        let segments = context.unstuffed.segments();
        if !self.only_padding_left(context) {
            return Err(self.error(Damage::LeftOver));
        }
        let interval = context.layout.interval;
        let number = ((self.mcu / interval).wrapping_sub(1) & 7) as u8;
        match segments.get(self.segment + 1) {
            Some(next) if next.restart == Some(number) => {
                self.segment += 1;
                self.cursor = BitCursor::at(context.unstuffed.bytes(), next.start * 8);
                self.left = interval;
                Ok(())
            }
            Some(_) => Err(self.error(Damage::Restart)),
            None => Err(self.error(Damage::Ends)),
        }
    }
}

/// Replaces the DC differences of consecutive MCUs, the first of which has index `mcu` in the scan, by DC coefficients.
/// `predictors` are those before the first MCU, and on return those after the last one.
pub(crate) fn undo_dc_prediction(layout: &ScanLayout, mcu: u64, predictors: &mut [i16; 3], coefs: &mut [i16]) {
    let blocks = &layout.blocks[..layout.mcu_blocks];
    let mut left = match mcu % layout.interval {
        0 => 0,
        n => layout.interval - n,
    };
    for mcu in coefs.chunks_exact_mut(64 * layout.mcu_blocks) {
        if left == 0 {
            *predictors = [0; 3];
            left = layout.interval;
        }
        left -= 1;
        for (block, &component) in mcu.chunks_exact_mut(64).zip(blocks) {
            let predictor = &mut predictors[usize::from(component)];
            *predictor = predictor.wrapping_add(block[0]);
            block[0] = *predictor;
        }
    }
}
