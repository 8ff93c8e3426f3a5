//! From coefficients to the symbols of one sequential scan: runs of zeros and magnitudes, not yet Huffman-coded.

use crate::buffer::resize_unspecified;
use crate::decoder::Decoder;
use crate::entropy::block::{self, Blocks};
use crate::entropy::decode::MAX_OVERSHOOT;
use crate::error::{Error, Feature, Result};
use crate::image::ParsedImage;
use crate::markers::header::{Header, MAX_COMPONENTS};
use crate::markers::parser::SEQUENTIAL_COMPONENTS;
use crate::markers::standard::ZIGZAG;
use crate::multiscan::coefficient_row::BlockGrid;
use crate::multiscan::decoder::MultiScanDecoder;
use crate::sequential::layout::ScanLayout;
use crate::sequential::state::{ScanContext, ScanState};
use crate::sequential::workspace::ScanWorkspace;

/// A symbol with its table and magnitude bits: `magnitude << MAGNITUDE_SHIFT | table << 8 | symbol`. The table is twice the
/// index of the component's pair of tables, plus one for AC.
pub(super) type Symbol = u32;
/// Position of the magnitude bits in a [`Symbol`].
pub(super) const MAGNITUDE_SHIFT: u32 = 10;
/// Number of Huffman tables: DC and AC for luma (or the only component), DC and AC for chroma.
pub(super) const TABLES: usize = 4;

/// The number of occurrences of each symbol.
pub(super) type Frequencies = [u32; 256];

/// The most magnitude bits of a DC difference and of an AC coefficient of 8-bit samples (T.81, tables F.1 and F.2).
const MAX_BITS: [u32; 2] = [11, 10];
/// End of block (T.81, F.1.2.2).
const EOB: u8 = 0;
/// A run of sixteen zeros.
const ZRL: u8 = 0xf0;

/// The symbols of one sequential scan of all components.
pub(super) struct Symbols {
    pub header: Header,
    /// Quantisation tables of the components.
    pub quant: [Option<[u16; 64]>; MAX_COMPONENTS],
    /// The symbols, in the order of the scan.
    pub all: Vec<Symbol>,
    /// The frequencies of the symbols of each table.
    pub frequencies: [Frequencies; TABLES],
    /// Whether the coefficients were in several scans.
    pub was_multi_scan: bool,
    predictors: [i16; 3],
}

/// Equal if the images are: size, colour space, quantisation tables and all coefficients.
impl PartialEq for Symbols {
    fn eq(&self, other: &Symbols) -> bool {
        let frame = |s: &Symbols| {
            let sampling = s.header.components.map(|c| (c.h, c.v));
            (s.header.width, s.header.height, s.header.color, s.header.components().len(), sampling)
        };
        frame(self) == frame(other) && self.quant == other.quant && self.all == other.all
    }
}

/// Index of the pair of tables of a component: the first component has its own.
pub(super) fn table_pair(component: usize) -> usize {
    usize::from(component > 0)
}

impl Symbols {
    /// Returns the symbols of `jpeg`, however many scans it has. Blocks that only fill the last MCUs become empty.
    ///
    /// # Errors
    /// As [`Decoder::decode`] for the whole image, and [`Feature::Range`].
    pub(super) fn read(jpeg: &[u8], decoder: &mut Decoder) -> Result<Symbols> {
        let image = ParsedImage::parse(jpeg, decoder.limits())?;
        let (workspace, multiscan) = decoder.workspaces();
        let mut layout = ScanLayout::new(&image.parser, &image.scan)?;
        let mut symbols = Symbols {
            header: *image.header(),
            quant: image.parser.quant,
            // A little more than most images need, and less than their coefficients take.
            all: Vec::with_capacity(jpeg.len() * 3 / 2),
            frequencies: [[0; 256]; TABLES],
            was_multi_scan: layout.is_none(),
            predictors: [0; 3],
        };
        match &mut layout {
            Some(layout) => {
                layout.prepare_tables(&image.parser, &image.scan, [true; 3], &mut workspace.caches)?;
                symbols.push_sequential_scan(&image, layout, workspace)?;
            }
            None => symbols.push_all_scans(&image, multiscan)?,
        }
        Ok(symbols)
    }

    /// Appends the symbols of an image of one sequential scan, a row of MCUs at a time.
    fn push_sequential_scan(
        &mut self,
        image: &ParsedImage<'_>,
        layout: &ScanLayout,
        workspace: &mut ScanWorkspace,
    ) -> Result<()> {
        let ScanWorkspace { cpu, speculation, caches, unstuffed, blocks, .. } = workspace;
        unstuffed.fill(image.bytes(), image.scan.data, layout.segments());
        resize_unspecified(blocks, layout.row_blocks() + MAX_OVERSHOOT * layout.mcu_blocks);
        let (header, grids) = (self.header, BlockGrid::of(&self.header));
        let result = layout.with_tables(caches, |tables| {
            let blocks = &mut Blocks::new(blocks, tables);
            let context = ScanContext { layout, unstuffed, bmi2: cpu.bmi2, speculation: *speculation };
            let mut state = ScanState::at(layout, 0, 0, 0, [0; 3]);
            for row in 0..layout.mcus.1 as usize {
                let result = state.decode(&context, layout.mcus.0.into(), blocks, 0);
                result.map_err(|error| error.into_error(&header, unstuffed))?;
                let mut decoded = blocks.all().iter();
                for_each_block(&grids, row, layout.mcus.0 as usize, |component, in_image, _| match decoded.next() {
                    Some(block) => self.push_block(component, in_image.then_some(&block.coefs), block.last),
                    None => Ok(()),
                })?;
                blocks.clear(0..layout.row_blocks());
            }
            Ok(())
        });
        if result.is_err() {
            block::clear(blocks);
        }
        result
    }

    /// Appends the symbols of an image of several scans, a row of MCUs at a time.
    fn push_all_scans(&mut self, image: &ParsedImage<'_>, multiscan: &mut MultiScanDecoder) -> Result<()> {
        let components = self.header.components();
        if components.len() > SEQUENTIAL_COMPONENTS {
            return Err(Error::Unsupported(Feature::Components(components.len() as u8)));
        }
        self.quant = multiscan.begin(image, false)?;
        if self.quant[..components.len()].contains(&None) || multiscan.estimates() {
            return Err(Error::Unsupported(Feature::Incomplete));
        }
        if components.len() > 1 && components.iter().map(|c| c.h * c.v).sum::<u8>() > 10 {
            return Err(Error::Unsupported(Feature::McuBlocks));
        }
        let (across, down) = self.header.mcus();
        for row in 0..down {
            let coefs = multiscan.decode_row(image, row)?;
            for_each_block(&coefs.grids, row as usize, across as usize, |component, in_image, index| {
                self.push_block(component, in_image.then(|| &coefs.blocks()[index]), 63)
            })?;
        }
        Ok(())
    }

    /// Appends the symbols of a block whose coefficients beyond zigzag index `last` are 0; of an empty block for `None`.
    #[inline]
    fn push_block(&mut self, component: usize, block: Option<&[i16; 64]>, last: u8) -> Result<()> {
        let (dc, ac) = (2 * table_pair(component), 2 * table_pair(component) + 1);
        let Some(block) = block else {
            // No DC difference and no AC coefficients is the shortest block.
            self.push(dc, 0, 0);
            self.push(ac, EOB, 0);
            return Ok(());
        };
        let before = std::mem::replace(&mut self.predictors[component], block[0]);
        let (magnitude, size) = magnitude_bits(i32::from(block[0]) - i32::from(before), dc)?;
        self.push(dc, size, magnitude);
        let set = |k: usize| u64::from(block[usize::from(ZIGZAG[k & 63])] != 0) << (k & 63);
        let mut left = (1..=usize::from(last)).fold(0, |all, k| all | set(k));
        let mut next = 1;
        while left != 0 {
            let at = left.trailing_zeros();
            left &= left - 1;
            let mut run = at - next;
            while run > 15 {
                self.push(ac, ZRL, 0);
                run -= 16;
            }
            let value = block[usize::from(ZIGZAG[at as usize & 63])];
            let (magnitude, size) = magnitude_bits(value.into(), ac)?;
            self.push(ac, (run as u8) << 4 | size, magnitude);
            next = at + 1;
        }
        if next < 64 {
            self.push(ac, EOB, 0);
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, table: usize, symbol: u8, magnitude: u32) {
        self.frequencies[table & (TABLES - 1)][usize::from(symbol)] += 1;
        self.all.push((table << 8) as u32 | u32::from(symbol) | magnitude << MAGNITUDE_SHIFT);
    }
}

/// Calls `f` for each block of a row of MCUs in the order of the scan, with its component, whether it contains pixels of the
/// image, and its index in the component's grid.
#[inline]
fn for_each_block(
    grids: &[BlockGrid; MAX_COMPONENTS],
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

/// Returns the magnitude bits of a value, and their number (T.81, F.1.2.1).
#[inline]
fn magnitude_bits(value: i32, table: usize) -> Result<(u32, u8)> {
    let size = 32 - value.unsigned_abs().leading_zeros();
    if size > MAX_BITS[table & 1] {
        return Err(Error::Unsupported(Feature::Range));
    }
    Ok(((value + (value >> 31)) as u32 & ((1 << size) - 1), size as u8))
}
