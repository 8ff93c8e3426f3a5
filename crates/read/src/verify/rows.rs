//! Compares the rows of an index with the records that they describe.

use shardtool_format::example::{Example, Feature, range_within};
use shardtool_format::index::{self, Fixed, Index, Variable};
use shardtool_format::manifest::Manifest;
use shardtool_format::names;

/// The good columns of an index. A column that is damaged or absent is `None` and is not compared.
pub(super) struct Rows<'a> {
    records: u64,
    offsets: Option<Fixed<'a, u64>>,
    image: Option<(Fixed<'a, u32>, Fixed<'a, u32>)>,
    keys: Option<Variable<'a>>,
    #[cfg(feature = "decode")]
    entries: Option<Variable<'a>>,
    integers: Vec<(&'a str, Fixed<'a, i64>)>,
    floats: Vec<(&'a str, Fixed<'a, f32>)>,
    image_feature: Option<&'a str>,
}

/// A difference: its name, the value in the index, the value in the record.
pub(super) type Difference = (&'static str, String, String);

impl<'a> Rows<'a> {
    pub(super) fn new<B: AsRef<[u8]>>(index: &'a Index<B>, good: &[bool], manifest: &'a Manifest) -> Self {
        let column = |name| index.position(name).filter(|at| good[*at]);
        let u32s = |name| column(name).and_then(|at| index.fixed::<u32>(at));
        let features = || {
            let columns = index.columns().iter().enumerate().filter(|(at, _)| good[*at]);
            columns.filter_map(|(at, c)| Some((at, c.feature()?)))
        };
        Rows {
            records: index.records(),
            offsets: column(index::RECORD_OFFSET).and_then(|at| index.fixed(at)),
            image: u32s(index::IMAGE_OFFSET).zip(u32s(index::IMAGE_LENGTH)),
            keys: column(index::KEY).and_then(|at| index.variable(at)),
            #[cfg(feature = "decode")]
            entries: column(index::JPEG_ENTRIES).and_then(|at| index.variable(at)),
            integers: features().filter_map(|(at, name)| Some((name, index.fixed(at)?))).collect(),
            floats: features().filter_map(|(at, name)| Some((name, index.fixed(at)?))).collect(),
            image_feature: manifest.image.as_deref(),
        }
    }

    /// Returns the row whose frame begins at an offset of the shard.
    pub(super) fn row_at(&self, offset: u64) -> Option<u64> {
        let row = self.first_not_before(offset)?;
        (self.offsets?.get(row) == Some(offset)).then_some(row)
    }

    /// As [`Rows::row_at`], but tries row `expected` first. Returns `expected` if no row
    /// begins at the offset.
    pub(super) fn row_near(&self, expected: u64, offset: u64) -> u64 {
        match self.offsets {
            Some(offsets) if offsets.get(expected) == Some(offset) => expected,
            _ => self.row_at(offset).unwrap_or(expected),
        }
    }

    /// Returns the offset of the first frame after an offset.
    pub(super) fn start_after(&self, offset: u64) -> Option<u64> {
        self.offsets?.get(self.first_not_before(offset + 1)?)
    }

    fn first_not_before(&self, offset: u64) -> Option<u64> {
        let offsets = self.offsets?;
        let (mut low, mut high) = (0, offsets.len() as u64);
        while low < high {
            let middle = low + (high - low) / 2;
            if offsets.get(middle)? < offset { low = middle + 1 } else { high = middle }
        }
        Some(low)
    }

    pub(super) fn key(&self, row: u64) -> Option<&'a [u8]> {
        self.keys?.get(row)
    }

    #[cfg(feature = "decode")]
    pub(super) fn entries(&self, row: u64) -> Option<&'a [u8]> {
        self.entries?.get(row)
    }

    /// Returns all differences between a row and its record.
    pub(super) fn compare(
        &self,
        row: u64,
        offset: u64,
        data: &[u8],
        example: Option<&Example<'_>>,
        file: &str,
    ) -> Vec<Difference> {
        // A record after the last row: the number of records differs, which is a separate finding.
        if row >= self.records {
            return vec![];
        }
        let mut differences = vec![];
        let mut differ = |what, expected: String, found: String| differences.push((what, expected, found));
        if let Some(indexed) = self.offsets.map(|o| o.get(row))
            && indexed != Some(offset)
        {
            differ("offset", show(indexed), offset.to_string());
        }
        if let Some((offsets, lengths)) = self.image {
            let indexed = offsets.get(row).zip(lengths.get(row)).map(|(o, l)| (o as usize, l as usize));
            let image = self.image_feature.zip(example).and_then(|(name, e)| e.bytes(name));
            let range = image.and_then(|i| range_within(data, i)).filter(|r| !r.is_empty());
            let found = range.map_or((0, 0), |r| (r.start, r.len()));
            if indexed != Some(found) {
                differ(
                    "range of the image (offset, bytes)",
                    format!("{:?}", indexed.unwrap_or_default()),
                    format!("{found:?}"),
                );
            }
        }
        if let Some(keys) = self.keys {
            let (indexed, found) = (keys.get(row).unwrap_or_default(), names::key_of(example, file, row));
            if indexed != &*found {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                differ("key", text(indexed), text(&found));
            }
        }
        for (name, column) in &self.integers {
            let found = example.and_then(|e| e.int64(name));
            if column.get(row) != found || found.is_none() {
                differ("an integer feature", format!("{name} = {}", show(column.get(row))), show(found));
            }
        }
        for (name, column) in &self.floats {
            let found = match example.and_then(|e| e.get(name)) {
                Some(Feature::Float(list)) => list.single(),
                _ => None,
            };
            let bits = |v: Option<f32>| v.map(f32::to_bits);
            if bits(column.get(row)) != bits(found) || found.is_none() {
                differ("a float feature", format!("{name} = {}", show(column.get(row))), show(found));
            }
        }
        differences
    }
}

fn show<T: ToString>(value: Option<T>) -> String {
    value.map_or("none".to_owned(), |v| v.to_string())
}
