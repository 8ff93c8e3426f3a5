//! Finds the features of arrays in a record.

use crate::example::{BytesList, Example, Feature, Int64List};

/// Suffixes of the features that describe an array.
const SHAPE: &str = "/shape";
const CHUNK: &str = "/chunk";
const DTYPE: &str = "/dtype";
const CODEC: &str = "/codec";

/// The features of one array in a record, not checked yet.
#[derive(Debug, Clone, Copy)]
pub struct ArrayFeatures<'a> {
    /// The chunks; `None` without any.
    pub chunks: Option<BytesList<'a>>,
    /// The value of `NAME/shape`.
    pub shape: Int64List<'a>,
    /// The value of `NAME/chunk`.
    pub chunk: Int64List<'a>,
    /// The value of `NAME/dtype`.
    pub dtype: &'a [u8],
    /// The value of `NAME/codec`.
    pub codec: &'a [u8],
}

impl<'a> ArrayFeatures<'a> {
    /// Returns the features of the array `name`; `None` if one of the four that describe it is absent, of another type,
    /// or has another number of values.
    pub fn of(example: &Example<'a>, name: &str) -> Option<Self> {
        let member = |suffix| format!("{name}{suffix}");
        let dtype = example.bytes(&member(DTYPE))?;
        let codec = example.bytes(&member(CODEC))?;
        let integers = |suffix| match example.get(&member(suffix))? {
            Feature::Int64(list) => Some(list),
            _ => None,
        };
        let (shape, chunk) = (integers(SHAPE)?, integers(CHUNK)?);
        let chunks = match example.get(name).unwrap_or(Feature::Empty) {
            Feature::Bytes(list) => Some(list),
            _ => None,
        };
        Some(ArrayFeatures { chunks, shape, chunk, dtype, codec })
    }

    /// Returns the number of chunks.
    pub fn chunk_count(&self) -> u64 {
        self.chunks.map_or(0, |list| list.iter().count() as u64)
    }
}

/// Returns the name of the array whose `NAME/codec` a feature is, if the other members are among features as well.
pub fn array_name(feature: &str, is_feature: impl Fn(&str) -> bool) -> Option<&str> {
    let name = feature.strip_suffix(CODEC)?;
    [SHAPE, CHUNK, DTYPE].iter().all(|suffix| is_feature(&format!("{name}{suffix}"))).then_some(name)
}
