//! `tf.train.Example` and `tf.train.SequenceExample`: parsed as views into a record's data; Examples are also written, in
//! canonical form.
//!
//! ```text
//! Example         { Features features = 1 }
//! Features        { repeated Entry feature = 1 }       an Entry is { string key = 1, Feature value = 2 }
//! Feature         { oneof BytesList = 1, FloatList = 2, Int64List = 3 }
//! BytesList       { repeated bytes value = 1 }         FloatList, Int64List: packed, or one field a value
//! SequenceExample { Features context = 1, FeatureLists feature_lists = 2 }
//! FeatureLists    { repeated Entry feature_list = 1 }  an Entry is { string key = 1, FeatureList value = 2 }
//! FeatureList     { repeated Feature feature = 1 }     one for each step
//! ```
//! Source: TensorFlow, `core/example/example.proto` and `feature.proto`.

mod feature;
mod logical;
mod parse;
mod sequence;
#[cfg(test)]
mod sequence_tests;
#[cfg(test)]
mod tests;
mod write;

pub use feature::{BytesList, Feature, FloatList, Int64List};
pub use logical::{LOGICAL_BYTES, Logical};
pub use sequence::has_feature_lists;
pub use write::{Column, encode, encode_feature};

use crate::Result;
use std::borrow::Cow;

/// The protobuf message that a dataset's records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Message {
    /// `tf.train.Example`.
    #[default]
    Example,
    /// `tf.train.SequenceExample`.
    SequenceExample,
}

impl Message {
    /// Parses a record's data.
    ///
    /// # Errors
    /// [`crate::Error::MalformedExample`].
    pub fn parse(self, data: &[u8]) -> Result<Example<'_>> {
        match self {
            Message::Example => Example::parse(data),
            Message::SequenceExample => Example::parse_sequence(data),
        }
    }
}

/// A parsed Example or SequenceExample, which borrows from the record's data. Parsing checks everything; reading values
/// cannot fail or panic. Names are `&str` in the data, so the data must not change while the Example exists: the contract
/// of a mapped file (`Access` in `shardtool-read`).
#[derive(Debug, Clone)]
pub struct Example<'a> {
    /// Sorted by name, names unique.
    features: Vec<(Cow<'a, str>, Feature<'a>)>,
}

/// Features up to which one is found by looking at each: most names differ in length already.
const SEARCHED_IN_ORDER: usize = 16;

impl<'a> Example<'a> {
    /// Returns all features, in byte order of their names.
    pub fn features(&self) -> &[(Cow<'a, str>, Feature<'a>)] {
        &self.features
    }

    /// Replaces the feature of a name, or adds it; `None` removes it.
    pub fn set(&mut self, name: &'a str, feature: Option<Feature<'a>>) {
        let at = self.features.binary_search_by(|(there, _)| (**there).cmp(name));
        match (at, feature) {
            (Ok(at), Some(feature)) => self.features[at].1 = feature,
            (Ok(at), None) => drop(self.features.remove(at)),
            (Err(at), Some(feature)) => self.features.insert(at, (Cow::Borrowed(name), feature)),
            (Err(_), None) => {}
        }
    }

    /// Returns the feature of that name.
    pub fn get(&self, name: &str) -> Option<Feature<'a>> {
        let at = if self.features.len() <= SEARCHED_IN_ORDER {
            self.features.iter().position(|(there, _)| **there == *name)?
        } else {
            self.features.binary_search_by(|(there, _)| (**there).cmp(name)).ok()?
        };
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

    /// Returns the value of a feature that holds exactly one float.
    pub fn float(&self, name: &str) -> Option<f32> {
        match self.get(name)? {
            Feature::Float(list) => list.single(),
            _ => None,
        }
    }

    /// Returns the byte strings of a feature; `None` if the Example has no such feature, or one of another type.
    pub fn byte_strings(&self, name: &str) -> Option<Vec<&'a [u8]>> {
        match self.get(name)? {
            Feature::Bytes(list) => Some(list.iter().collect()),
            _ => None,
        }
    }

    /// Returns the integers of a feature; `None` if the Example has no such feature, or one of another type.
    pub fn int64s(&self, name: &str) -> Option<Vec<i64>> {
        match self.get(name)? {
            Feature::Int64(list) => Some(list.iter().collect()),
            _ => None,
        }
    }

    /// Returns the floats of a feature, such as boxes or an embedding; `None` if the Example has no such feature, or one of another
    /// type.
    ///
    /// ```
    /// use shardtool_format::example::{Column, Example, encode};
    ///
    /// let mut data = vec![];
    /// encode(&mut [("image/object/bbox", Column::Float(&[0.1, 0.2, 0.5, 0.9]))], &mut data);
    /// let example = Example::parse(&data)?;
    /// assert_eq!(example.floats("image/object/bbox"), Some(vec![0.1, 0.2, 0.5, 0.9]));
    /// assert_eq!(example.int64s("image/object/bbox"), None);
    /// # Ok::<(), shardtool_format::Error>(())
    /// ```
    pub fn floats(&self, name: &str) -> Option<Vec<f32>> {
        match self.get(name)? {
            Feature::Float(list) => Some(list.iter().collect()),
            _ => None,
        }
    }
}

/// Returns the byte range of `part` in `whole`, such as of an image in its record; `None` if it is not a subslice.
pub fn range_within(whole: &[u8], part: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start..start + part.len())
}
