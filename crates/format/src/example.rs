//! `tf.train.Example`: parsed as views into a record's data, and written in canonical form.
//!
//! ```text
//! Example   { Features features = 1 }
//! Features  { repeated Entry feature = 1 }        an Entry is { string key = 1, Feature value = 2 }
//! Feature   { oneof BytesList = 1, FloatList = 2, Int64List = 3 }
//! BytesList { repeated bytes value = 1 }          FloatList, Int64List: packed, or one field a value
//! ```
//! Source: TensorFlow, `core/example/example.proto` and `feature.proto`.

use crate::manifest::DType;
use crate::wire::{Reader, Value, delimited_len, put_delimited, put_varint, varint_len};
use crate::{Error, Result};

/// A parsed Example, which borrows from the record's data. Parsing checks everything; reading values cannot fail or
/// panic. Names are `&str` in the data, so the data must not change while the Example exists: the contract of a mapped
/// file (`Access` in `shardtool-read`).
#[derive(Debug, Clone)]
pub struct Example<'a> {
    /// Sorted by name, names unique.
    features: Vec<(&'a str, Feature<'a>)>,
}

impl<'a> Example<'a> {
    /// Parses a record's data. Accepts any order of features, unpacked lists and unknown fields; of features with the
    /// same name the last one is used, as in TensorFlow.
    ///
    /// # Errors
    /// [`Error::MalformedExample`].
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let mut features = Vec::with_capacity(16);
        let mut example = Reader::new(data);
        while let Some((number, value)) = example.field()? {
            if let (1, Value::Delimited(mut entries)) = (number, value) {
                while let Some((number, value)) = entries.field()? {
                    if let (1, Value::Delimited(entry)) = (number, value) {
                        features.push(parse_entry(entry)?);
                    }
                }
            }
        }
        features.reverse();
        features.sort_by_key(|(name, _)| *name);
        features.dedup_by_key(|(name, _)| *name);
        Ok(Example { features })
    }

    /// Returns all features, in byte order of their names.
    pub fn features(&self) -> &[(&'a str, Feature<'a>)] {
        &self.features
    }

    /// Returns the feature of that name.
    pub fn get(&self, name: &str) -> Option<Feature<'a>> {
        let at = self.features.binary_search_by_key(&name, |(name, _)| name).ok()?;
        Some(self.features[at].1)
    }

    /// Returns the value of a feature that holds exactly one byte string.
    pub fn bytes(&self, name: &str) -> Option<&'a [u8]> {
        match self.get(name)? {
            Feature::Bytes(list) => list.single(),
            _ => None,
        }
    }

    /// Returns the value of a feature that holds exactly one integer.
    pub fn int64(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Feature::Int64(list) => list.single(),
            _ => None,
        }
    }
}

fn parse_entry<'a>(mut entry: Reader<'a>) -> Result<(&'a str, Feature<'a>)> {
    let (mut name, mut feature) = ("", Feature::Empty);
    while let Some((number, value)) = entry.field()? {
        match (number, value) {
            (1, Value::Delimited(key)) => {
                name = std::str::from_utf8(key.bytes()).map_err(|_| key.error("a feature name that is not UTF-8"))?;
            }
            (2, Value::Delimited(value)) => feature = parse_feature(value)?,
            _ => {}
        }
    }
    Ok((name, feature))
}

fn parse_feature<'a>(mut message: Reader<'a>) -> Result<Feature<'a>> {
    let (mut feature, mut kind, mut first) = (Feature::Empty, 0, message);
    loop {
        let before = message;
        let Some((number, value)) = message.field()? else { return Ok(feature) };
        let (Value::Delimited(mut list), 1..=3) = (value, number) else {
            return Err(before.error("a Feature that is not a list of bytes, floats or integers"));
        };
        loop {
            let offset = list.offset();
            let Some((field, value)) = list.field()? else { break };
            check_value(offset, number, field, value)?;
        }
        // As in every protobuf library, lists of one kind are joined and a list of another kind replaces the previous ones.
        if number != kind {
            (kind, first) = (number, before);
        }
        let raw = &first.bytes()[..message.offset() - first.offset()];
        feature = match kind {
            1 => Feature::Bytes(BytesList(raw)),
            2 => Feature::Float(FloatList(raw)),
            _ => Feature::Int64(Int64List(raw)),
        };
    }
}

fn check_value(offset: usize, kind: u64, field: u64, value: Value<'_>) -> Result<()> {
    match (kind, field, value) {
        (2, 1, Value::Delimited(packed)) if packed.bytes().len() % 4 != 0 => {
            Err(packed.error("packed floats that are not a multiple of four bytes"))
        }
        (1, 1, Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64)
        | (2, 1, Value::Varint(_) | Value::Fixed64)
        | (3, 1, Value::Fixed32(_) | Value::Fixed64) => {
            Err(Error::MalformedExample { offset, problem: "a value of another type than its list" })
        }
        (3, 1, Value::Delimited(mut packed)) => {
            while !packed.is_empty() {
                packed.varint()?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The values of one feature.
#[derive(Debug, Clone, Copy)]
pub enum Feature<'a> {
    /// No list: a missing feature, in TensorFlow's terms.
    Empty,
    /// Byte strings.
    Bytes(BytesList<'a>),
    /// 32-bit floats.
    Float(FloatList<'a>),
    /// 64-bit integers.
    Int64(Int64List<'a>),
}

impl Feature<'_> {
    /// Returns the type of the values; `None` without a list.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Feature::Empty => None,
            Feature::Bytes(_) => Some(DType::Bytes),
            Feature::Float(_) => Some(DType::Float),
            Feature::Int64(_) => Some(DType::Int64),
        }
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        match self {
            Feature::Empty => 0,
            Feature::Bytes(list) => list.iter().count(),
            Feature::Float(list) => list.iter().count(),
            Feature::Int64(list) => list.iter().count(),
        }
    }
}

/// Byte strings of a feature: one or more checked `BytesList` fields of the Feature message.
#[derive(Debug, Clone, Copy)]
pub struct BytesList<'a>(&'a [u8]);

impl<'a> BytesList<'a> {
    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        values(self.0).filter_map(|value| match value {
            Value::Delimited(bytes) => Some(bytes.bytes()),
            _ => None,
        })
    }

    /// Returns the value of a list that holds exactly one.
    pub fn single(&self) -> Option<&'a [u8]> {
        single(self.iter())
    }
}

/// Floats of a feature: one or more checked `FloatList` fields of the Feature message.
#[derive(Debug, Clone, Copy)]
pub struct FloatList<'a>(&'a [u8]);

impl<'a> FloatList<'a> {
    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = f32> + use<'a> {
        let float = |bytes: &[u8]| f32::from_le_bytes(*bytes.first_chunk().expect("four bytes"));
        values(self.0).flat_map(move |value| {
            let (one, packed) = match value {
                Value::Fixed32(bytes) => (Some(float(&bytes)), &[][..]),
                Value::Delimited(packed) => (None, packed.bytes()),
                _ => (None, &[][..]),
            };
            one.into_iter().chain(packed.chunks_exact(4).map(float))
        })
    }

    /// Returns the value of a list that holds exactly one.
    pub fn single(&self) -> Option<f32> {
        single(self.iter())
    }
}

/// Integers of a feature: one or more checked `Int64List` fields of the Feature message.
#[derive(Debug, Clone, Copy)]
pub struct Int64List<'a>(&'a [u8]);

impl<'a> Int64List<'a> {
    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + use<'a> {
        values(self.0).flat_map(|value| {
            let (one, mut packed) = match value {
                Value::Varint(value) => (Some(value as i64), Reader::new(&[])),
                Value::Delimited(packed) => (None, packed),
                _ => (None, Reader::new(&[])),
            };
            let rest = std::iter::from_fn(move || packed.varint().ok().map(|value| value as i64));
            one.into_iter().chain(rest)
        })
    }

    /// Returns the value of a list that holds exactly one.
    pub fn single(&self) -> Option<i64> {
        single(self.iter())
    }
}

/// Iterates over the `value` fields of all lists in `raw`, which parsing has checked.
fn values<'a>(raw: &'a [u8]) -> impl Iterator<Item = Value<'a>> + use<'a> {
    fields(Reader::new(raw))
        .filter_map(|(_, value)| match value {
            Value::Delimited(list) => Some(list),
            _ => None,
        })
        .flat_map(fields)
        .filter_map(|(number, value)| (number == 1).then_some(value))
}

fn fields<'a>(mut message: Reader<'a>) -> impl Iterator<Item = (u64, Value<'a>)> + use<'a> {
    std::iter::from_fn(move || message.field().ok()?)
}

fn single<T>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

/// Values of a feature to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Column<'a> {
    /// Byte strings.
    Bytes(&'a [&'a [u8]]),
    /// 32-bit floats.
    Float(&'a [f32]),
    /// 64-bit integers.
    Int64(&'a [i64]),
}

impl Column<'_> {
    /// Field number of the list in a Feature message.
    fn field(&self) -> u8 {
        match self {
            Column::Bytes(_) => 1,
            Column::Float(_) => 2,
            Column::Int64(_) => 3,
        }
    }

    /// Returns the length of the list message in bytes.
    fn list_len(&self) -> usize {
        match self {
            Column::Bytes(values) => values.iter().map(|v| delimited_len(v.len())).sum(),
            Column::Float([]) | Column::Int64([]) => 0,
            Column::Float(values) => delimited_len(4 * values.len()),
            Column::Int64(_) => delimited_len(self.packed_len()),
        }
    }

    fn packed_len(&self) -> usize {
        match self {
            Column::Int64(values) => values.iter().map(|v| varint_len(*v as u64)).sum(),
            Column::Float(values) => 4 * values.len(),
            Column::Bytes(_) => 0,
        }
    }

    fn put_list(&self, out: &mut Vec<u8>) {
        match self {
            Column::Bytes(values) => {
                for v in *values {
                    put_delimited(1, v.len(), out);
                    out.extend_from_slice(v);
                }
            }
            Column::Float([]) | Column::Int64([]) => {}
            Column::Float(values) => {
                put_delimited(1, self.packed_len(), out);
                values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
            }
            Column::Int64(values) => {
                put_delimited(1, self.packed_len(), out);
                values.iter().for_each(|v| put_varint(*v as u64, out));
            }
        }
    }
}

/// Appends the canonical Example of `features` to `out`: names in byte order, one entry each, packed numbers, minimal
/// varints, no unknown fields.
///
/// # Panics
/// If two features have the same name.
pub fn encode(features: &mut [(&str, Column<'_>)], out: &mut Vec<u8>) {
    features.sort_by_key(|(name, _)| *name);
    assert!(features.windows(2).all(|w| w[0].0 != w[1].0), "feature names are unique");
    let entry_len =
        |name: &str, column: &Column<'_>| delimited_len(name.len()) + delimited_len(delimited_len(column.list_len()));
    let all: usize = features.iter().map(|(name, column)| delimited_len(entry_len(name, column))).sum();
    out.reserve(delimited_len(all));
    put_delimited(1, all, out);
    for (name, column) in features {
        put_delimited(1, entry_len(name, column), out);
        put_delimited(1, name.len(), out);
        out.extend_from_slice(name.as_bytes());
        let list = column.list_len();
        put_delimited(2, delimited_len(list), out);
        put_delimited(column.field(), list, out);
        column.put_list(out);
    }
}

/// Returns the byte range of `part` in `whole`, such as of an image in its record; `None` if it is not a subslice.
pub fn range_within(whole: &[u8], part: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start..start + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_unpacked_and_joined_lists_and_uses_the_last_duplicate() {
        let feature = |name: &[u8], lists: &[u8]| {
            let mut entry = vec![];
            put_delimited(1, name.len(), &mut entry);
            entry.extend_from_slice(name);
            put_delimited(2, lists.len(), &mut entry);
            entry.extend_from_slice(lists);
            let mut out = vec![];
            put_delimited(1, entry.len(), &mut out);
            [out, entry].concat()
        };
        // int64 list with two unpacked values (tag 0x08), then a second int64 list with a packed one.
        let joined = feature(b"i", &[0x1a, 4, 0x08, 5, 0x08, 6, 0x1a, 3, 0x0a, 1, 7]);
        let replaced = feature(b"r", &[0x1a, 2, 0x08, 5, 0x0a, 3, 0x0a, 1, b'z']);
        let unpacked_float = feature(b"f", &[0x12, 5, 0x0d, 0, 0, 0x80, 0x3f]);
        let older = feature(b"d", &[0x1a, 2, 0x08, 1]);
        let newer = feature(b"d", &[0x1a, 2, 0x08, 2]);
        let features = [older, joined, replaced, unpacked_float, newer].concat();
        let mut data = vec![];
        put_delimited(1, features.len(), &mut data);
        data.extend(features);
        let example = Example::parse(&data).unwrap();
        let Some(Feature::Int64(list)) = example.get("i") else { panic!("i is int64") };
        assert_eq!(list.iter().collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(example.bytes("r"), Some(&b"z"[..]));
        let Some(Feature::Float(list)) = example.get("f") else { panic!("f is float") };
        assert_eq!(list.single(), Some(1.0));
        assert_eq!(example.int64("d"), Some(2));
        assert_eq!(example.features().len(), 4);
    }

    #[test]
    fn rejects_a_list_with_values_of_another_type() {
        // Entry "a" whose Int64List holds a 32-bit field.
        let data = [10, 14, 10, 12, 10, 1, b'a', 18, 7, 26, 5, 13, 0, 0, 0, 0];
        assert!(matches!(Example::parse(&data), Err(Error::MalformedExample { .. })));
    }

    proptest! {
        #[test]
        fn parses_random_bytes_without_panic(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(example) = Example::parse(&data) {
                example.features().iter().for_each(|(_, f)| { f.count(); });
            }
        }

        #[test]
        fn parses_what_it_writes(ints in proptest::collection::vec(any::<i64>(), 0..9),
                               floats in proptest::collection::vec(-1e9f32..1e9, 0..9),
                               strings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..4)) {
            let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
            let mut data = vec![];
            encode(&mut [("s", Column::Bytes(&strings)), ("f", Column::Float(&floats)), ("é", Column::Int64(&ints))], &mut data);
            let example = Example::parse(&data).unwrap();
            let names: Vec<_> = example.features().iter().map(|(n, _)| *n).collect();
            prop_assert_eq!(names, ["f", "s", "é"]);
            match (example.get("s"), example.get("f"), example.get("é")) {
                (Some(Feature::Bytes(s)), Some(Feature::Float(f)), Some(Feature::Int64(i))) => {
                    prop_assert_eq!(s.iter().collect::<Vec<_>>(), strings);
                    prop_assert_eq!(f.iter().collect::<Vec<_>>(), floats);
                    prop_assert_eq!(i.iter().collect::<Vec<_>>(), ints);
                }
                other => prop_assert!(false, "{:?}", other),
            }
            for cut in 0..data.len() {
                let _ = Example::parse(&data[..cut]);
            }
        }
    }
}
