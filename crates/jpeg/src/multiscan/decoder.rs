//! All scans of an image, decoded together, a row of MCUs at a time.

use super::coefficient_row::{BLOCK_BYTES, BlockGrid, CoefficientRow};
use super::progress::Progress;
use super::scan::{Class, Scan};
use crate::buffer::clear_with_capacity;
use crate::error::{Error, Feature, Result};
use crate::huffman::band_table::BandTable;
use crate::huffman::code_table::CodeTable;
use crate::image::ParsedImage;
use crate::markers::header::{MAX_COMPONENTS, Process};
use crate::markers::parser::{Parser, ScanHeader};
use crate::markers::segment::{SOS, end_of_scan};
use crate::plan::DecodePlan;

/// Decodes images of several scans, in memory that it keeps.
#[derive(Default)]
pub(crate) struct MultiScanDecoder {
    scans: Vec<Scan>,
    tables: Tables,
    coefs: CoefficientRow,
}

/// Quantisation tables of the components, in natural order.
type QuantTables = [Option<[u16; 64]>; MAX_COMPONENTS];

impl MultiScanDecoder {
    /// Reads the headers of all scans and prepares decoding from the first row of MCUs. Returns the quantisation tables.
    ///
    /// # Errors
    /// If a header is damaged, low frequencies are missing, or the scans are beyond a limit. Damage in the entropy-coded data up to
    /// there is reported first, but not if a limit is exceeded.
    pub(crate) fn begin(&mut self, image: &ParsedImage<'_>) -> Result<QuantTables> {
        let header = image.header();
        self.tables.clear();
        clear_with_capacity(&mut self.scans, max_scans(image));
        self.coefs.begin(header);
        let quant = self.read_headers(image);
        if quant.as_ref().is_err_and(|error| !matches!(error, Error::Limit { .. })) {
            for row in 0..header.mcus().1 {
                self.decode_row(image, row)?;
            }
        }
        quant
    }

    fn read_headers(&mut self, image: &ParsedImage<'_>) -> Result<QuantTables> {
        let mut parser = image.parser.clone();
        let header = parser.header;
        let mut progress = Progress::new(header.components().len());
        let mut scan = image.scan;
        let mut budget = BlockBudget::new(&self.coefs.grids, parser.limits().passes);
        loop {
            budget.spend(&self.coefs.grids, &scan)?;
            progress.record(&scan);
            self.push(&parser, &scan)?;
            // libjpeg ignores what follows a first sequential scan of all components.
            let all = scan.components().len() == header.components().len();
            if header.process == Process::Sequential && all && self.scans.len() == 1 {
                break;
            }
            match parser.next_scan(end_of_scan(parser.jpeg, scan.data)) {
                Ok(Some(next)) => scan = next,
                Ok(None) => break,
                // Once every bit of every coefficient is known, a missing EOI does not matter.
                Err(Error::Ends { .. }) if progress.is_complete() => break,
                Err(e) => return Err(e),
            }
        }
        match progress.needs_smoothing(&header, &parser.quant) {
            true => Err(Error::Unsupported(Feature::Incomplete)),
            false => Ok(parser.quant),
        }
    }

    fn push(&mut self, parser: &Parser<'_>, scan: &ScanHeader) -> Result<()> {
        let tables = &mut self.tables;
        let scan = Scan::new(&parser.header, scan, |class, number| {
            let spec = parser.huffman_spec(scan, matches!(class, Class::Dc), number)?;
            Ok(match class {
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

    /// Decodes row `row` of MCUs; all rows before it must have been decoded, in order.
    pub(crate) fn decode_row(&mut self, image: &ParsedImage<'_>, row: u32) -> Result<&CoefficientRow> {
        self.coefs.clear();
        for scan in &mut self.scans {
            scan.decode_row(image.bytes(), image.header(), &self.tables, row as usize, &mut self.coefs)?;
        }
        self.coefs.find_last();
        Ok(&self.coefs)
    }

    /// Bytes of memory held.
    pub(crate) fn capacity(&self) -> usize {
        self.scans.capacity() * size_of::<Scan>() + self.tables.capacity() + self.coefs.capacity()
    }
}

/// The Huffman tables of all scans. A table of an earlier image is overwritten.
#[derive(Default)]
pub(super) struct Tables {
    codes: TableList<CodeTable>,
    ac: TableList<BandTable>,
}

/// Tables in allocations of their own, so that adding one does not copy the others.
struct TableList<T> {
    tables: Vec<Box<T>>,
    used: usize,
}

impl<T> Default for TableList<T> {
    fn default() -> TableList<T> {
        TableList { tables: Vec::new(), used: 0 }
    }
}

impl<T> TableList<T> {
    /// Adds a table, which `empty` makes if no unused one is left and `build` fills. Returns its index.
    fn push(&mut self, empty: impl FnOnce() -> T, build: impl FnOnce(&mut T)) -> usize {
        if self.used == self.tables.len() {
            self.tables.push(Box::new(empty()));
        }
        build(&mut self.tables[self.used]);
        self.used += 1;
        self.used - 1
    }

    fn capacity(&self) -> usize {
        self.tables.len() * size_of::<T>() + self.tables.capacity() * size_of::<usize>()
    }
}

impl Tables {
    fn clear(&mut self) {
        (self.codes.used, self.ac.used) = (0, 0);
    }

    fn push_codes(&mut self, table: CodeTable) -> usize {
        self.codes.push(CodeTable::empty, |to| *to = table)
    }

    fn push_ac(&mut self, build: impl FnOnce(&mut BandTable)) -> usize {
        self.ac.push(BandTable::empty, build)
    }

    /// A table of DC codes.
    pub(super) fn codes(&self, index: usize) -> &CodeTable {
        &self.codes.tables[index]
    }

    /// A table of AC coefficients.
    pub(super) fn ac(&self, index: usize) -> &BandTable {
        &self.ac.tables[index]
    }

    fn capacity(&self) -> usize {
        self.codes.capacity() + self.ac.capacity()
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
    let (codes, ac) = match image.header().process {
        Process::Sequential => (scans * components, scans * components),
        Process::Progressive => (scans * components, scans),
    };
    let lists = 2 * (codes + ac + 8) * size_of::<usize>();
    let tables = codes * size_of::<CodeTable>() + ac * size_of::<BandTable>();
    scans * size_of::<Scan>() + tables + lists + blocks * BLOCK_BYTES
}
