//! The values of one sample in one column.

use super::{ListedClip, Number};
use serde::{Deserialize, Serialize};
use shardtool_format::example::{Column, Feature, LOGICAL_BYTES, Logical};
use shardtool_format::manifest::DType;
use std::str::FromStr;

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
    /// Numbers of a text that has no types; a column's type is inferred from all of its numbers.
    Numbers(Box<[Number]>),
    /// Numbers of a logical type, as they are stored.
    Logical(DType, Box<[[u8; LOGICAL_BYTES]]>),
    /// Coordinates in pixels, until the size of the image is known.
    Pixels(Box<[f32]>),
    /// Coordinates as fractions of the annotated image, until it is known which image that is.
    Fractions(Box<[f32]>),
    /// Polygons of each object in such fractions, as JSON text.
    FractionPolygons(Box<[Box<[u8]>]>),
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

    /// Returns whether it is a list without elements.
    pub(crate) fn is_empty_list(&self) -> bool {
        match self {
            Values::Int64s(list) => list.is_empty(),
            Values::BytesList(list) => list.is_empty(),
            Values::Floats(list) => list.is_empty(),
            _ => false,
        }
    }

    /// Returns numbers of a logical type.
    pub(crate) fn logical<T: Logical>(numbers: impl IntoIterator<Item = T>) -> Self {
        Values::Logical(T::DTYPE, numbers.into_iter().map(T::to_stored).collect())
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

    /// Returns the values' own type; `None` if there are no values, or numbers without a type.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self {
            Values::Missing | Values::Numbers(_) => None,
            Values::Logical(dtype, _) => Some(*dtype),
            Values::Int64(_) | Values::Int64s(_) => Some(DType::Int64),
            Values::Float(_) | Values::Floats(_) | Values::Pixels(_) | Values::Fractions(_) => Some(DType::Float),
            Values::Bytes(_)
            | Values::BytesList(_)
            | Values::FractionPolygons(_)
            | Values::File(_)
            | Values::Clip(_) => Some(DType::Bytes),
        }
    }

    /// Converts the values to a column's type: integers to floats, one number to text, text to a number. Returns `None` if
    /// they do not fit. Only a declared type rounds numbers: an inferred one holds all of its column. None makes infinity of a number.
    pub(crate) fn fit(self, dtype: DType) -> Option<Self> {
        if let Values::Missing = self {
            return Some(self);
        }
        if self.dtype() == Some(dtype) {
            return Some(self);
        }
        if let Values::Bytes(bytes) = &self {
            let text = std::str::from_utf8(bytes).ok()?.trim();
            return Some(match dtype {
                DType::Int64 => Values::Int64(text.parse().ok()?),
                DType::Float => Values::Float(parsed(text)?),
                DType::Uint64 => Values::logical([text.parse::<u64>().ok()?]),
                DType::Float64 => Values::logical([parsed::<f64>(text)?]),
                DType::Bytes => unreachable!("the values' own type"),
            });
        }
        if let (Values::Float(value), DType::Bytes) = (&self, dtype) {
            return Some(Values::text(&value.to_string()));
        }
        let single = matches!(self, Values::Int64(_) | Values::Float(_));
        let numbers = self.numbers()?;
        let floats = || numbers.iter().map(|number| number.to_f64());
        Some(match (dtype, &*numbers) {
            (DType::Bytes, [number]) => Values::text(&number.to_string()),
            (DType::Bytes, _) => return None,
            (DType::Float, [number]) if single => Values::Float(float32(number.to_f64())?),
            (DType::Float, _) => Values::Floats(floats().map(float32).collect::<Option<_>>()?),
            (DType::Float64, _) => Values::logical(floats()),
            (DType::Int64, _) => {
                let ints = numbers.iter().map(|number| i64::try_from(number.int()?).ok());
                Values::Int64s(ints.collect::<Option<_>>()?)
            }
            (DType::Uint64, _) => {
                let ints = numbers.iter().map(|number| u64::try_from(number.int()?).ok());
                Values::logical(ints.collect::<Option<Vec<u64>>>()?)
            }
        })
    }

    /// As [`Values::fit`], but refuses numbers that the type would round.
    pub(crate) fn fit_exactly(self, dtype: DType) -> Option<Self> {
        let Some(numbers) = self.numbers() else { return self.fit(dtype) };
        let ints = matches!(dtype, DType::Int64 | DType::Uint64) && self.dtype() != Some(dtype);
        let numbers: Box<[_]> = numbers.into_iter().map(|number| if ints { number.whole() } else { number }).collect();
        let exact = numbers.iter().all(|number| number.fits(dtype));
        let values = if ints { Values::Numbers(numbers) } else { self };
        if exact { values.fit(dtype) } else { None }
    }

    /// Returns the numbers; `None` if the values are not numbers.
    pub(crate) fn numbers(&self) -> Option<Vec<Number>> {
        let float = |value: &f32| Number::Float64((*value).into());
        Some(match self {
            Values::Int64(value) => vec![Number::Int64(*value)],
            Values::Int64s(list) => list.iter().copied().map(Number::Int64).collect(),
            Values::Float(value) => vec![float(value)],
            Values::Floats(list) => list.iter().map(float).collect(),
            Values::Numbers(list) => list.to_vec(),
            Values::Logical(DType::Uint64, list) => {
                list.iter().map(|stored| Number::of_uint64(u64::from_le_bytes(*stored))).collect()
            }
            Values::Logical(_, list) => {
                list.iter().map(|stored| Number::Float64(f64::from_le_bytes(*stored))).collect()
            }
            _ => return None,
        })
    }

    /// Returns the values that are byte strings.
    pub(crate) fn byte_strings(&self) -> Vec<&[u8]> {
        match self {
            Values::Bytes(bytes) => vec![bytes],
            Values::BytesList(list) => list.iter().map(|bytes| &**bytes).collect(),
            Values::Logical(_, list) => list.iter().map(<[u8; LOGICAL_BYTES]>::as_slice).collect(),
            _ => vec![],
        }
    }

    /// Returns the values as an Example's feature of the column's type; `byte_strings` are those of these values.
    pub(crate) fn column<'a>(&'a self, dtype: DType, byte_strings: &'a [&'a [u8]]) -> Column<'a> {
        match (self, dtype.stored()) {
            (Values::Int64(value), _) => Column::Int64(std::slice::from_ref(value)),
            (Values::Int64s(values), _) => Column::Int64(values),
            (Values::Float(value), _) => Column::Float(std::slice::from_ref(value)),
            (Values::Floats(values) | Values::Pixels(values) | Values::Fractions(values), _) => Column::Float(values),
            (Values::Missing, DType::Int64) => Column::Int64(&[]),
            (Values::Missing, DType::Float) => Column::Float(&[]),
            (Values::Numbers(_), _) => unreachable!("numbers have their column's type before a record is made (`fit`)"),
            _ => Column::Bytes(byte_strings),
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
            Values::Floats(list) | Values::Pixels(list) | Values::Fractions(list) => {
                list.iter().for_each(|v| visit(&v.to_le_bytes()))
            }
            Values::BytesList(list) | Values::FractionPolygons(list) => list.iter().for_each(|v| visit(v)),
            Values::Numbers(list) => list.iter().for_each(|v| visit(v.to_string().as_bytes())),
            Values::Logical(_, list) => list.iter().for_each(|v| visit(v)),
            Values::File(file) => file.each_bytes(visit),
            Values::Clip(clip) => clip.each_bytes(visit),
        }
    }
}

/// Parses a number; `None` for one beyond the range of the type.
fn parsed<F: FromStr + Into<f64> + Copy>(text: &str) -> Option<F> {
    let value: F = text.parse().ok()?;
    let infinity = text.trim_start_matches(['+', '-']).starts_with(['i', 'I']);
    (infinity || !value.into().is_infinite()).then_some(value)
}

/// Rounds a number; `None` for one beyond the range of `f32`.
fn float32(value: f64) -> Option<f32> {
    let rounded = value as f32;
    (rounded.is_infinite() == value.is_infinite()).then_some(rounded)
}
