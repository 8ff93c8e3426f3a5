//! All scans of an image, decoded together, a row of MCUs at a time.

use super::coefficient_row::{BLOCK_BYTES, BlockGrid, CoefficientRow};
use super::progress::Progress;
use super::scan::{Class, Scan};
use crate::buffer::clear_with_capacity;
use crate::error::{Error, Feature, Result};
use crate::huffman::band_table::BandTable;
use crate::huffman::code_table::CodeTable;
use crate::image::ParsedImage;
use crate::markers::header::Process;
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
type QuantTables = [Option<[u16; 64]>; 3];

impl MultiScanDecoder {
    /// Reads the headers of all scans and prepares decoding from the first row of MCUs. Returns the quantisation tables.
    ///
    /// # Errors
    /// If a header is damaged or the coefficients are not complete. Damage in the entropy-coded data up to there is reported
    /// first.
    pub(crate) fn begin(&mut self, image: &ParsedImage<'_>) -> Result<QuantTables> {
        let header = image.header();
        self.tables.clear();
        clear_with_capacity(&mut self.scans, max_scans(image));
        self.coefs.begin(header);
        let quant = self.read_headers(image);
        if quant.is_err() {
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
        loop {
            progress.admit(&header, &scan)?;
            self.push(&parser, &scan)?;
            if header.process == Process::Sequential && progress.is_complete() {
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
        match progress.is_complete() {
            true => Ok(parser.quant),
            false => Err(Error::Unsupported(Feature::Incomplete)),
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

/// The most scans that an image may have: its SOS markers, as far as the limit allows.
fn max_scans(image: &ParsedImage<'_>) -> usize {
    let more = memchr::memmem::find_iter(&image.bytes()[image.scan.data..], &[0xff, SOS]).count();
    (1 + more).min(image.parser.max_scans() as usize)
}

/// The most bytes of memory that [`MultiScanDecoder`] holds for an image.
pub(crate) fn max_bytes(image: &ParsedImage<'_>) -> usize {
    let blocks: usize = BlockGrid::of(image.header()).iter().map(|g| g.padded * g.v).sum();
    // A scan needs at most one table of AC coefficients; besides, a component needs one table of DC codes, and in sequential
    // images one of AC coefficients. Lists of tables grow to twice their length, and to four at least.
    let scans = max_scans(image);
    let tables = scans + 6;
    let lists = 2 * 3 * (tables + 4) * size_of::<usize>();
    scans * size_of::<Scan>() + tables * size_of::<BandTable>() + lists + blocks * BLOCK_BYTES
}
