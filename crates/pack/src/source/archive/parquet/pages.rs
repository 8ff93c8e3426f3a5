//! Checks counts in the pages of a row group before the library allocates what they claim, and notes where their values lie.

use super::places::Places;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::RowGroupReader;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use std::sync::Arc;

/// Values of a page in a delta encoding, at most: the library reserves 4 bytes for the length of each.
const MAX_LENGTHS: u64 = 1 << 24;

/// A row group whose pages are checked.
pub(super) struct CheckedGroup<'a> {
    pub(super) group: &'a dyn RowGroupReader,
    /// Where the values of its pages lie.
    pub(super) places: &'a Arc<Places>,
}

impl RowGroupReader for CheckedGroup<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.group.metadata()
    }

    fn num_columns(&self) -> usize {
        self.group.num_columns()
    }

    fn get_column_page_reader(&self, column: usize) -> Result<Box<dyn PageReader>> {
        let schema = self.metadata().schema_descr();
        let description = schema.column(column);
        let level_kinds = [description.max_rep_level(), description.max_def_level()];
        let level_kinds = level_kinds.into_iter().filter(|most| *most > 0).count();
        let is_bytes = description.physical_type() == PhysicalType::BYTE_ARRAY;
        let places = is_bytes.then(|| self.places.clone());
        Ok(Box::new(CheckedPages { pages: self.group.get_column_page_reader(column)?, level_kinds, places }))
    }

    fn get_column_bloom_filter(&self, column: usize) -> Option<&Sbbf> {
        self.group.get_column_bloom_filter(column)
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        self.group.get_row_iter(projection)
    }
}

struct CheckedPages {
    pages: Box<dyn PageReader>,
    /// Kinds of levels (repetition, definition) that precede the values of a page.
    level_kinds: usize,
    /// Where the places of byte strings go.
    places: Option<Arc<Places>>,
}

impl CheckedPages {
    fn checked(&self, page: Option<Page>) -> Result<Option<Page>> {
        match page.as_ref().map_or(Ok(()), |page| self.check(page)) {
            Ok(()) => {
                if let (Some(page), Some(places)) = (&page, &self.places) {
                    places.add(page);
                }
                Ok(page)
            }
            Err(problem) => Err(ParquetError::General(format!("a page that {problem}"))),
        }
    }

    fn check(&self, page: &Page) -> std::result::Result<(), &'static str> {
        let values = match page {
            // Every value takes a byte or more.
            Page::DictionaryPage { buf, num_values, .. } => {
                let fits = *num_values as usize <= buf.len();
                return if fits { Ok(()) } else { Err("claims more values than it has bytes") };
            }
            Page::DataPage { buf, .. } => without_levels(buf, self.level_kinds),
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                buf.get(*def_levels_byte_len as usize + *rep_levels_byte_len as usize..)
            }
        };
        let most = u64::from(page.num_values()).min(MAX_LENGTHS);
        let fits = |deltas: Option<Deltas>| match deltas {
            Some(deltas) if deltas.count <= most => Ok(()),
            Some(_) => Err("claims more values than its header"),
            None => Err("has no count of values"),
        };
        let mut left = values.ok_or("ends before its values")?;
        match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => fits(Deltas::header(&mut left)),
            // The lengths of prefixes, then the suffixes, with their lengths in front.
            Encoding::DELTA_BYTE_ARRAY => {
                let prefixes = Deltas::header(&mut left);
                fits(prefixes)?;
                prefixes.and_then(|deltas| deltas.skip(&mut left)).ok_or("ends in its prefixes")?;
                fits(Deltas::header(&mut left))
            }
            _ => Ok(()),
        }
    }
}

/// The header of integers in the encoding DELTA_BINARY_PACKED.
#[derive(Clone, Copy)]
struct Deltas {
    block_values: u64,
    miniblocks: u64,
    count: u64,
}

impl Deltas {
    fn header(bytes: &mut &[u8]) -> Option<Self> {
        Some(Deltas { block_values: varint(bytes)?, miniblocks: varint(bytes)?, count: varint(bytes)? })
    }

    /// Passes the first value and all blocks, which follow the header.
    fn skip(self, bytes: &mut &[u8]) -> Option<()> {
        varint(bytes)?;
        let values = self.block_values.checked_div(self.miniblocks).filter(|values| *values > 0)?;
        let mut left = self.count.saturating_sub(1);
        while left > 0 {
            varint(bytes)?;
            let (widths, rest) = bytes.split_at_checked(usize::try_from(self.miniblocks).ok()?)?;
            *bytes = rest;
            for width in widths {
                if left == 0 {
                    break;
                }
                let miniblock = values.checked_mul(u64::from(*width))?.div_ceil(8);
                *bytes = bytes.get(usize::try_from(miniblock).ok()?..)?;
                left = left.saturating_sub(values);
            }
        }
        Some(())
    }
}

/// Returns the values of a data page of version 1: behind its levels, each with its length in front.
fn without_levels(mut page: &[u8], kinds: usize) -> Option<&[u8]> {
    for _ in 0..kinds {
        let (length, rest) = page.split_first_chunk()?;
        page = rest.get(u32::from_le_bytes(*length) as usize..)?;
    }
    Some(page)
}

/// Reads an unsigned LEB128 number.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.checked(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    struct One(Option<Page>);

    impl PageReader for One {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }
        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }
        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
        fn at_record_boundary(&mut self) -> Result<bool> {
            Ok(true)
        }
    }

    impl Iterator for One {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    #[test]
    fn suffixes_that_claim_more_values_than_the_page_are_refused() {
        let page = |buf: Vec<u8>| Page::DataPage {
            buf: buf.into(),
            num_values: 3,
            encoding: Encoding::DELTA_BYTE_ARRAY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        // Three prefixes in one block whose first part of four has 32 deltas of 2 bits.
        let prefixes = [&[0x80, 1, 4, 3, 0, 0, 2, 0, 0, 0][..], &[0; 8]].concat();
        let suffixes = |count: &[u8]| [&prefixes[..], &[0x80, 1, 4], count, &[0]].concat();
        assert!(accepts(page(suffixes(&[3])), 0));
        assert!(!accepts(page(suffixes(&[0xff, 0xff, 0xff, 0xff, 7])), 0));
        assert!(!accepts(page(prefixes[..12].to_vec()), 0), "a part that ends early");
    }

    fn accepts(page: Page, level_kinds: usize) -> bool {
        CheckedPages { pages: Box::new(One(Some(page))), level_kinds, places: None }.get_next_page().is_ok()
    }

    #[test]
    fn dictionaries_that_claim_more_values_than_bytes_are_refused() {
        let page = |num_values, buf: &'static [u8]| {
            let buf = Bytes::from_static(buf);
            Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false }
        };
        assert!(accepts(page(2, b"\x01\0\0\0a\0\0\0\0"), 1));
        assert!(!accepts(page(1 << 30, b"\x01\0\0\0a\0\0\0\0"), 1));
    }

    #[test]
    fn deltas_that_claim_more_values_than_the_page_are_refused() {
        let page = |num_values, buf: Vec<u8>| Page::DataPage {
            buf: buf.into(),
            num_values,
            encoding: Encoding::DELTA_LENGTH_BYTE_ARRAY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        // Blocks of 128 values in 4 parts, and the number of values.
        let deltas = |count: &[u8]| [&[0x80, 1, 4], count, &[0]].concat();
        let levels = [2, 0, 0, 0, 6, 1];
        assert!(accepts(page(3, deltas(&[3])), 0));
        assert!(accepts(page(3, [&levels[..], &deltas(&[2])].concat()), 1));
        assert!(!accepts(page(3, deltas(&[4])), 0));
        assert!(!accepts(page(3, [&levels[..], &deltas(&[0xff, 0xff, 0xff, 0xff, 7])].concat()), 1));
        assert!(!accepts(page(u32::MAX, deltas(&[0xff, 0xff, 0xff, 0xff, 7])), 0), "8 GB of lengths");
        assert!(!accepts(page(3, vec![9, 0, 0, 0]), 1), "levels that end behind the page");
    }
}
