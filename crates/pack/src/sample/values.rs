//! The values of one sample in one column.

use super::ListedClip;
use serde::{Deserialize, Serialize};
use shardtool_format::example::{Column, Feature};
use shardtool_format::manifest::DType;

/// The values of one sample in one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Values {
    /// No value: an empty cell, `null`, or an absent member.
    Missing,
    Int64(i64),
    Float(f32),
    Bytes(Box<[u8]>),
    Int64s(Box<[i64]>),
    Floats(Box<[f32]>),
    BytesList(Box<[Box<[u8]>]>),
    /// Coordinates in pixels, until the size of the image is known.
    Pixels(Box<[f32]>),
    /// A file, whose bytes are read when the record is made.
    File(Box<ListedFile>),
    /// The frames of a clip, which are read when the record is made.
    Clip(Box<ListedClip>),
}

/// A file as it was listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListedFile {
    /// Path relative to the listing's root.
    pub(crate) path: Box<str>,
    /// Length in bytes.
    pub(crate) size: u64,
    /// What [`Found::version`](crate::input::Found::version) was.
    pub(crate) version: i64,
}

impl ListedFile {
    /// Calls `visit` with everything that identifies the file, for a checksum.
    pub(super) fn each_bytes(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(self.path.as_bytes());
        visit(&self.size.to_le_bytes());
        visit(&self.version.to_le_bytes());
    }
}

impl Values {
    pub(crate) fn text(text: &str) -> Self {
        Values::Bytes(text.as_bytes().into())
    }

    /// Converts an Example's feature.
    pub(crate) fn of_feature(feature: Feature<'_>) -> Self {
        match feature {
            Feature::Empty => Values::Missing,
            Feature::Int64(list) => list.single().map_or_else(|| Values::Int64s(list.iter().collect()), Values::Int64),
            Feature::Float(list) => list.single().map_or_else(|| Values::Floats(list.iter().collect()), Values::Float),
            Feature::Bytes(list) => match list.single() {
                Some(bytes) => Values::Bytes(bytes.into()),
                None => Values::BytesList(list.iter().map(Box::from).collect()),
            },
        }
    }

    /// Returns the values' own type; `None` if there are no values.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self {
            Values::Missing => None,
            Values::Int64(_) | Values::Int64s(_) => Some(DType::Int64),
            Values::Float(_) | Values::Floats(_) | Values::Pixels(_) => Some(DType::Float),
            Values::Bytes(_) | Values::BytesList(_) | Values::File(_) | Values::Clip(_) => Some(DType::Bytes),
        }
    }

    /// Converts the values to a column's type: integers to floats, numbers to text, text to numbers. Returns `None` if
    /// they do not fit.
    pub(crate) fn fit(self, dtype: DType) -> Option<Self> {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::trim).map(str::to_owned);
        Some(match (self, dtype) {
            (values, dtype) if values.dtype().is_none_or(|own| own == dtype) => values,
            (Values::Int64(value), DType::Float) => Values::Float(value as f32),
            (Values::Int64s(list), DType::Float) => Values::Floats(list.iter().map(|v| *v as f32).collect()),
            (Values::Int64(value), DType::Bytes) => Values::text(&value.to_string()),
            (Values::Float(value), DType::Bytes) => Values::text(&value.to_string()),
            (Values::Bytes(bytes), DType::Int64) => Values::Int64(text(&bytes)?.parse().ok()?),
            (Values::Bytes(bytes), DType::Float) => Values::Float(text(&bytes)?.parse().ok()?),
            _ => return None,
        })
    }

    /// Returns the values that are byte strings.
    pub(crate) fn byte_strings(&self) -> Vec<&[u8]> {
        match self {
            Values::Bytes(bytes) => vec![bytes],
            Values::BytesList(list) => list.iter().map(|bytes| &**bytes).collect(),
            _ => vec![],
        }
    }

    /// Returns the values as an Example's feature of the column's type; `byte_strings` are those of these values.
    pub(crate) fn column<'a>(&'a self, dtype: DType, byte_strings: &'a [&'a [u8]]) -> Column<'a> {
        match (self, dtype) {
            (Values::Int64(value), _) => Column::Int64(std::slice::from_ref(value)),
            (Values::Int64s(values), _) => Column::Int64(values),
            (Values::Float(value), _) => Column::Float(std::slice::from_ref(value)),
            (Values::Floats(values) | Values::Pixels(values), _) => Column::Float(values),
            (Values::Bytes(_) | Values::BytesList(_) | Values::File(_) | Values::Clip(_), _)
            | (Values::Missing, DType::Bytes) => Column::Bytes(byte_strings),
            (Values::Missing, DType::Int64) => Column::Int64(&[]),
            (Values::Missing, DType::Float) => Column::Float(&[]),
        }
    }

    /// Calls `visit` with the values' bytes, for a checksum.
    pub(crate) fn each_bytes(&self, visit: &mut dyn FnMut(&[u8])) {
        match self {
            Values::Missing => visit(&[]),
            Values::Int64(v) => visit(&v.to_le_bytes()),
            Values::Float(v) => visit(&v.to_le_bytes()),
            Values::Bytes(v) => visit(v),
            Values::Int64s(list) => list.iter().for_each(|v| visit(&v.to_le_bytes())),
            Values::Floats(list) | Values::Pixels(list) => list.iter().for_each(|v| visit(&v.to_le_bytes())),
            Values::BytesList(list) => list.iter().for_each(|v| visit(v)),
            Values::File(file) => file.each_bytes(visit),
            Values::Clip(clip) => clip.each_bytes(visit),
        }
    }
}
