//! The arrays of a batch that are gathered in one piece of pinned memory and copied together: ids, `valid`, columns of numbers, and
//! what belongs to packed rows.

use crate::feed::{Column, PackedRows, Rows};
use crate::part::{Element, Part};
use shardtool_load::{PackedSamples, Values};

/// One of these arrays.
pub(crate) struct RowArray<'r> {
    pub(crate) part: Part<'r>,
    pub(crate) shape: Vec<usize>,
    /// Whether its length differs from batch to batch of as many rows.
    pub(crate) varies: bool,
    numbers: Numbers<'r>,
}

/// Numbers that are written as little-endian bytes.
enum Numbers<'r> {
    Bool(&'r [bool]),
    I32(Vec<i32>),
    I64(&'r [i64]),
    /// Each divided by a number.
    Quotients(&'r [i64], i64),
    U64(&'r [u64]),
    F32(&'r [f32]),
    F64(&'r [f64]),
    U8(&'r [u8]),
}

impl RowArray<'_> {
    pub(crate) fn element(&self) -> Element {
        match self.numbers {
            Numbers::Bool(_) => Element::Bool,
            Numbers::I32(_) => Element::I32,
            Numbers::I64(_) | Numbers::Quotients(..) => Element::I64,
            Numbers::U64(_) => Element::U64,
            Numbers::F32(_) => Element::F32,
            Numbers::F64(_) => Element::F64,
            Numbers::U8(_) => Element::U8,
        }
    }

    /// Writes the values into `target`, which is as long as they are.
    pub(crate) fn write(&self, target: &mut [u8]) {
        fn put<const N: usize>(target: &mut [u8], values: impl Iterator<Item = [u8; N]>) {
            target.as_chunks_mut().0.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        }
        match &self.numbers {
            Numbers::Bool(values) => put(target, values.iter().map(|value| [u8::from(*value)])),
            Numbers::I32(values) => put(target, values.iter().map(|value| value.to_le_bytes())),
            Numbers::I64(values) => put(target, values.iter().map(|value| value.to_le_bytes())),
            Numbers::Quotients(values, by) => put(target, values.iter().map(|value| (value / by).to_le_bytes())),
            Numbers::U64(values) => put(target, values.iter().map(|value| value.to_le_bytes())),
            Numbers::F32(values) => put(target, values.iter().map(|value| value.to_le_bytes())),
            Numbers::F64(values) => put(target, values.iter().map(|value| value.to_le_bytes())),
            Numbers::U8(values) => target.copy_from_slice(values),
        }
    }
}

/// Returns the arrays of a batch.
pub(crate) fn arrays(rows: &Rows) -> Vec<RowArray<'_>> {
    let array = |part, shape, varies, numbers| RowArray { part, shape, varies, numbers };
    let (n, samples) = (rows.valid.len(), rows.ids.len());
    let mut arrays = vec![
        array(Part::Ids, vec![samples], rows.packed.is_some(), Numbers::I64(&rows.ids)),
        array(Part::Valid, vec![n], false, Numbers::Bool(&rows.valid)),
    ];
    for Column { feature, values, width, item, .. } in &rows.columns {
        let part = Part::Column(feature);
        let (offsets, numbers, count) = match values {
            Values::Int64(values) => (None, Numbers::I64(values), values.len()),
            Values::Uint64(values) => (None, Numbers::U64(values), values.len()),
            Values::Float(values) => (None, Numbers::F32(values), values.len()),
            Values::Float64(values) => (None, Numbers::F64(values), values.len()),
            Values::RaggedInt64 { offsets, values } => (Some(offsets), Numbers::I64(values), values.len()),
            Values::RaggedUint64 { offsets, values } => (Some(offsets), Numbers::U64(values), values.len()),
            Values::RaggedFloat { offsets, values } => (Some(offsets), Numbers::F32(values), values.len()),
            Values::RaggedFloat64 { offsets, values } => (Some(offsets), Numbers::F64(values), values.len()),
            Values::RaggedUint8 { offsets, values } => (Some(offsets), Numbers::U8(values), values.len()),
            Values::Bytes { .. } => continue,
            _ => unreachable!("`{feature}` has values of a type without an array on devices"),
        };
        let Some(offsets) = offsets else {
            let shape = if *width == Some(1) { vec![n] } else { vec![n, count / n.max(1)] };
            arrays.push(array(part, shape, false, numbers));
            continue;
        };
        let group = item.iter().product::<usize>().max(1);
        let shape = [&[count / group], &item[..]].concat();
        arrays.push(array(part, shape, true, numbers));
        let quotients = Numbers::Quotients(offsets, group as i64);
        arrays.push(array(Part::Offsets(feature), vec![offsets.len()], false, quotients));
    }
    if let Some(PackedRows { offsets, tokens, capacity }) = &rows.packed {
        arrays.push(array(Part::SampleOffsets, vec![offsets.len()], false, Numbers::I64(offsets)));
        arrays.push(array(Part::Tokens, vec![tokens.len()], true, Numbers::I64(tokens)));
        let packed = PackedSamples { offsets, tokens, capacity: *capacity };
        let by_token = |part, values| array(part, vec![n, *capacity], false, Numbers::I32(values));
        arrays.push(by_token(Part::SegmentIds, packed.segment_ids()));
        arrays.push(by_token(Part::PositionIds, packed.position_ids()));
    }
    arrays
}

/// Turns the ragged columns of `padded`, with what follows the values of a row, into arrays of rows of `length` values.
pub(crate) fn pad(rows: &mut Rows, padded: &[(String, f64)], length: usize) {
    for column in &mut rows.columns {
        let fill = padded.iter().find(|(feature, _)| *feature == column.feature).map(|(_, fill)| *fill);
        if let Some(values) = fill.and_then(|fill| column.values.padded(length, fill)) {
            (column.values, column.width) = (values, Some(length));
        }
    }
}
