//! All scans of an image, sequential or progressive, decoded to the coefficients of the whole image. This is the general
//! path, simple and checked at each step; `sequential` is the fast one for images of one scan.

use super::progressive;
use super::scan_decoder::ScanDecoder;
use crate::bitstream::bit_reader::BitReader;
use crate::bitstream::unstuffed::{EntropySegment, UnstuffedData};
use crate::blocks::{BlockRow, BlockSource, QUARTER};
use crate::buffer::resize_unspecified;
use crate::error::{Damage, Error, Feature, Result};
use crate::huffman::code_table::CodeTable;
use crate::markers::header::{Header, Process};
use crate::markers::parser::{Parser, ScanHeader};
use crate::markers::segment::end_of_scan;

/// Where the blocks of one component are.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlockGrid {
    /// Blocks across and down, including those that only fill the last MCUs.
    pub padded: (usize, usize),
    /// Blocks across and down that contain pixels of the image.
    pub blocks: (usize, usize),
    /// Index of the first block.
    pub first: usize,
    /// Sampling factors.
    pub h: usize,
    pub v: usize,
}

impl BlockGrid {
    /// Returns the grids of an image's components; those of components that it does not have are empty.
    pub(crate) fn of(header: &Header) -> [BlockGrid; 3] {
        let (across, down) = header.mcus();
        let (max_h, max_v) = header.max_sampling();
        let (mut grids, mut first) = ([BlockGrid::default(); 3], 0);
        for (grid, c) in grids.iter_mut().zip(header.components()) {
            let (h, v) = (u32::from(c.h), u32::from(c.v));
            let padded = ((across * h) as usize, (down * v) as usize);
            let blocks = ((header.width * h).div_ceil(8 * max_h), (header.height * v).div_ceil(8 * max_v));
            let blocks = (blocks.0 as usize, blocks.1 as usize);
            *grid = BlockGrid { padded, blocks, first, h: h as usize, v: v as usize };
            first += padded.0 * padded.1;
        }
        grids
    }

    /// Index of the block in column `x` of row `y`.
    pub(crate) fn index(&self, x: usize, y: usize) -> usize {
        self.first + y * self.padded.0 + x
    }
}

/// Coefficients of a whole image, in natural order, component after component.
#[derive(Default)]
pub(crate) struct Coefficients {
    pub values: Vec<i16>,
    pub grids: [BlockGrid; 3],
    last: Vec<u8>,
}

impl Coefficients {
    /// Decodes all scans, of which `first` is the first one. Returns the components' quantisation tables in natural order.
    pub(crate) fn read(
        &mut self,
        mut parser: Parser<'_>,
        first: &ScanHeader,
        unstuffed: &mut UnstuffedData,
    ) -> Result<[Option<[u16; 64]>; 3]> {
        let header = parser.header;
        self.allocate(&header);
        let mut progress = progressive::Progress::new(header.components().len());
        let mut scan = *first;
        loop {
            progress.admit(&header, &scan)?;
            unstuffed.fill(parser.jpeg, scan.data, self.segments(&header, &scan));
            self.scan(&parser, &scan, unstuffed)?;
            let done = header.process == Process::Sequential && progress.is_complete();
            if done {
                break;
            }
            let end = end_of_scan(parser.jpeg, unstuffed.stored_end());
            match parser.next_scan(end) {
                Ok(Some(next)) => scan = next,
                Ok(None) => break,
                // Once every bit of every coefficient is known, a missing EOI does not matter.
                Err(Error::Ends { .. }) if progress.is_complete() => break,
                Err(e) => return Err(e),
            }
        }
        match progress.is_complete() {
            true => Ok(parser.quant),
            false => Err(Error::Unsupported(Feature::Incomplete)),
        }
    }

    fn allocate(&mut self, header: &Header) {
        self.grids = BlockGrid::of(header);
        let blocks: usize = self.grids.iter().map(|g| g.padded.0 * g.padded.1).sum();
        resize_unspecified(&mut self.values, blocks * 64);
        self.values.fill(0);
    }

    /// MCUs of a scan across and down. In a scan of one component, each block is an MCU.
    fn mcus(&self, header: &Header, scan: &ScanHeader) -> (usize, usize) {
        match scan.components() {
            [one] => self.grids[one.index].blocks,
            _ => (header.mcus().0 as usize, header.mcus().1 as usize),
        }
    }

    /// Pieces of a scan between restart markers.
    fn segments(&self, header: &Header, scan: &ScanHeader) -> u64 {
        let (across, down) = self.mcus(header, scan);
        match scan.restart_interval {
            0 => 1,
            n => (across as u64 * down as u64).div_ceil(n.into()),
        }
    }

    /// Bytes of memory held.
    pub(crate) fn capacity(&self) -> usize {
        self.values.capacity() * 2 + self.last.capacity()
    }

    fn scan(&mut self, parser: &Parser<'_>, scan: &ScanHeader, unstuffed: &UnstuffedData) -> Result<()> {
        let header = &parser.header;
        let codes = |dc: bool, number| -> Result<Option<CodeTable>> {
            Ok(Some(CodeTable::new(&parser.huffman_spec(scan, dc, number)?)))
        };
        let mut state = ScanDecoder {
            dc: [None, None, None],
            ac: None,
            acs: [None, None, None],
            predictors: [0; 3],
            run: 0,
            band: (scan.band.0.into(), scan.band.1.into()),
            bits: scan.bits,
        };
        for (i, part) in scan.components().iter().enumerate() {
            if scan.band.0 == 0 && scan.bits.0 == 0 {
                state.dc[i] = codes(true, part.tables.0)?;
            }
            if scan.band.1 > 0 {
                state.acs[i] = codes(false, part.tables.1)?;
            }
        }
        let parts: [(BlockGrid, (usize, usize)); 3] = std::array::from_fn(|i| {
            let grid = self.grids[scan.components().get(i).map_or(0, |c| c.index)];
            (grid, if scan.components().len() == 1 { (1, 1) } else { (grid.h, grid.v) })
        });
        let (across, down) = self.mcus(header, scan);
        let interval = if scan.restart_interval == 0 { usize::MAX } else { scan.restart_interval as usize };
        let data = |p: &EntropySegment| BitReader::new(&unstuffed.bytes()[p.start..p.end]);
        let mut segment = 0;
        let mut bits = data(&unstuffed.segments()[0]);
        for mcu in 0..across * down {
            let offset = unstuffed.segments()[segment].stored;
            let error = |damage| Error::Damaged { row: (mcu / across) as u32, rows: down as u32, offset, damage };
            if mcu > 0 && mcu % interval == 0 {
                if !bits.only_padding_left() {
                    return Err(error(Damage::LeftOver));
                }
                let next = unstuffed.segments().get(segment + 1).ok_or_else(|| error(Damage::Ends))?;
                if next.restart != Some((segment & 7) as u8) {
                    return Err(error(Damage::Restart));
                }
                segment += 1;
                bits = data(next);
                (state.predictors, state.run) = ([0; 3], 0);
            }
            let (x, y) = (mcu % across, mcu / across);
            for (i, (grid, (h, v))) in parts.iter().take(scan.components().len()).enumerate() {
                for b in 0..h * v {
                    let index = grid.index(x * h + b % h, y * v + b / h);
                    let block = &mut self.values.as_chunks_mut::<64>().0[index];
                    decode_block(&mut state, header.process, i, &mut bits, block).map_err(error)?;
                }
            }
            if bits.is_overrun() {
                return Err(error(Damage::Ends));
            }
        }
        Ok(())
    }

    /// Determines `last` of every block: 0, the upper left quarter, or all coefficients.
    pub(crate) fn find_last(&mut self) {
        resize_unspecified(&mut self.last, self.values.len() / 64);
        for (last, block) in self.last.iter_mut().zip(self.values.as_chunks::<64>().0) {
            let zero = |values: &[i16]| values.iter().fold(0, |a, &v| a | v) == 0;
            let corner = block[..32].as_chunks::<8>().0.iter().all(|row| zero(&row[4..])) && zero(&block[32..]);
            *last = match corner {
                true if zero(&block[1..]) => 0,
                true => QUARTER,
                false => 63,
            };
        }
    }

    /// A row of a component's blocks.
    pub(crate) fn row(&self, component: usize, y: u32) -> BlockRow<'_> {
        let grid = &self.grids[component];
        let first = grid.index(0, y as usize);
        let source = BlockSource::Arrays(self.values.as_chunks().0, &self.last);
        BlockRow { source, first, run: 1, step: 1 }
    }
}

/// Decodes what a scan adds to a block. `i` is the index of the component in the scan.
fn decode_block(
    decoder: &mut ScanDecoder,
    process: Process,
    i: usize,
    bits: &mut BitReader<'_>,
    block: &mut [i16; 64],
) -> Result<(), Damage> {
    match process {
        Process::Sequential => decoder.sequential(i, bits, block),
        Process::Progressive => {
            if decoder.band.0 > 0 && decoder.ac.is_none() {
                decoder.ac = decoder.acs[i].take();
            }
            progressive::decode_block(decoder, i, bits, block)
        }
    }
}
