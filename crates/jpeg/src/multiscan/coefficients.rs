//! All scans of an image, sequential or progressive, into the coefficients of the whole image. This is the general way,
//! simple and checked at each step; `entropy` is the fast one, for the common case.

use crate::bitstream::unstuffed::{EntropySegment, UnstuffedData};
use crate::decoder::room;
use crate::error::{Damage, Error, Feature, Result};
use crate::huffman::{CodeTable, HuffmanSpec, extend};
use crate::markers::header::{Header, Process};
use crate::markers::parser::{Parser, ScanHeader};
use crate::markers::segment;
use crate::markers::standard::ZIGZAG;
use crate::multiscan::progressive;
use crate::transform::idct::{BlockRow, QUARTER};

/// One component's blocks.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlockGrid {
    /// BlockRow across and down, with those that fill the last MCUs.
    pub padded: (usize, usize),
    /// BlockRow across and down that hold samples.
    pub blocks: (usize, usize),
    /// Index of the first block.
    pub first: usize,
    /// Sampling factors.
    pub h: usize,
    pub v: usize,
}

impl BlockGrid {
    /// Those of an image's components; empty ones for those that it does not have.
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

    /// Index of a block.
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

/// BitReader of a segment, most significant first. Past the end there are zeros, and [`BitReader::is_over`] says so.
pub(crate) struct BitReader<'a> {
    rest: &'a [u8],
    held: u64,
    count: u32,
    missing: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(data: &'a [u8]) -> BitReader<'a> {
        BitReader { rest: data, held: 0, count: 0, missing: 0 }
    }

    fn refill(&mut self) {
        if let Some((head, _)) = self.rest.split_first_chunk::<8>() {
            let bytes = (63 - self.count) / 8;
            self.held |= u64::from_be_bytes(*head) >> self.count;
            // BitReader beyond those counted are the same when they come again.
            self.rest = &self.rest[bytes as usize..];
            self.count += 8 * bytes;
            return;
        }
        while self.count <= 56 {
            let byte = match self.rest {
                [first, rest @ ..] => {
                    self.rest = rest;
                    *first
                }
                [] => {
                    self.missing += 8;
                    0
                }
            };
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// The next `n` bits, at most 16.
    #[inline]
    pub(crate) fn take(&mut self, n: u32) -> i32 {
        if self.count < n {
            self.refill();
        }
        let value = (self.held >> 1 >> (63 - n)) as i32;
        self.drop(n);
        value
    }

    fn drop(&mut self, n: u32) {
        self.held <<= n;
        self.count -= n;
    }

    /// The next symbol.
    #[inline]
    pub(crate) fn symbol(&mut self, codes: &CodeTable) -> std::result::Result<u8, Damage> {
        if self.count < 16 {
            self.refill();
        }
        let (length, symbol) = codes.find(self.held).ok_or(Damage::Code)?;
        self.drop(length);
        Ok(symbol)
    }

    /// Whether more bits were taken than there were.
    pub(crate) fn is_over(&self) -> bool {
        self.missing > self.count
    }

    /// Whether nothing is left but padding, which is ones.
    fn is_spent(&mut self) -> bool {
        self.drop(self.count % 8);
        while self.count > self.missing {
            if self.take(8) != 0xff {
                return false;
            }
        }
        self.rest.iter().all(|&b| b == 0xff)
    }
}

/// State of one scan.
pub(crate) struct State {
    pub dc: [Option<CodeTable>; 3],
    pub ac: Option<CodeTable>,
    acs: [Option<CodeTable>; 3],
    pub predictors: [i16; 3],
    /// BlockRow to come that have no new coefficients.
    pub run: u32,
    pub band: (usize, usize),
    pub bits: (u8, u8),
}

impl Coefficients {
    /// Reads all scans. Returns the quantisation tables.
    pub(crate) fn read(
        &mut self,
        mut reader: Parser<'_>,
        first: &ScanHeader,
        unstuffed: &mut UnstuffedData,
    ) -> Result<[Option<[u16; 64]>; 3]> {
        let header = reader.header;
        self.make_room(&header);
        let mut progress = progressive::Progress::new(header.components().len());
        let mut scan = *first;
        loop {
            progress.admit(&header, &scan)?;
            unstuffed.fill(reader.jpeg, scan.data, self.segments(&header, &scan));
            self.scan(&reader, &scan, unstuffed)?;
            let done = header.process == Process::Sequential && progress.is_complete();
            if done {
                break;
            }
            let end = segment::end_of_scan(reader.jpeg, unstuffed.stored_end());
            match reader.next_scan(end) {
                Ok(Some(next)) => scan = next,
                Ok(None) => break,
                // A missing end of image is no loss once every bit of every coefficient is known.
                Err(Error::Ends { .. }) if progress.is_complete() => break,
                Err(e) => return Err(e),
            }
        }
        match progress.is_complete() {
            true => Ok(reader.quant),
            false => Err(Error::Unsupported(Feature::Incomplete)),
        }
    }

    fn make_room(&mut self, header: &Header) {
        self.grids = BlockGrid::of(header);
        let blocks: usize = self.grids.iter().map(|g| g.padded.0 * g.padded.1).sum();
        room(&mut self.values, blocks * 64);
        self.values.fill(0);
    }

    /// MCUs of a scan across and down: blocks, where it is of one component.
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

    fn scan(&mut self, reader: &Parser<'_>, scan: &ScanHeader, unstuffed: &UnstuffedData) -> Result<()> {
        let header = &reader.header;
        let codes = |dc: bool, number| -> Result<Option<CodeTable>> {
            Ok(Some(CodeTable::new(&reader.spec(scan, dc, number)? as &HuffmanSpec<'_>)))
        };
        let mut state = State {
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
                if !bits.is_spent() {
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
                    state.block(header.process, i, &mut bits, block).map_err(error)?;
                }
            }
            if bits.is_over() {
                return Err(error(Damage::Ends));
            }
        }
        Ok(())
    }

    /// Finds out of each block how much of it is 0.
    pub(crate) fn find_last(&mut self) {
        room(&mut self.last, self.values.len() / 64);
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
        BlockRow { coefs: &self.values, last: &self.last, first, run: 1, step: 1 }
    }
}

impl State {
    fn block(
        &mut self,
        process: Process,
        i: usize,
        bits: &mut BitReader<'_>,
        block: &mut [i16; 64],
    ) -> std::result::Result<(), Damage> {
        match process {
            Process::Sequential => self.sequential(i, bits, block),
            Process::Progressive => {
                if self.band.0 > 0 && self.ac.is_none() {
                    self.ac = self.acs[i].take();
                }
                progressive::block(self, i, bits, block)
            }
        }
    }

    fn sequential(
        &mut self,
        i: usize,
        bits: &mut BitReader<'_>,
        block: &mut [i16; 64],
    ) -> std::result::Result<(), Damage> {
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
