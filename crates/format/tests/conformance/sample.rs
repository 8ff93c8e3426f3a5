//! Records: their bytes, and what a reader must deliver of them.

use crate::bytes::crc::sum;
use crate::bytes::example::{self, List};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A record, as its bytes and as the values that they encode.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) data: Vec<u8>,
    /// Absent for an opaque record.
    pub(crate) features: Option<BTreeMap<String, List>>,
    /// Expected members `pixels` and `arrays`.
    pub(crate) pixels: Option<Value>,
    pub(crate) arrays: BTreeMap<String, Value>,
    /// The row of `jpeg_entries`.
    pub(crate) entries: Vec<u8>,
}

impl Sample {
    /// A record in canonical form.
    pub(crate) fn new(features: impl IntoIterator<Item = (impl Into<String>, List)>) -> Self {
        let features: BTreeMap<String, List> = features.into_iter().map(|(name, list)| (name.into(), list)).collect();
        let pairs: Vec<_> = features.clone().into_iter().collect();
        Sample::stored(example::example(&pairs), features)
    }

    /// A record with these bytes, which encode these features.
    pub(crate) fn stored(data: Vec<u8>, features: BTreeMap<String, List>) -> Self {
        Sample { features: Some(features), ..Sample::opaque(data) }
    }

    /// A record that is not an Example.
    pub(crate) fn opaque(data: Vec<u8>) -> Self {
        Sample { data, features: None, pixels: None, arrays: BTreeMap::new(), entries: vec![] }
    }

    /// Adds the pixels of its image.
    pub(crate) fn with_pixels(self, pixels: &[u8]) -> Self {
        Sample { pixels: Some(json!(sum(pixels))), ..self }
    }

    /// Adds the error of its pixels.
    pub(crate) fn with_wrong_pixels(self, error: &str) -> Self {
        Sample { pixels: Some(json!({"error": error})), ..self }
    }

    /// Adds the values of an array, in C order.
    pub(crate) fn with_array(mut self, name: &str, shape: &[i64], dtype: &str, data: &[u8]) -> Self {
        let shape: Vec<String> = shape.iter().map(i64::to_string).collect();
        self.arrays.insert(name.to_owned(), json!({"shape": shape, "dtype": dtype, "data": sum(data)}));
        self
    }

    /// Adds the error of an array.
    pub(crate) fn with_wrong_array(mut self, name: &str, error: &str) -> Self {
        self.arrays.insert(name.to_owned(), json!({"error": error}));
        self
    }

    pub(crate) fn with_entries(self, entries: &[u8]) -> Self {
        Sample { entries: entries.to_vec(), ..self }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&List> {
        self.features.as_ref()?.get(name)
    }

    /// Returns the value of a feature that is exactly one byte string.
    pub(crate) fn string(&self, name: &str) -> Option<&[u8]> {
        match self.get(name)?.strings() {
            [one] => Some(one),
            _ => None,
        }
    }

    fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            List::Int64(values) if values.len() == 1 => Some(values[0]),
            _ => None,
        }
    }

    /// Returns the offset of each value of a bytes feature in the record. Values are found by their bytes, which must
    /// occur once after the feature's name.
    pub(crate) fn offsets(&self, name: &str) -> Vec<usize> {
        let find = |part: &[u8], from: usize| {
            let places: Vec<_> =
                (from..=self.data.len() - part.len()).filter(|at| self.data[*at..].starts_with(part)).collect();
            assert!(!places.is_empty(), "{part:?} is part of the record");
            places[0]
        };
        let mut at = match self.data.is_empty() {
            true => 0,
            false => find(&example::delimited(1, name.as_bytes()), 0) + 2 + name.len(),
        };
        let mut offsets = vec![];
        for value in self.get(name).map(List::strings).unwrap_or_default() {
            let stored = example::delimited(1, value);
            let begin = find(&stored, at);
            offsets.push(begin + stored.len() - value.len());
            at = begin + stored.len();
        }
        offsets
    }

    pub(crate) fn key(&self, file: &str, row: usize) -> Vec<u8> {
        let named = self.string("image/key").or(self.string("image/filename"));
        named.map_or_else(|| format!("{file}#{row}").into_bytes(), <[u8]>::to_vec)
    }

    /// Returns the class id for the dataset's label.
    pub(crate) fn class(&self, label: Option<&str>, offset: i64, classes: usize) -> Option<i64> {
        let id = self.int(label?)?.checked_sub(offset).filter(|id| *id >= 0)?;
        (classes == 0 || id < classes as i64).then_some(id)
    }

    /// Returns the expected member `features`.
    pub(crate) fn feature_lines(&self) -> Option<Value> {
        let features = self.features.as_ref()?.iter();
        let features =
            features.map(|(name, list)| (name.clone(), json!({"type": list.type_name(), "values": values(list)})));
        Some(Value::Object(features.collect()))
    }
}

fn values(list: &List) -> Vec<String> {
    match list {
        List::Bytes(values) => values.iter().map(|value| sum(value)).collect(),
        List::Float(values) => values.iter().map(|bits| format!("{bits:08x}")).collect(),
        List::Int64(values) => values.iter().map(i64::to_string).collect(),
    }
}
