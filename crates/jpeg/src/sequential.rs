//! Walking a sequential scan: MCU after MCU over restart markers, from its start or from anywhere the state is known.

use crate::ahead::Pace;
use crate::entropy::{self, Cursor, Job, Lane, Lanes, MAX_LANES};
use crate::error::{Damage, Error, Result};
use crate::header::Header;
use crate::huffman::Memory;
use crate::plain::Plain;
use crate::reader::{Reader, Scan, ScanComponent};
use crate::skip::{SkipLane, SkipLanes};

/// What a scan's MCUs consist of, and where its tables are remembered.
pub(crate) struct Shape {
    /// MCUs across and down.
    pub mcus: (u32, u32),
    /// For each block of an MCU: its component's place in the scan.
    pub blocks: [u8; MAX_LANES],
    /// Blocks in an MCU.
    pub count: usize,
    /// MCUs between restarts; `u64::MAX` without.
    pub interval: u64,
    /// Whether decoding from a wrong block of an MCU goes wrong, so that it is noticed.
    pub phased: bool,
    /// DC and AC table of each block of an MCU.
    tables: [(usize, usize); MAX_LANES],
    /// The same for passing over.
    skips: [(usize, usize); MAX_LANES],
}

impl Shape {
    /// The shape of an image's first scan; `None` if there are more.
    pub(crate) fn new(reader: &Reader<'_>, scan: &Scan) -> Result<Option<Shape>> {
        let components = reader.header.components();
        if !reader.header.one_scan {
            return Ok(None);
        }
        let mut shape = Shape {
            mcus: reader.header.mcus(),
            blocks: [0; MAX_LANES],
            count: 0,
            interval: match scan.restart_interval {
                0 => u64::MAX,
                n => n.into(),
            },
            phased: false,
            tables: [(0, 0); MAX_LANES],
            skips: [(0, 0); MAX_LANES],
        };
        let specs = |part: &ScanComponent| -> Result<_> {
            Ok((reader.spec(scan, true, part.tables.0)?, reader.spec(scan, false, part.tables.1)?))
        };
        let first = specs(&scan.components()[0])?;
        for (i, part) in scan.components().iter().enumerate() {
            shape.phased |= specs(part)? != first;
            for _ in 0..components[i].h * components[i].v {
                shape.blocks[shape.count] = i as u8;
                shape.count += 1;
            }
        }
        shape.phased |= shape.count == 1;
        Ok(Some(shape))
    }

    /// Gets the tables ready for decoding that scan.
    pub(crate) fn prepare(&mut self, reader: &Reader<'_>, scan: &Scan, memory: &mut Memory) -> Result<()> {
        for (tables, &component) in self.tables[..self.count].iter_mut().zip(&self.blocks) {
            let (dc, ac) = scan.components()[usize::from(component)].tables;
            let dc = memory.dc.prepare(&reader.spec(scan, true, dc)?);
            *tables = (dc, memory.ac.prepare(&reader.spec(scan, false, ac)?));
        }
        Ok(())
    }

    /// Gets the tables ready for passing over blocks of that scan.
    pub(crate) fn prepare_skips(&mut self, reader: &Reader<'_>, scan: &Scan, memory: &mut Memory) -> Result<()> {
        for (tables, &component) in self.skips[..self.count].iter_mut().zip(&self.blocks) {
            let (dc, ac) = scan.components()[usize::from(component)].tables;
            let dc = memory.dc_skips.prepare(&reader.spec(scan, true, dc)?);
            *tables = (dc, memory.ac_skips.prepare(&reader.spec(scan, false, ac)?));
        }
        Ok(())
    }

    /// MCUs in a row.
    pub(crate) fn across(&self) -> usize {
        self.mcus.0 as usize
    }

    /// Blocks in a row of MCUs.
    pub(crate) fn row_blocks(&self) -> usize {
        self.mcus.0 as usize * self.count
    }

    /// Blocks in all.
    pub(crate) fn all_blocks(&self) -> u64 {
        self.row_blocks() as u64 * u64::from(self.mcus.1)
    }

    /// Pieces between restart markers.
    pub(crate) fn pieces(&self) -> u64 {
        (u64::from(self.mcus.0) * u64::from(self.mcus.1)).div_ceil(self.interval)
    }

    /// Coefficients to hold so many MCUs, and what the entropy decoder needs beside.
    pub(crate) fn coefs(&self, mcus: usize) -> usize {
        mcus * self.count * 64 + 64
    }

    /// Calls `f` with the tables of the MCU's blocks.
    pub(crate) fn with_tables<R>(&self, memory: &Memory, f: impl FnOnce(&Lanes<'_>) -> R) -> R {
        let lanes = self.tables.map(|(dc, ac)| Lane { dc: memory.dc.get(dc), ac: memory.ac.get(ac) });
        f(&lanes[..self.count])
    }

    /// Calls `f` with the tables for passing over the MCU's blocks.
    pub(crate) fn with_skips<R>(&self, memory: &Memory, f: impl FnOnce(&SkipLanes<'_>) -> R) -> R {
        let lanes = self.skips.map(|(dc, ac)| SkipLane { dc: memory.dc_skips.get(dc), ac: memory.ac_skips.get(ac) });
        f(&lanes[..self.count])
    }
}

/// What does not change while a scan is walked.
pub(crate) struct Course<'a> {
    pub shape: &'a Shape,
    pub plain: &'a Plain,
    /// The tables for decoding; none where blocks are only passed over.
    pub lanes: &'a Lanes<'a>,
    /// Whether the processor has BMI2.
    pub fast: bool,
    pub pace: Pace,
}

/// State before an MCU.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    pub cursor: Cursor,
    /// Index of the piece between restart markers.
    pub piece: usize,
    /// The MCU's number in the scan.
    pub mcu: u64,
    /// DC predictors, in the order of the scan.
    pub predictors: [i16; 3],
    /// MCUs before the next restart.
    left: u64,
}

/// Where and how a walk ended badly.
pub(crate) struct Fall {
    mcu: u64,
    piece: usize,
    byte: usize,
    damage: Damage,
}

impl Fall {
    /// The error to report.
    pub(crate) fn error(&self, header: &Header, plain: &Plain) -> Error {
        let (across, rows) = header.mcus();
        let piece = plain.pieces()[self.piece.min(plain.pieces().len() - 1)];
        // Stuffed bytes before it are not counted, hence "near".
        let offset = (piece.stored + self.byte.saturating_sub(piece.start)).min(plain.stored_end());
        let row = (self.mcu / u64::from(across)).min(u64::from(rows) - 1) as u32;
        Error::Damaged { row, rows, offset, damage: self.damage }
    }
}

impl Walk {
    /// The state before MCU `mcu`, whose first bit is `bit` of the unstuffed data, in piece `piece`.
    pub(crate) fn at(shape: &Shape, plain: &Plain, mcu: u64, bit: usize, piece: usize, predictors: [i16; 3]) -> Walk {
        let cursor = Cursor::at(plain.bytes(), bit);
        Walk { cursor, piece, mcu, predictors, left: shape.interval - mcu % shape.interval }
    }

    /// Takes up the first byte, where the data came after the walk was made.
    pub(crate) fn load(&mut self, plain: &Plain) {
        self.cursor = Cursor::at(plain.bytes(), self.cursor.bit());
    }

    /// The error that the data are damaged here.
    pub(crate) fn fall(&self, damage: Damage) -> Fall {
        Fall { mcu: self.mcu, piece: self.piece, byte: self.cursor.bit() / 8, damage }
    }

    /// Whether the next `mcus` MCUs come without a restart marker before or between them.
    pub(crate) fn is_unbroken(&self, mcus: u64) -> bool {
        self.left >= mcus
    }

    /// Decodes `mcus` MCUs, with DC still as differences.
    pub(crate) fn step(
        &mut self,
        course: &Course<'_>,
        mcus: u64,
        coefs: &mut [i16],
        last: &mut [u8],
    ) -> std::result::Result<(), Fall> {
        let mut done = 0;
        while done < mcus {
            let now = self.unbroken(course, mcus - done)?;
            let block = done as usize * course.shape.count;
            let blocks = now as usize * course.shape.count;
            let (coefs, last) = (&mut coefs[block * 64..], &mut last[block..]);
            let job = Job { cursor: &mut self.cursor, coefs, last, blocks, marks: &mut [] };
            let result = entropy::decode(course.fast, course.plain.bytes(), course.lanes, job);
            self.settle(course, now, result)?;
            done += now;
        }
        Ok(())
    }

    /// Decodes MCUs of two walks at once, each into its own buffers.
    pub(crate) fn step_two(
        course: &Course<'_>,
        (a, b): (&mut Walk, &mut Walk),
        mcus: (u64, u64),
        coefs: (&mut [i16], &mut [i16]),
        last: (&mut [u8], &mut [u8]),
    ) -> std::result::Result<(), Fall> {
        let count = course.shape.count;
        let mut done = (0, 0);
        while done.0 < mcus.0 && done.1 < mcus.1 {
            let now = (a.unbroken(course, mcus.0 - done.0)?, b.unbroken(course, mcus.1 - done.1)?);
            let (blocks_a, blocks_b) = (now.0 as usize * count, now.1 as usize * count);
            let (from_a, from_b) = (done.0 as usize * count, done.1 as usize * count);
            let coefs = (&mut coefs.0[from_a * 64..], &mut coefs.1[from_b * 64..]);
            let last = (&mut last.0[from_a..], &mut last.1[from_b..]);
            let job_a = Job { cursor: &mut a.cursor, coefs: coefs.0, last: last.0, blocks: blocks_a, marks: &mut [] };
            let job_b = Job { cursor: &mut b.cursor, coefs: coefs.1, last: last.1, blocks: blocks_b, marks: &mut [] };
            let (end_a, end_b) = entropy::decode_two(course.fast, course.plain.bytes(), course.lanes, (job_a, job_b));
            a.settle(course, now.0, end_a)?;
            b.settle(course, now.1, end_b)?;
            done = (done.0 + now.0, done.1 + now.1);
        }
        let at = (done.0 as usize * count, done.1 as usize * count);
        a.step(course, mcus.0 - done.0, &mut coefs.0[at.0 * 64..], &mut last.0[at.0..])?;
        b.step(course, mcus.1 - done.1, &mut coefs.1[at.1 * 64..], &mut last.1[at.1..])
    }

    /// How many of the next `mcus` MCUs come without a restart marker between them, after any that is due now.
    pub(crate) fn unbroken(&mut self, course: &Course<'_>, mcus: u64) -> std::result::Result<u64, Fall> {
        if self.left == 0 {
            self.restart(course)?;
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
        course: &Course<'_>,
        mcus: u64,
        result: std::result::Result<(), entropy::Stop>,
    ) -> std::result::Result<(), Fall> {
        if let Err((block, damage)) = result {
            self.mcu += (block / course.shape.count) as u64;
            return Err(self.fall(damage));
        }
        self.advance(mcus);
        match self.cursor.bit() <= course.plain.pieces()[self.piece].end * 8 {
            true => Ok(()),
            false => Err(self.fall(Damage::Ends)),
        }
    }

    /// Whether nothing but padding is left before the next restart marker, or the end. Padding is ones; some writers add a
    /// whole byte of them.
    pub(crate) fn is_at_end(&self, course: &Course<'_>) -> bool {
        let rest = self.cursor.bit().div_ceil(8)..course.plain.pieces()[self.piece].end;
        course.plain.bytes()[rest].iter().all(|&b| b == 0xff)
    }

    /// Passes over a restart marker.
    pub(crate) fn restart(&mut self, course: &Course<'_>) -> std::result::Result<(), Fall> {
        let pieces = course.plain.pieces();
        if !self.is_at_end(course) {
            return Err(self.fall(Damage::LeftOver));
        }
        let interval = course.shape.interval;
        let number = ((self.mcu / interval).wrapping_sub(1) & 7) as u8;
        match pieces.get(self.piece + 1) {
            Some(next) if next.restart == Some(number) => {
                self.piece += 1;
                self.cursor = Cursor::at(course.plain.bytes(), next.start * 8);
                self.left = interval;
                Ok(())
            }
            Some(_) => Err(self.fall(Damage::Restart)),
            None => Err(self.fall(Damage::Ends)),
        }
    }

    /// Whether the walk arrived where `next` begins, with the same predictors.
    pub(crate) fn meets(mut self, course: &Course<'_>, next: &Walk) -> bool {
        if self.left == 0 && self.restart(course).is_ok() {
            self.predictors = [0; 3];
        }
        let components = usize::from(course.shape.blocks[course.shape.count - 1]) + 1;
        self.piece == next.piece
            && self.cursor.bit() == next.cursor.bit()
            && self.predictors[..components] == next.predictors[..components]
    }
}

/// Turns the DC differences of the MCUs from number `mcu` on into values, from `predictors`, which end as those after the
/// last MCU.
pub(crate) fn predict(shape: &Shape, mcu: u64, predictors: &mut [i16; 3], coefs: &mut [i16]) {
    let blocks = &shape.blocks[..shape.count];
    let mut left = match mcu % shape.interval {
        0 => 0,
        n => shape.interval - n,
    };
    for mcu in coefs.chunks_exact_mut(64 * shape.count) {
        if left == 0 {
            *predictors = [0; 3];
            left = shape.interval;
        }
        left -= 1;
        for (block, &component) in mcu.chunks_exact_mut(64).zip(blocks) {
            let predictor = &mut predictors[usize::from(component)];
            *predictor = predictor.wrapping_add(block[0]);
            block[0] = *predictor;
        }
    }
}
