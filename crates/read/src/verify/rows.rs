//! Compares the rows of an index with the records that they describe.

use shardtool_format::example::{Example, Feature, range_within};
use shardtool_format::index::{self, Fixed, Index, ValueRange, Variable};
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
    strings: Vec<(&'a str, Variable<'a>)>,
    ranges: Vec<(&'a str, Variable<'a>)>,
    image_feature: Option<&'a str>,
}

/// A difference: its name, the value in the index, the value in the record.
pub(super) type Difference = (&'static str, String, String);

impl<'a> Rows<'a> {
    pub(super) fn new<B: AsRef<[u8]>>(index: &'a Index<B>, good: &[bool], manifest: &'a Manifest) -> Self {
        let column = |name| index.position(name).filter(|at| good[*at]);
        let u32s = |name| column(name).and_then(|at| index.fixed::<u32>(at));
        let good_columns = || index.columns().iter().enumerate().filter(|(at, _)| good[*at]);
        let features = || good_columns().filter_map(|(at, c)| Some((at, c.feature()?)));
        Rows {
            records: index.records(),
            offsets: column(index::RECORD_OFFSET).and_then(|at| index.fixed(at)),
            image: u32s(index::IMAGE_OFFSET).zip(u32s(index::IMAGE_LENGTH)),
            keys: column(index::KEY).and_then(|at| index.variable(at)),
            #[cfg(feature = "decode")]
            entries: column(index::JPEG_ENTRIES).and_then(|at| index.variable(at)),
            integers: features().filter_map(|(at, name)| Some((name, index.fixed(at)?))).collect(),
            floats: features().filter_map(|(at, name)| Some((name, index.fixed(at)?))).collect(),
            strings: features().filter_map(|(at, name)| Some((name, index.variable(at)?))).collect(),
            ranges: good_columns().filter_map(|(at, c)| Some((c.values_of()?, index.variable(at)?))).collect(),
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

    /// Returns the offset of a row's frame.
    pub(super) fn start(&self, row: u64) -> Option<u64> {
        self.offsets?.get(row)
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
            let range = image.and_then(|i| range_within(data, i));
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
        let feature = |name: &str| example.and_then(|e| e.get(name)).unwrap_or(Feature::Empty);
        for (name, column) in &self.integers {
            let found = match feature(name) {
                Feature::Int64(list) => at_most_one(list.iter()),
                other => missing(&other),
            };
            if found != Ok(column.get(row)) {
                differ("an integer feature", format!("{name} = {}", show(column.get(row))), show_found(found));
            }
        }
        for (name, column) in &self.floats {
            let found = match feature(name) {
                Feature::Float(list) => at_most_one(list.iter()),
                other => missing(&other),
            };
            let bits = |value: Option<f32>| value.map(f32::to_bits);
            if found.map(bits) != Ok(bits(column.get(row))) {
                differ("a float feature", format!("{name} = {}", show(column.get(row))), show_found(found));
            }
        }
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        for (name, column) in &self.strings {
            let found = match feature(name) {
                Feature::Bytes(list) => at_most_one(list.iter()),
                other => missing(&other),
            };
            if found != Ok(column.get(row)) {
                let (expected, found) = (show(text(column.get(row))), show_found(found.map(text)));
                differ("a byte string feature", format!("{name} = {expected}"), found);
            }
        }
        for (name, column) in &self.ranges {
            let indexed = ValueRange::decode(column.get(row).unwrap_or_default());
            let values = match feature(name) {
                Feature::Bytes(list) => Some(list),
                _ => None,
            };
            let found = values.iter().flat_map(|list| list.iter()).filter_map(|value| ValueRange::of(data, value));
            if let Some((number, indexed, found)) = first_difference(indexed, found) {
                differ("a value range", format!("{name}[{number}] = {}", show_range(indexed)), show_range(found));
            }
        }
        differences
    }
}

/// Returns the only value, `None` without one.
///
/// # Errors
/// Several values.
fn at_most_one<T>(mut values: impl Iterator<Item = T>) -> Result<Option<T>, &'static str> {
    let first = values.next();
    if values.next().is_some() { Err("several values") } else { Ok(first) }
}

/// Returns the value of a feature that is not of a column's type: none if it has none.
///
/// # Errors
/// Values of another type.
fn missing<T>(feature: &Feature<'_>) -> Result<Option<T>, &'static str> {
    if feature.count() == 0 { Ok(None) } else { Err("values of another type") }
}

/// Returns the first position at which two sequences differ, and their items there.
fn first_difference<T: PartialEq>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
) -> Option<(usize, Option<T>, Option<T>)> {
    for at in 0.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (a, b) if a != b => return Some((at, a, b)),
            _ => {}
        }
    }
    None
}

fn show_range(range: Option<ValueRange>) -> String {
    let text = |r: ValueRange| format!("{} bytes at {} with CRC {:08x}", r.length, r.offset, r.crc);
    show(range.map(text))
}

fn show_found<T: ToString>(found: Result<Option<T>, &'static str>) -> String {
    found.map_or_else(str::to_owned, show)
}

fn show<T: ToString>(value: Option<T>) -> String {
    value.map_or("none".to_owned(), |v| v.to_string())
}
