//! Arrays of any number of dimensions, from files or from a program: stored in chunks, as `format-spec.md` says.
//!
//! | module | responsibility |
//! |---|---|
//! | `file` | reads a file of any of these kinds, and PNG and TIFF |
//! | `npy` | reads `.npy` files |
//! | `pfm` | reads Portable Float Map files |
//! | `flow` | reads `.flo` and `.dpt` files |
//! | `vectors` | converts optical flow of all codings to one |

mod file;
mod flow;
pub(crate) mod npy;
mod pfm;
mod vectors;

use crate::error::ArrayRefusal;
use crate::sample::Values;
use shardtool_decode::{Limits, encode_array};
use shardtool_format::array::{ArrayDtype, ArrayLayout, Codec};
use shardtool_format::manifest::DType;
use std::borrow::Cow;

pub(crate) use file::EXTENSIONS;

/// Bytes of a chunk, at most, unless its lengths are given. Larger chunks compress no better; a crop decompresses whole chunks.
const CHUNK_BYTES: u64 = 512 << 10;

/// A column whose values are arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayColumn {
    /// Name of the feature.
    pub name: String,
    /// Lengths of a chunk, one for each dimension; `None` for a whole dimension. Empty: chunks of at most 512 KiB whose sides
    /// are about equal.
    pub chunk: Vec<Option<u64>>,
    /// How chunks are coded. Default: zstd.
    pub codec: Codec,
    /// Level of zstd, 1 to 22. Default: 3.
    pub level: i32,
    /// Whether files are optical flow, which is stored as `[H, W, 2]` floats, NaN where it is not known: `.flo`, PFM with a third
    /// channel of zeros, PNG as KITTI codes it, or an array of this shape. Default: elements are stored as files have them.
    pub flow: bool,
}

impl ArrayColumn {
    /// Returns a column with chunks of the default size, compressed with zstd.
    pub fn new(name: impl Into<String>) -> Self {
        ArrayColumn { name: name.into(), chunk: vec![], codec: Codec::Zstd, level: 3, flow: false }
    }

    /// Returns such a column of optical flow.
    pub fn of_flow(name: impl Into<String>) -> Self {
        ArrayColumn { flow: true, ..Self::new(name) }
    }

    /// Parses a file of the column, of this name.
    ///
    /// # Errors
    /// [`ArrayRefusal`].
    pub(crate) fn parse<'f>(&self, file: &'f [u8], name: &str, limits: &Limits) -> Result<Array<'f>, ArrayRefusal> {
        let array = file::parse(file, name, limits)?;
        if self.flow { vectors::of_flow(array) } else { Ok(array) }
    }

    /// Returns the features of the array, with their types: the chunks, and what describes them.
    pub(crate) fn features(&self) -> [(String, DType); 5] {
        let feature = |suffix, dtype| (format!("{}{suffix}", self.name), dtype);
        [
            (self.name.clone(), DType::Bytes),
            feature("/shape", DType::Int64),
            feature("/chunk", DType::Int64),
            feature("/dtype", DType::Bytes),
            feature("/codec", DType::Bytes),
        ]
    }

    /// Encodes an array as the values of [`ArrayColumn::features`].
    pub(crate) fn encode(&self, array: &Array<'_>) -> Result<[Values; 5], ArrayRefusal> {
        let shape = array.shape.iter().map(|length| i64::try_from(*length).ok()).collect::<Option<Vec<_>>>();
        let shape = shape.ok_or(ArrayRefusal::TooLarge)?;
        if shape.is_empty() {
            return Err(ArrayRefusal::NoDimension);
        }
        let chunk: Vec<i64> = self.chunk_of(&array.shape, array.dtype)?.iter().map(|length| *length as i64).collect();
        let (dtype, codec) = (array.dtype.name().as_bytes(), self.codec.name().as_bytes());
        let layout = ArrayLayout::new(&shape, &chunk, dtype, codec)?;
        let chunks = encode_array(&layout, &array.data, self.level)?;
        let chunks = chunks.into_iter().map(Vec::into_boxed_slice).collect();
        let text = |text: &[u8]| Values::Bytes(text.into());
        Ok([
            Values::BytesList(chunks),
            Values::Int64s(shape.into()),
            Values::Int64s(chunk.into()),
            text(dtype),
            text(codec),
        ])
    }

    /// Returns the lengths of a chunk, none longer than the array.
    fn chunk_of(&self, shape: &[u64], dtype: ArrayDtype) -> Result<Vec<u64>, ArrayRefusal> {
        // A chunk has at least one element, also in an array without elements.
        let whole: Vec<u64> = shape.iter().map(|length| (*length).max(1)).collect();
        if self.chunk.is_empty() {
            return Ok(default_chunk(whole, dtype));
        }
        if self.chunk.len() != shape.len() {
            return Err(ArrayRefusal::Dimensions { array: shape.to_vec(), chunk: self.chunk.len() });
        }
        Ok(self
            .chunk
            .iter()
            .zip(whole)
            .map(|(chunk, whole)| chunk.map_or(whole, |chunk| chunk.clamp(1, whole)))
            .collect())
    }

    /// Returns the text that plan files have.
    pub(crate) fn describe(&self) -> String {
        let lengths = self.chunk.iter().map(|length| length.map_or("*".to_owned(), |length| length.to_string()));
        let chunk = lengths.collect::<Vec<_>>().join("x");
        let flow = if self.flow { ":flow" } else { "" };
        format!("{}:{chunk}:{}:{}{flow}", self.name, self.codec.name(), self.level)
    }
}

/// Halves the longest dimension until a chunk is small enough.
fn default_chunk(mut chunk: Vec<u64>, dtype: ArrayDtype) -> Vec<u64> {
    let bytes = |chunk: &[u64]| chunk.iter().fold(dtype.bytes() as u64, |bytes, n| bytes.saturating_mul(*n));
    while bytes(&chunk) > CHUNK_BYTES {
        let Some(longest) = chunk.iter_mut().max() else { break };
        *longest = longest.div_ceil(2);
    }
    chunk
}

/// Returns the number of bytes of a shape.
///
/// # Errors
/// [`ArrayRefusal::TooLarge`].
fn bytes_of(shape: &[u64], element: usize) -> Result<u64, ArrayRefusal> {
    shape.iter().try_fold(element as u64, |bytes, length| bytes.checked_mul(*length)).ok_or(ArrayRefusal::TooLarge)
}

/// An array to store.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    /// The length of each dimension.
    pub shape: Vec<u64>,
    /// The type of the elements.
    pub dtype: ArrayDtype,
    /// The elements, little-endian and in C order.
    pub data: Cow<'a, [u8]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_chunks_are_small_and_about_cubic() {
        let chunk = |shape: &[u64], dtype| default_chunk(shape.to_vec(), dtype);
        assert_eq!(chunk(&[300, 512, 512], ArrayDtype::I16), [38, 64, 64]);
        assert_eq!(chunk(&[64, 64, 64], ArrayDtype::I16), [64, 64, 64]);
        assert_eq!(chunk(&[480_000], ArrayDtype::F32), [120_000]);
        assert_eq!(chunk(&[1, u64::MAX], ArrayDtype::F64).iter().product::<u64>(), 1 << 16);
    }

    #[test]
    fn chunks_are_clamped_to_the_array() {
        let mut column = ArrayColumn::new("ct");
        column.chunk = vec![Some(8), None, Some(64)];
        assert_eq!(column.chunk_of(&[10, 20, 30], ArrayDtype::U8).unwrap(), [8, 20, 30]);
        assert_eq!(column.chunk_of(&[0, 0, 30], ArrayDtype::U8).unwrap(), [1, 1, 30]);
        assert!(matches!(column.chunk_of(&[10], ArrayDtype::U8), Err(ArrayRefusal::Dimensions { chunk: 3, .. })));
        assert_eq!(column.describe(), "ct:8x*x64:zstd:3");
    }
}
