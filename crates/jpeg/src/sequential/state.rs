//! Walking a sequential scan: MCU after MCU over restart markers, from its start or from anywhere the state is known.

use crate::bitstream::unstuffed::UnstuffedData;
use crate::entropy::decode::{self, BitCursor, BlockTables, DecodeJob, MAX_MCU_BLOCKS, McuTables};
use crate::entropy::scanner::{SkipLane, SkipLanes};
use crate::error::{Damage, Error, Result};
use crate::huffman::TableCaches;
use crate::markers::header::Header;
use crate::markers::parser::{Parser, ScanComponent, ScanHeader};
use crate::sequential::speculation::Speculation;

/// What a scan's MCUs consist of, and where its tables are remembered.
pub(crate) struct ScanLayout {
    /// MCUs across and down.
    pub mcus: (u32, u32),
    /// For each block of an MCU: its component's place in the scan.
    pub blocks: [u8; MAX_MCU_BLOCKS],
    /// BlockRow in an MCU.
    pub count: usize,
    /// MCUs between restarts; `u64::MAX` without.
    pub interval: u64,
    /// Whether decoding from a wrong block of an MCU goes wrong, so that it is noticed.
    pub phased: bool,
    /// DC and AC table of each block of an MCU.
    tables: [(usize, usize); MAX_MCU_BLOCKS],
    /// The same for passing over.
    skips: [(usize, usize); MAX_MCU_BLOCKS],
}

impl ScanLayout {
    /// The layout of an image's first scan; `None` if there are more.
    pub(crate) fn new(reader: &Parser<'_>, scan: &ScanHeader) -> Result<Option<ScanLayout>> {
        let components = reader.header.components();
        if !reader.header.one_scan {
            return Ok(None);
        }
        let mut layout = ScanLayout {
            mcus: reader.header.mcus(),
            blocks: [0; MAX_MCU_BLOCKS],
            count: 0,
            interval: match scan.restart_interval {
                0 => u64::MAX,
                n => n.into(),
            },
            phased: false,
            tables: [(0, 0); MAX_MCU_BLOCKS],
            skips: [(0, 0); MAX_MCU_BLOCKS],
        };
        let specs = |part: &ScanComponent| -> Result<_> {
            Ok((reader.spec(scan, true, part.tables.0)?, reader.spec(scan, false, part.tables.1)?))
        };
        let first = specs(&scan.components()[0])?;
        for (i, part) in scan.components().iter().enumerate() {
            layout.phased |= specs(part)? != first;
            for _ in 0..components[i].h * components[i].v {
                layout.blocks[layout.count] = i as u8;
                layout.count += 1;
            }
        }
        layout.phased |= layout.count == 1;
        Ok(Some(layout))
    }

    /// Gets the tables ready for decoding that scan.
    pub(crate) fn prepare(&mut self, reader: &Parser<'_>, scan: &ScanHeader, caches: &mut TableCaches) -> Result<()> {
        for (tables, &component) in self.tables[..self.count].iter_mut().zip(&self.blocks) {
            let (dc, ac) = scan.components()[usize::from(component)].tables;
            let dc = caches.dc.prepare(&reader.spec(scan, true, dc)?);
            *tables = (dc, caches.ac.prepare(&reader.spec(scan, false, ac)?));
        }
        Ok(())
    }

    /// Gets the tables ready for passing over blocks of that scan.
    pub(crate) fn prepare_skips(
        &mut self,
        reader: &Parser<'_>,
        scan: &ScanHeader,
        caches: &mut TableCaches,
    ) -> Result<()> {
        for (tables, &component) in self.skips[..self.count].iter_mut().zip(&self.blocks) {
            let (dc, ac) = scan.components()[usize::from(component)].tables;
            let dc = caches.dc_skips.prepare(&reader.spec(scan, true, dc)?);
            *tables = (dc, caches.ac_skips.prepare(&reader.spec(scan, false, ac)?));
        }
        Ok(())
    }

    /// MCUs in a row.
    pub(crate) fn across(&self) -> usize {
        self.mcus.0 as usize
    }

    /// BlockRow in a row of MCUs.
    pub(crate) fn row_blocks(&self) -> usize {
        self.mcus.0 as usize * self.count
    }

    /// BlockRow in all.
    pub(crate) fn all_blocks(&self) -> u64 {
        self.row_blocks() as u64 * u64::from(self.mcus.1)
    }

    /// Pieces between restart markers.
    pub(crate) fn segments(&self) -> u64 {
        (u64::from(self.mcus.0) * u64::from(self.mcus.1)).div_ceil(self.interval)
    }

    /// Coefficients to hold so many MCUs, and what the entropy decoder needs beside.
    pub(crate) fn coefs(&self, mcus: usize) -> usize {
        mcus * self.count * 64 + 64
    }

    /// Calls `f` with the tables of the MCU's blocks.
    pub(crate) fn with_tables<R>(&self, caches: &TableCaches, f: impl FnOnce(&McuTables<'_>) -> R) -> R {
        let tables = self.tables.map(|(dc, ac)| BlockTables { dc: caches.dc.get(dc), ac: caches.ac.get(ac) });
        f(&tables[..self.count])
    }

    /// Calls `f` with the tables for passing over the MCU's blocks.
    pub(crate) fn with_skips<R>(&self, caches: &TableCaches, f: impl FnOnce(&SkipLanes<'_>) -> R) -> R {
        let tables = self.skips.map(|(dc, ac)| SkipLane { dc: caches.dc_skips.get(dc), ac: caches.ac_skips.get(ac) });
        f(&tables[..self.count])
    }
}

/// What does not change while a scan is walked.
pub(crate) struct ScanContext<'a> {
    pub layout: &'a ScanLayout,
    pub unstuffed: &'a UnstuffedData,
    /// The tables for decoding; none where blocks are only passed over.
    pub tables: &'a McuTables<'a>,
    /// Whether the processor has BMI2.
    pub fast: bool,
    pub speculation: Speculation,
}

/// State before an MCU.
#[derive(Clone, Copy)]
pub(crate) struct ScanState {
    pub cursor: BitCursor,
    /// Index of the segment between restart markers.
    pub segment: usize,
    /// The MCU's number in the scan.
    pub mcu: u64,
    /// DC predictors, in the order of the scan.
    pub predictors: [i16; 3],
    /// MCUs before the next restart.
    left: u64,
}

/// Where and how a state ended badly.
pub(crate) struct ScanError {
    mcu: u64,
    segment: usize,
    byte: usize,
    damage: Damage,
}

impl ScanError {
    /// The error to report.
    pub(crate) fn error(&self, header: &Header, unstuffed: &UnstuffedData) -> Error {
        let (across, rows) = header.mcus();
        let segment = unstuffed.segments()[self.segment.min(unstuffed.segments().len() - 1)];
        // Stuffed bytes before it are not counted, hence "near".
        let offset = (segment.stored + self.byte.saturating_sub(segment.start)).min(unstuffed.stored_end());
        let row = (self.mcu / u64::from(across)).min(u64::from(rows) - 1) as u32;
        Error::Damaged { row, rows, offset, damage: self.damage }
    }
}

impl ScanState {
    /// The state before MCU `mcu`, whose first bit is `bit` of the unstuffed data, in segment `segment`.
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

    /// Takes up the first byte, where the data came after the state was made.
    pub(crate) fn load(&mut self, unstuffed: &UnstuffedData) {
        self.cursor = BitCursor::at(unstuffed.bytes(), self.cursor.bit());
    }

    /// The error that the data are damaged here.
    pub(crate) fn error(&self, damage: Damage) -> ScanError {
        ScanError { mcu: self.mcu, segment: self.segment, byte: self.cursor.bit() / 8, damage }
    }

    /// Whether the next `mcus` MCUs come without a restart marker before or between them.
    pub(crate) fn is_unbroken(&self, mcus: u64) -> bool {
        self.left >= mcus
    }

    /// Decodes `mcus` MCUs, with DC still as differences.
    pub(crate) fn step(
        &mut self,
        context: &ScanContext<'_>,
        mcus: u64,
        coefs: &mut [i16],
        last: &mut [u8],
    ) -> std::result::Result<(), ScanError> {
        let mut done = 0;
        while done < mcus {
            let now = self.unbroken(context, mcus - done)?;
            let block = done as usize * context.layout.count;
            let blocks = now as usize * context.layout.count;
            let (coefs, last) = (&mut coefs[block * 64..], &mut last[block..]);
            let job = DecodeJob { cursor: &mut self.cursor, coefs, last, blocks, marks: &mut [] };
            let result = decode::decode(context.fast, context.unstuffed.bytes(), context.tables, job);
            self.settle(context, now, result)?;
            done += now;
        }
        Ok(())
    }

    /// Decodes MCUs of two walks at once, each into its own buffers.
    pub(crate) fn step_two(
        context: &ScanContext<'_>,
        (a, b): (&mut ScanState, &mut ScanState),
        mcus: (u64, u64),
        coefs: (&mut [i16], &mut [i16]),
        last: (&mut [u8], &mut [u8]),
    ) -> std::result::Result<(), ScanError> {
        let count = context.layout.count;
        let mut done = (0, 0);
        while done.0 < mcus.0 && done.1 < mcus.1 {
            let now = (a.unbroken(context, mcus.0 - done.0)?, b.unbroken(context, mcus.1 - done.1)?);
            let (blocks_a, blocks_b) = (now.0 as usize * count, now.1 as usize * count);
            let (from_a, from_b) = (done.0 as usize * count, done.1 as usize * count);
            let coefs = (&mut coefs.0[from_a * 64..], &mut coefs.1[from_b * 64..]);
            let last = (&mut last.0[from_a..], &mut last.1[from_b..]);
            let job_a =
                DecodeJob { cursor: &mut a.cursor, coefs: coefs.0, last: last.0, blocks: blocks_a, marks: &mut [] };
            let job_b =
                DecodeJob { cursor: &mut b.cursor, coefs: coefs.1, last: last.1, blocks: blocks_b, marks: &mut [] };
            let (end_a, end_b) =
                decode::decode_two(context.fast, context.unstuffed.bytes(), context.tables, (job_a, job_b));
            a.settle(context, now.0, end_a)?;
            b.settle(context, now.1, end_b)?;
            done = (done.0 + now.0, done.1 + now.1);
        }
        let at = (done.0 as usize * count, done.1 as usize * count);
        a.step(context, mcus.0 - done.0, &mut coefs.0[at.0 * 64..], &mut last.0[at.0..])?;
        b.step(context, mcus.1 - done.1, &mut coefs.1[at.1 * 64..], &mut last.1[at.1..])
    }

    /// How many of the next `mcus` MCUs come without a restart marker between them, after any that is due now.
    pub(crate) fn unbroken(&mut self, context: &ScanContext<'_>, mcus: u64) -> std::result::Result<u64, ScanError> {
        if self.left == 0 {
            self.restart(context)?;
        }
        Ok(mcus.min(self.left))
    }

    /// Goes on by so many MCUs, which come without a restart between them.
    pub(crate) fn advance(&mut self, mcus: u64) {
        self.mcu += mcus;
        self.left -= mcus;
    }

    /// Accounts for decoded MCUs and checks that their data were there.
    pub(crate) fn settle(
        &mut self,
        context: &ScanContext<'_>,
        mcus: u64,
        result: std::result::Result<(), decode::Stop>,
    ) -> std::result::Result<(), ScanError> {
        if let Err((block, damage)) = result {
            self.mcu += (block / context.layout.count) as u64;
            return Err(self.error(damage));
        }
        self.advance(mcus);
        match self.cursor.bit() <= context.unstuffed.segments()[self.segment].end * 8 {
            true => Ok(()),
            false => Err(self.error(Damage::Ends)),
        }
    }

    /// Whether nothing but padding is left before the next restart marker, or the end. Padding is ones; some writers add a
    /// whole byte of them.
    pub(crate) fn is_at_end(&self, context: &ScanContext<'_>) -> bool {
        let rest = self.cursor.bit().div_ceil(8)..context.unstuffed.segments()[self.segment].end;
        context.unstuffed.bytes()[rest].iter().all(|&b| b == 0xff)
    }

    /// Passes over a restart marker.
    pub(crate) fn restart(&mut self, context: &ScanContext<'_>) -> std::result::Result<(), ScanError> {
        let segments = context.unstuffed.segments();
        if !self.is_at_end(context) {
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

    /// Whether the state arrived where `next` begins, with the same predictors.
    pub(crate) fn meets(mut self, context: &ScanContext<'_>, next: &ScanState) -> bool {
        if self.left == 0 && self.restart(context).is_ok() {
            self.predictors = [0; 3];
        }
        let components = usize::from(context.layout.blocks[context.layout.count - 1]) + 1;
        self.segment == next.segment
            && self.cursor.bit() == next.cursor.bit()
            && self.predictors[..components] == next.predictors[..components]
    }
}

/// Turns the DC differences of the MCUs from number `mcu` on into values, from `predictors`, which end as those after the
/// last MCU.
pub(crate) fn predict(layout: &ScanLayout, mcu: u64, predictors: &mut [i16; 3], coefs: &mut [i16]) {
    let blocks = &layout.blocks[..layout.count];
    let mut left = match mcu % layout.interval {
        0 => 0,
        n => layout.interval - n,
    };
    for mcu in coefs.chunks_exact_mut(64 * layout.count) {
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
