//! Coefficients to the symbols of one sequential scan: runs of zeros and magnitudes, not yet coded.

use crate::decoder::{Decoder, room};
use crate::error::{Error, Feature, Result};
use crate::markers::header::Header;
use crate::markers::parser::{Parser, ScanHeader};
use crate::markers::standard::ZIGZAG;
use crate::multiscan::coefficients::BlockGrid;
use crate::sequential::state::{ScanContext, ScanLayout, ScanState, predict};

/// One symbol with its magnitude bits: `table << 8 | symbol | magnitude << MAGNITUDE`. The table is twice the number of the
/// component's pair, and one more for AC.
pub(crate) type Symbol = u32;
/// Where a symbol's magnitude begins.
pub(crate) const MAGNITUDE: u32 = 10;
/// Tables: two pairs of DC and AC.
pub(crate) const TABLES: usize = 4;

/// Most magnitude bits of a DC difference and of an AC coefficient of 8-bit samples (T.81, tables F.1 and F.2).
const MOST: [u32; 2] = [11, 10];
/// End of block.
const END: u8 = 0;
/// Sixteen zeros.
const ZEROS: u8 = 0xf0;

/// All that one sequential scan of an image's components says.
pub(crate) struct Symbols {
    pub header: Header,
    /// Quantisation tables of the components.
    pub quant: [Option<[u16; 64]>; 3],
    /// The symbols, in the order of the scan.
    pub all: Vec<Symbol>,
    /// How often each occurs, by table.
    pub counts: [[u32; 256]; TABLES],
    /// Whether the image holds them in several scans.
    pub several_scans: bool,
    predictors: [i16; 3],
}

/// The same picture: size, colours and quantisation, and all coefficients.
impl PartialEq for Symbols {
    fn eq(&self, other: &Symbols) -> bool {
        let frame = |s: &Symbols| {
            let sampling = s.header.components.map(|c| (c.h, c.v));
            (s.header.width, s.header.height, s.header.color, s.header.components().len(), sampling)
        };
        frame(self) == frame(other) && self.quant == other.quant && self.all == other.all
    }
}

/// Number of the pair of tables of a component: the first has its own.
pub(crate) fn table(component: usize) -> usize {
    usize::from(component > 0)
}

impl Symbols {
    /// Those of `jpeg`, however many scans it has itself. BlockRow that only fill the last MCUs are left empty.
    ///
    /// # Errors
    /// What is wrong with the image, and [`Feature::Range`].
    pub(crate) fn read(jpeg: &[u8], decoder: &mut Decoder) -> Result<Symbols> {
        let (reader, scan) = Parser::start(jpeg, decoder.limits())?;
        let mut layout = ScanLayout::new(&reader, &scan)?;
        let mut symbols = Symbols {
            header: reader.header,
            quant: reader.quant,
            // A little more than most images need, and less than their coefficients take.
            all: Vec::with_capacity(jpeg.len() * 3 / 2),
            counts: [[0; 256]; TABLES],
            several_scans: layout.is_none(),
            predictors: [0; 3],
        };
        match &mut layout {
            Some(layout) => {
                layout.prepare(&reader, &scan, &mut decoder.caches)?;
                symbols.rows(jpeg, &scan, layout, decoder)?;
            }
            None => symbols.scans(reader, &scan, decoder)?,
        }
        Ok(symbols)
    }

    /// Takes in one sequential scan, a row of MCUs at a time.
    fn rows(&mut self, jpeg: &[u8], scan: &ScanHeader, layout: &ScanLayout, decoder: &mut Decoder) -> Result<()> {
        let Decoder { cpu, speculation, caches, unstuffed, coefs, last, .. } = decoder;
        unstuffed.fill(jpeg, scan.data, layout.segments());
        room(coefs, layout.coefs(layout.across()));
        room(last, layout.row_blocks());
        let (header, grids) = (self.header, BlockGrid::of(&self.header));
        layout.with_tables(caches, |tables| {
            let context = ScanContext { layout, unstuffed, tables, fast: cpu.bmi2, speculation: *speculation };
            let mut state = ScanState::at(layout, unstuffed, 0, 0, 0, [0; 3]);
            for row in 0..layout.mcus.1 as usize {
                let mcu = state.mcu;
                let step = state.step(&context, layout.mcus.0.into(), coefs, last);
                step.map_err(|error| error.error(&header, unstuffed))?;
                predict(layout, mcu, &mut state.predictors, &mut coefs[..layout.row_blocks() * 64]);
                let mut blocks = coefs.as_chunks::<64>().0.iter().zip(last.iter());
                for_each_block(&grids, row, layout.mcus.0 as usize, |component, shown, _| match blocks.next() {
                    Some((block, &last)) => self.block(component, shown.then_some(block), last),
                    None => Ok(()),
                })?;
            }
            Ok(())
        })
    }

    /// Takes in all scans, by way of the whole image's coefficients.
    fn scans(&mut self, reader: Parser<'_>, scan: &ScanHeader, decoder: &mut Decoder) -> Result<()> {
        let Decoder { unstuffed, whole, .. } = decoder;
        self.quant = whole.read(reader, scan, unstuffed)?;
        let (across, down) = self.header.mcus();
        let blocks = whole.values.as_chunks::<64>().0;
        for row in 0..down as usize {
            for_each_block(&whole.grids, row, across as usize, |component, shown, index| {
                self.block(component, shown.then(|| &blocks[index]), 63)
            })?;
        }
        Ok(())
    }

    /// Takes in a block whose coefficients beyond `last` are 0, or one that only fills an MCU.
    #[inline]
    fn block(&mut self, component: usize, block: Option<&[i16; 64]>, last: u8) -> Result<()> {
        let (dc, ac) = (2 * table(component), 2 * table(component) + 1);
        let Some(block) = block else {
            // It costs least as a repetition of the one before.
            self.push(dc, 0, 0);
            self.push(ac, END, 0);
            return Ok(());
        };
        let before = std::mem::replace(&mut self.predictors[component], block[0]);
        let (magnitude, size) = coded(i32::from(block[0]) - i32::from(before), dc)?;
        self.push(dc, size, magnitude);
        let set = |k: usize| u64::from(block[usize::from(ZIGZAG[k & 63])] != 0) << (k & 63);
        let mut left = (1..=usize::from(last)).fold(0, |all, k| all | set(k));
        let mut next = 1;
        while left != 0 {
            let at = left.trailing_zeros();
            left &= left - 1;
            let mut run = at - next;
            while run > 15 {
                self.push(ac, ZEROS, 0);
                run -= 16;
            }
            let value = block[usize::from(ZIGZAG[at as usize & 63])];
            let (magnitude, size) = coded(value.into(), ac)?;
            self.push(ac, (run as u8) << 4 | size, magnitude);
            next = at + 1;
        }
        if next < 64 {
            self.push(ac, END, 0);
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, table: usize, symbol: u8, magnitude: u32) {
        self.counts[table & (TABLES - 1)][usize::from(symbol)] += 1;
        self.all.push((table << 8) as u32 | u32::from(symbol) | magnitude << MAGNITUDE);
    }
}

/// Calls `f` for each block of a row of MCUs in the order of the scan: its component, whether it holds samples, and its
/// index in the component's grid.
#[inline]
fn for_each_block(
    grids: &[BlockGrid; 3],
    row: usize,
    across: usize,
    mut f: impl FnMut(usize, bool, usize) -> Result<()>,
) -> Result<()> {
    for mcu in 0..across {
        for (component, grid) in grids.iter().enumerate() {
            for (v, h) in (0..grid.v).flat_map(|v| (0..grid.h).map(move |h| (v, h))) {
                let (x, y) = (mcu * grid.h + h, row * grid.v + v);
                f(component, x < grid.blocks.0 && y < grid.blocks.1, grid.index(x, y))?;
            }
        }
    }
    Ok(())
}

/// Magnitude bits of a value, and how many there are (T.81, F.1.2.1).
#[inline]
fn coded(value: i32, table: usize) -> Result<(u32, u8)> {
    let size = 32 - value.unsigned_abs().leading_zeros();
    if size > MOST[table & 1] {
        return Err(Error::Unsupported(Feature::Range));
    }
    Ok(((value + (value >> 31)) as u32 & ((1 << size) - 1), size as u8))
}
