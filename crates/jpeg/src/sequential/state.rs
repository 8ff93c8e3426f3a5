//! The position in a sequential scan, and decoding from it over restart markers.

use super::layout::ScanLayout;
use super::parameters::Speculation;
use crate::bitstream::unstuffed::UnstuffedData;
use crate::cpu::Bmi2;
use crate::error::{Damage, Error};
use crate::markers::header::Header;

/// What stays the same while a scan is decoded.
pub(crate) struct ScanContext<'a> {
    pub layout: &'a ScanLayout,
    pub unstuffed: &'a UnstuffedData,
    pub bmi2: Option<Bmi2>,
    pub speculation: Speculation,
}

/// The state before an MCU.
#[derive(Clone, Copy)]
pub(crate) struct ScanState {
    /// Index of the next bit.
    pub bit: usize,
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
    pub(crate) fn at(layout: &ScanLayout, mcu: u64, bit: usize, segment: usize, predictors: [i16; 3]) -> ScanState {
        ScanState { bit, segment, mcu, predictors, left: layout.interval - mcu % layout.interval }
    }

    /// Returns the error that the data are damaged at this position.
    pub(crate) fn error(&self, damage: Damage) -> ScanError {
        ScanError { mcu: self.mcu, segment: self.segment, byte: self.bit / 8, damage }
    }

    /// Whether no restart marker comes before or between the next `mcus` MCUs.
    pub(crate) fn is_uninterrupted(&self, mcus: u64) -> bool {
        self.left >= mcus
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

    /// Checks that what was decoded up to this position is in the segment.
    pub(crate) fn check_segment(&self, context: &ScanContext<'_>) -> Result<(), ScanError> {
        match self.bit <= context.unstuffed.segments()[self.segment].end * 8 {
            true => Ok(()),
            false => Err(self.error(Damage::Ends)),
        }
    }

    /// Whether only padding is left in the segment. Padding consists of ones; some encoders add a whole byte of them.
    pub(crate) fn only_padding_left(&self, context: &ScanContext<'_>) -> bool {
        let rest = self.bit.div_ceil(8)..context.unstuffed.segments()[self.segment].end;
        context.unstuffed.bytes()[rest].iter().all(|&b| b == 0xff)
    }

    /// Consumes a restart marker, which must be the expected one and follow after nothing but padding. Resets the predictors.
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
                self.bit = next.start * 8;
                self.left = interval;
                self.predictors = [0; 3];
                Ok(())
            }
            Some(_) => Err(self.error(Damage::Restart)),
            None => Err(self.error(Damage::Ends)),
        }
    }
}
