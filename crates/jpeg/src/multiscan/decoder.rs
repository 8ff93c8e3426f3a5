//! All scans of an image, decoded together, a row of MCUs at a time.

use super::coefficient_row::{BLOCK_BYTES, BlockGrid, CoefficientRow};
use super::fill;
use super::progress::{Progress, QuantTables};
use super::scan::{Class, Scan};
use super::smoothing::{self, AHEAD, Smoothing};
use super::tables::Tables;
use crate::buffer::clear_with_capacity;
use crate::error::{Error, Result};
use crate::huffman::band_table::BandTable;
use crate::huffman::code_table::CodeTable;
use crate::image::ParsedImage;
use crate::markers::header::{Header, Process};
use crate::markers::parser::{Parser, ScanHeader};
use crate::markers::segment::{SOS, end_of_scan};
use crate::plan::DecodePlan;

/// Decodes images of several scans, in memory that it keeps.
#[derive(Default)]
pub(crate) struct MultiScanDecoder {
    scans: Vec<Scan>,
    tables: Tables,
    /// Rows of MCUs: one, or with smoothing row `r` at `r` modulo their number.
    coefs: [CoefficientRow; 1 + AHEAD as usize],
    smoothing: Smoothing,
    /// The next row to decode.
    next: u32,
    /// Whether damaged data are decoded as libjpeg does, and whether damage was met before the first row.
    fill: bool,
    damaged: bool,
}

impl MultiScanDecoder {
    /// Reads the headers of all scans and prepares decoding from the first row of MCUs. Returns the quantisation tables. If
    /// `exact`, an image without its end is damaged even if every bit is there.
    ///
    /// # Errors
    /// If a header is damaged or the scans are beyond a limit. Damage in the entropy-coded data up to
    /// there is reported first, but not if a limit is exceeded.
    pub(crate) fn begin(&mut self, image: &ParsedImage<'_>, exact: bool) -> Result<QuantTables> {
        self.fill = false;
        let quant = self.begin_headers(image, exact);
        if quant.as_ref().is_err_and(|error| !matches!(error, Error::Limit { .. })) {
            for row in 0..image.header().mcus().1 {
                self.decode_row(image, row)?;
            }
        }
        quant
    }

    /// As [`MultiScanDecoder::begin`], of an image whose entropy-coded data may be damaged, and of any number of scans.
    ///
    /// # Errors
    /// If a header is damaged or the scans are beyond a limit.
    pub(crate) fn begin_filled(&mut self, image: &ParsedImage<'_>) -> Result<QuantTables> {
        (self.fill, self.damaged) = (true, false);
        let quant = self.begin_headers(image, true)?;
        if self.estimates() {
            // What is estimated depends on how far the last scan goes, which only decoding it shows.
            for row in 0..image.header().mcus().1 {
                self.decode_row(image, row)?;
            }
            self.damaged = self.meets_damage();
            let last = self.scans.last().and_then(|scan| scan.fill).map_or(0, |fill| fill.last_row);
            // libjpeg counts rows of MCUs of the sampling factor as coded, which a single component does not have here.
            let rows = if image.header().components().len() == 1 { u32::from(image.header().first_v) } else { 1 };
            let last = last / rows * rows + rows - 1;
            let quant = self.begin_headers(image, true)?;
            self.smoothing.end_after(last);
            return Ok(quant);
        }
        Ok(quant)
    }

    /// Whether what was decoded of an image begun by [`MultiScanDecoder::begin_filled`] is damaged.
    pub(crate) fn meets_damage(&self) -> bool {
        self.damaged || self.scans.iter().any(|scan| scan.fill.is_some_and(|fill| fill.damaged))
    }

    fn begin_headers(&mut self, image: &ParsedImage<'_>, exact: bool) -> Result<QuantTables> {
        let header = image.header();
        self.tables.clear();
        clear_with_capacity(&mut self.scans, max_scans(image));
        self.next = 0;
        self.coefs[0].begin(header);
        self.smoothing.begin(None, 0);
        self.read_headers(image, exact)
    }

    fn read_headers(&mut self, image: &ParsedImage<'_>, exact: bool) -> Result<QuantTables> {
        let mut parser = image.parser.clone();
        let header = parser.header;
        let mut progress = Progress::new(header.components().len());
        let mut scan = image.scan;
        let mut budget = BlockBudget::new(&self.coefs[0].grids, parser.limits().passes);
        loop {
            budget.spend(&self.coefs[0].grids, &scan)?;
            progress.record(&scan);
            self.push(&parser, &scan)?;
            // libjpeg ignores what follows a first sequential scan of all components.
            let all = scan.components().len() == header.components().len();
            if header.process == Process::Sequential && all && self.scans.len() == 1 {
                break;
            }
            let end = match self.fill {
                true => fill::end_of_scan(parser.jpeg, &scan, self.mcus(&header, &scan)),
                false => end_of_scan(parser.jpeg, scan.data),
            };
            match parser.next_scan(end) {
                Ok(Some(next)) => scan = next,
                Ok(None) => break,
                // Once every bit of every coefficient is known, a missing EOI does not matter.
                Err(Error::Ends { .. }) if progress.is_complete() && !exact => break,
                Err(e) => return Err(e),
            }
        }
        self.smoothing.begin(progress.estimated(&header, &parser.quant), self.coefs[0].blocks().len());
        if self.smoothing.is_needed() {
            self.coefs[1..].iter_mut().for_each(|coefs| coefs.begin(&header));
        }
        Ok(parser.quant)
    }

    /// Returns the number of MCUs of a scan.
    fn mcus(&self, header: &Header, scan: &ScanHeader) -> u64 {
        match scan.components() {
            [one] => self.coefs[0].grids[one.index].count(),
            _ => u64::from(header.mcus().0) * u64::from(header.mcus().1),
        }
    }

    fn push(&mut self, parser: &Parser<'_>, scan: &ScanHeader) -> Result<()> {
        let (tables, fill) = (&mut self.tables, self.fill);
        let scan = Scan::new(&parser.header, scan, fill, |class, number| {
            let spec = parser.huffman_spec(scan, matches!(class, Class::Dc), number)?;
            Ok(match class {
                _ if fill => tables.push_codes(CodeTable::new(&spec)),
                Class::Dc => tables.push_codes(CodeTable::new(&spec)),
                Class::Ac => tables.push_ac(|table| table.rebuild(&spec)),
            })
        })?;
        self.scans.push(scan);
        Ok(())
    }

    /// Drops the scans of which `plan` needs no coefficient.
    pub(crate) fn keep_needed(&mut self, plan: &DecodePlan) {
        let planes = plan.planes();
        self.scans.retain(|scan| {
            // One sample of a block is made from DC alone.
            let only_dc = |index: usize| planes.get(index).is_some_and(|plane| plane.block == 1);
            !scan.is_beyond(planes.len()) && !(0..planes.len()).any(|index| only_dc(index) && scan.is_ac_of(index))
        });
    }

    /// Whether coefficients are estimated, because scans are missing.
    pub(crate) fn estimates(&self) -> bool {
        self.smoothing.is_needed()
    }

    /// Decodes row `row` of MCUs; all rows before it must have been decoded, in order.
    pub(crate) fn decode_row(&mut self, image: &ParsedImage<'_>, row: u32) -> Result<&CoefficientRow> {
        let rows = image.header().mcus().1;
        let smooth = self.smoothing.is_needed();
        let (held, end) = if smooth { (1 + AHEAD, (row + 1 + AHEAD).min(rows)) } else { (1, row + 1) };
        while self.next < end {
            let coefs = &mut self.coefs[(self.next % held) as usize];
            coefs.clear();
            for scan in &mut self.scans {
                scan.decode_row(image.bytes(), image.header(), &self.tables, self.next as usize, coefs)?;
            }
            if smooth {
                self.smoothing.keep(self.next, coefs);
            }
            self.next += 1;
        }
        let coefs = &mut self.coefs[(row % held) as usize];
        if smooth {
            self.smoothing.estimate((row, rows), coefs);
        }
        coefs.find_last();
        Ok(coefs)
    }

    /// Bytes of memory held.
    pub(crate) fn capacity(&self) -> usize {
        let coefs: usize = self.coefs.iter().map(CoefficientRow::capacity).sum();
        self.scans.capacity() * size_of::<Scan>() + self.tables.capacity() + coefs + self.smoothing.capacity()
    }
}

/// Bounds the blocks that all scans together go over: a scan of a few bytes can have millions of them.
struct BlockBudget {
    /// Blocks of the image.
    blocks: u64,
    spent: u64,
    passes: u64,
}

/// Blocks that the scans of any image may go over. In a small image they are all bits of all coefficients, one scan each.
const FREE_BLOCKS: u64 = 1 << 20;

impl BlockBudget {
    fn new(grids: &[BlockGrid], passes: u32) -> BlockBudget {
        let blocks = grids.iter().map(BlockGrid::count).sum::<u64>().max(1);
        BlockBudget { blocks, spent: 0, passes: u64::from(passes).max(FREE_BLOCKS / blocks) }
    }

    /// Adds the blocks of a scan.
    ///
    /// # Errors
    /// [`Error::Limit`] if there are more than the budget allows.
    fn spend(&mut self, grids: &[BlockGrid], scan: &ScanHeader) -> Result<()> {
        self.spent += scan.components().iter().map(|c| grids[c.index].count()).sum::<u64>();
        let found = self.spent.div_ceil(self.blocks);
        match found <= self.passes {
            true => Ok(()),
            false => Err(Error::Limit { what: "passes over its blocks", allowed: self.passes, found }),
        }
    }
}

/// The most scans that an image may have: its SOS markers, as far as the limit allows.
fn max_scans(image: &ParsedImage<'_>) -> usize {
    let more = memchr::memmem::find_iter(&image.bytes()[image.scan.data..], &[0xff, SOS]).count();
    (1 + more).min(image.parser.limits().scans as usize)
}

/// The most bytes of memory that [`MultiScanDecoder`] holds for an image.
pub(crate) fn max_bytes(image: &ParsedImage<'_>) -> usize {
    let blocks: usize = BlockGrid::of(image.header()).iter().map(|g| g.padded * g.v).sum();
    // A scan of a progressive image needs one table of AC coefficients, or one of DC codes for each of its components; a scan of
    // a sequential image needs both for each component. Lists of tables grow to twice their length, and to four at least.
    let (scans, components) = (max_scans(image), image.header().components().len());
    // Smoothing holds more rows of blocks.
    let (codes, ac, block) = match image.header().process {
        Process::Sequential => (scans * components, scans * components, BLOCK_BYTES),
        Process::Progressive => {
            (scans * components, scans, (1 + AHEAD as usize) * BLOCK_BYTES + smoothing::BLOCK_BYTES)
        }
    };
    let lists = 2 * (codes + ac + 8) * size_of::<usize>();
    let tables = codes * size_of::<CodeTable>() + ac * size_of::<BandTable>();
    scans * size_of::<Scan>() + tables + lists + blocks * block
}
