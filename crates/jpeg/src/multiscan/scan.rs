//! One of several scans: its position, and what it adds to a row of MCUs.

use super::band::Band;
use super::coefficient_row::{BlockGrid, CoefficientRow};
use super::tables::Tables;
use crate::bitstream::bit_reader::{BitPosition, BitReader};
use crate::error::{Damage, Error, Result};
use crate::huffman::extend;
use crate::markers::header::{Header, MAX_COMPONENTS, Process};
use crate::markers::parser::ScanHeader;

/// What a scan contains.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// All coefficients of a sequential image.
    All,
    /// DC without its low bits.
    DcFirst,
    /// The next bit of DC.
    DcRefining,
    /// A band of AC coefficients without their low bits.
    AcFirst,
    /// The next bit of a band.
    AcRefining,
}

/// A scan, and the state of decoding it.
pub(super) struct Scan {
    pub(super) header: ScanHeader,
    pub(super) content: Content,
    /// Indices in [`Tables`] of the DC and AC tables of its components.
    pub(super) tables: [(usize, usize); MAX_COMPONENTS],
    pub(super) at: BitPosition,
    pub(super) predictors: [i16; MAX_COMPONENTS],
    pub(super) band: Band,
    /// MCUs until the next restart marker, of which `restarts` came before.
    pub(super) until_restart: u32,
    pub(super) restarts: u32,
    /// Byte offset of the segment that is being decoded.
    pub(super) segment: usize,
    /// How far its data go; `None` if damage is an error.
    pub(super) fill: Option<Fill>,
}

/// How far the data of a scan go.
#[derive(Clone, Copy, Default)]
pub(super) struct Fill {
    /// Whether the segment has ended before its last MCU.
    pub ended: bool,
    /// The last row of MCUs that has data.
    pub last_row: u32,
    /// Whether damage was met.
    pub damaged: bool,
}

impl Scan {
    /// Returns a scan at its beginning. `table(dc, number)` returns the index of a table that it uses.
    pub(super) fn new(
        header: &Header,
        scan: &ScanHeader,
        fill: bool,
        mut table: impl FnMut(Class, usize) -> Result<usize>,
    ) -> Result<Scan> {
        let (dc, first) = (scan.band.0 == 0, scan.bits.0 == 0);
        let content = match (header.process, dc, first) {
            (Process::Sequential, _, _) => Content::All,
            (_, true, true) => Content::DcFirst,
            (_, true, false) => Content::DcRefining,
            (_, false, true) => Content::AcFirst,
            (_, false, false) => Content::AcRefining,
        };
        let mut tables = [(0, 0); MAX_COMPONENTS];
        for (to, part) in tables.iter_mut().zip(scan.components()) {
            if matches!(content, Content::All | Content::DcFirst) {
                to.0 = table(Class::Dc, part.tables.0)?;
            }
            match content {
                Content::All | Content::AcFirst | Content::AcRefining => to.1 = table(Class::Ac, part.tables.1)?,
                Content::DcFirst | Content::DcRefining => {}
            }
        }
        let low = scan.bits.1.into();
        let band = match content {
            Content::AcFirst | Content::AcRefining => {
                Band { first: scan.band.0.into(), last: scan.band.1.into(), low, run: 0 }
            }
            _ => Band { low, ..Band::ALL },
        };
        Ok(Scan {
            header: *scan,
            content,
            tables,
            at: BitPosition::at(scan.data),
            predictors: [0; MAX_COMPONENTS],
            band,
            until_restart: interval(scan),
            restarts: 0,
            segment: scan.data,
            fill: fill.then(Fill::default),
        })
    }

    /// Whether the scan has AC coefficients only, of component `index`.
    pub(super) fn is_ac_of(&self, index: usize) -> bool {
        matches!(self.content, Content::AcFirst | Content::AcRefining) && self.header.components()[0].index == index
    }

    /// Whether the scan has only components from index `count` on.
    pub(super) fn is_beyond(&self, count: usize) -> bool {
        self.header.components().iter().all(|c| c.index >= count)
    }

    /// Decodes what the scan adds to row `row` of MCUs; rows are decoded in order.
    pub(super) fn decode_row(
        &mut self,
        jpeg: &[u8],
        header: &Header,
        tables: &Tables,
        row: usize,
        coefs: &mut CoefficientRow,
    ) -> Result<()> {
        let grids = coefs.grids;
        match *self.header.components() {
            // In a scan of one component, each block is an MCU.
            [one] => {
                let grid = grids[one.index];
                for y in row * grid.v..((row + 1) * grid.v).min(grid.blocks.1) {
                    let first = grid.index(0, y);
                    let parts = [BlockGrid { first, h: 1, v: 1, ..grid }];
                    let result = self.decode_mcus((jpeg, row), tables, coefs, grid.blocks.0, &parts);
                    result.map_err(|damage| self.error(y, grid.blocks.1, damage))?;
                }
                Ok(())
            }
            _ => {
                let (across, down) = header.mcus();
                let mut parts = [BlockGrid::default(); MAX_COMPONENTS];
                for (part, c) in parts.iter_mut().zip(self.header.components()) {
                    *part = grids[c.index];
                }
                let parts = &parts[..self.header.components().len()];
                let result = self.decode_mcus((jpeg, row), tables, coefs, across as usize, parts);
                result.map_err(|damage| self.error(row, down as usize, damage))
            }
        }
    }

    fn error(&self, row: usize, rows: usize, damage: Damage) -> Error {
        Error::Damaged { row: row as u32, rows: rows as u32, offset: self.segment, damage }
    }

    /// Decodes `count` MCUs of row `row` of the image, from its start; `parts` are the grids of the scan's components.
    fn decode_mcus(
        &mut self,
        (jpeg, row): (&[u8], usize),
        tables: &Tables,
        coefs: &mut CoefficientRow,
        count: usize,
        parts: &[BlockGrid],
    ) -> std::result::Result<(), Damage> {
        if self.fill.is_some() {
            self.fill_mcus((jpeg, row as u32), tables, coefs, count, parts);
            return Ok(());
        }
        let mut bits = BitReader::resume(jpeg, self.at);
        let mut x = 0;
        while x < count {
            if self.until_restart == 0 {
                self.restart(&mut bits)?;
            }
            let n = (count - x).min(self.until_restart as usize);
            let result = self.decode_run(&mut bits, tables, coefs, x..x + n, parts);
            if bits.is_overrun() {
                return Err(Damage::Ends);
            }
            result?;
            if self.header.restart_interval > 0 {
                self.until_restart -= n as u32;
            }
            x += n;
        }
        self.at = bits.position();
        Ok(())
    }

    fn restart(&mut self, bits: &mut BitReader<'_>) -> std::result::Result<(), Damage> {
        let (number, offset) = bits.next_segment()?;
        if u32::from(number) != self.restarts & 7 {
            return Err(Damage::Restart);
        }
        self.begin_segment(offset);
        Ok(())
    }

    /// Begins a segment, which starts at byte `offset`.
    pub(super) fn begin_segment(&mut self, offset: usize) {
        (self.predictors, self.band.run) = ([0; MAX_COMPONENTS], 0);
        self.restarts = self.restarts.wrapping_add(1);
        self.until_restart = interval(&self.header);
        self.segment = offset;
    }

    /// Decodes the MCUs `mcus` of a row, between two restart markers.
    fn decode_run(
        &mut self,
        bits: &mut BitReader<'_>,
        tables: &Tables,
        coefs: &mut CoefficientRow,
        mcus: std::ops::Range<usize>,
        parts: &[BlockGrid],
    ) -> std::result::Result<(), Damage> {
        let (blocks, set) = coefs.parts();
        if matches!(self.content, Content::AcFirst | Content::AcRefining) {
            let range = parts[0].first + mcus.start..parts[0].first + mcus.end;
            let (blocks, set) = (&mut blocks[range.clone()], &mut set[range]);
            let mut band = self.band;
            let result = match self.content {
                Content::AcFirst => band.first_scan(tables.ac(self.tables[0].1), bits, blocks, set),
                _ => band.refining_scan(tables.ac(self.tables[0].1), bits, blocks, set),
            };
            self.band = band;
            return result;
        }
        let low = self.band.low;
        for mcu in mcus {
            for (i, grid) in parts.iter().enumerate() {
                for b in 0..grid.h * grid.v {
                    let index = grid.first + b / grid.h * grid.padded + mcu * grid.h + b % grid.h;
                    if self.content == Content::DcRefining {
                        blocks[index][0] |= (bits.take(1) << low) as i16;
                        continue;
                    }
                    let size = u32::from(bits.symbol(tables.codes(self.tables[i].0))?);
                    let difference = extend(bits.take(size), size) as i16;
                    self.predictors[i] = self.predictors[i].wrapping_add(difference);
                    blocks[index][0] = self.predictors[i].wrapping_shl(low);
                    if self.content == Content::All {
                        let table = tables.ac(self.tables[i].1);
                        Band::ALL.new_coefficients(table, bits, &mut blocks[index], &mut set[index])?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The use of a table.
#[derive(Clone, Copy)]
pub(super) enum Class {
    Dc,
    Ac,
}

/// MCUs between restart markers.
fn interval(scan: &ScanHeader) -> u32 {
    if scan.restart_interval == 0 { u32::MAX } else { scan.restart_interval }
}
