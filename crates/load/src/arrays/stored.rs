//! The array of a record.

use crate::error::SampleError;
use shardtool_decode::{ArrayBox, Error, Limits, chunks_of_box, decode_array_box};
use shardtool_format::array::{ArrayDtype, ArrayFeatures, ArrayLayout, Codec, array_name};
use shardtool_format::example::{Example, Feature};
use shardtool_read::Record;

/// Dimensions of an array, at most: numpy has no more.
const MAX_DIMENSIONS: usize = 64;

/// An array whose layout was checked.
pub(crate) struct StoredArray<'r> {
    features: ArrayFeatures<'r>,
    shape: Vec<i64>,
    chunk: Vec<i64>,
    dtype: ArrayDtype,
    /// Bytes of memory that decompressing a chunk takes; 0 for chunks that are not compressed.
    pub(crate) scratch: u64,
}

impl<'r> StoredArray<'r> {
    /// Finds the array of a record.
    ///
    /// # Errors
    /// [`SampleError::NoArray`], [`SampleError::ArrayFeatures`], [`SampleError::ArrayDimensions`]; [`SampleError::Array`] if its
    /// layout is invalid, or a chunk exceeds the limits.
    pub(crate) fn of(example: &Example<'r>, feature: &str, limits: &Limits) -> Result<Self, SampleError> {
        let name = || feature.to_owned();
        let Some(features) = ArrayFeatures::of(example, feature) else {
            let has = |name: &str| !matches!(example.get(name), None | Some(Feature::Empty));
            let codec = format!("{feature}/codec");
            return Err(match has(&codec) && array_name(&codec, has).is_some() {
                true => SampleError::ArrayFeatures { feature: name() },
                false => SampleError::NoArray { feature: name() },
            });
        };
        let found = features.shape.iter().count().max(features.chunk.iter().count());
        if found > MAX_DIMENSIONS {
            return Err(SampleError::ArrayDimensions { feature: name(), found, allowed: MAX_DIMENSIONS });
        }
        let (shape, chunk): (Vec<_>, Vec<_>) = (features.shape.iter().collect(), features.chunk.iter().collect());
        let invalid = |source| SampleError::Array { feature: name(), source };
        let layout = ArrayLayout::new(&shape, &chunk, features.dtype, features.codec);
        let layout = layout.map_err(|source| invalid(Error::Array { source }))?;
        let sides = shape.iter().zip(&chunk).map(|(length, chunk)| *length.min(chunk) as u64);
        let scratch = match layout.codec() {
            Codec::Raw => 0,
            Codec::Zstd => sides.product::<u64>() * layout.dtype().bytes() as u64,
        };
        if scratch > limits.max_bytes {
            return Err(invalid(Error::ArrayLimit { needed: scratch, allowed: limits.max_bytes }));
        }
        let dtype = layout.dtype();
        Ok(StoredArray { features, shape, chunk, dtype, scratch })
    }

    /// Returns the type of the elements.
    pub(crate) fn dtype(&self) -> ArrayDtype {
        self.dtype
    }

    /// Returns the length of each dimension.
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.shape.iter().map(|length| *length as u64).collect()
    }

    /// Returns the whole array as a box.
    pub(crate) fn all(&self) -> ArrayBox {
        ArrayBox::contiguous(vec![0; self.shape.len()], self.shape())
    }

    /// Returns the bytes of its elements.
    pub(crate) fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.dtype.bytes() as u64, |bytes, length| bytes.saturating_mul(*length as u64))
    }

    /// Returns the bytes of its chunks.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.features.chunks.into_iter().flat_map(|list| list.iter()).map(|chunk| chunk.len() as u64).sum()
    }

    /// Returns the share of the array's chunks that a crop of this shape meets on average, at most 1.
    pub(crate) fn share(&self, crop: &[u64]) -> f64 {
        let lengths = self.shape.iter().zip(&self.chunk).zip(crop);
        let share = |((length, chunk), crop): ((&i64, &i64), &u64)| {
            ((*crop as f64 + *chunk as f64 - 1.0) / (*length).max(1) as f64).min(1.0)
        };
        lengths.map(share).product()
    }

    /// Returns the numbers of the chunks that a part of the array meets.
    pub(crate) fn chunks(&self, part: &ArrayBox) -> Vec<u64> {
        let layout = ArrayLayout::new(&self.shape, &self.chunk, self.features.dtype, self.features.codec);
        layout.map_or(vec![], |layout| chunks_of_box(&layout, &part.start, &part.size).collect())
    }

    /// Decodes a part of the array, a feature of `record`, into `out`. `scratch` holds a chunk. Returns the bytes of the chunks
    /// that were read, if the record was made without them.
    ///
    /// # Errors
    /// [`SampleError::Array`]; [`SampleError::Read`] if a chunk of a record that was made without its values is damaged.
    pub(crate) fn decode(
        &self,
        (record, feature): (&Record, &str),
        part: &ArrayBox,
        limits: &Limits,
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<u64, SampleError> {
        let ArrayFeatures { dtype, codec, chunks, .. } = self.features;
        let invalid = |source| SampleError::Array { feature: feature.to_owned(), source };
        let wrong = |source| invalid(Error::Array { source });
        let layout = ArrayLayout::new(&self.shape, &self.chunk, dtype, codec).map_err(wrong)?;
        layout.check_chunks(self.features.chunk_count()).map_err(wrong)?;
        if self.scratch > scratch.capacity() as u64 {
            // Growing a buffer would hold both the old and the new one for a moment.
            *scratch = vec![];
            scratch.reserve_exact(self.scratch as usize);
        }
        if record.unread_bytes() > 0 {
            chunks_of_box(&layout, &part.start, &part.size).for_each(|n| record.will_need_value(feature, n));
        }
        let (mut values, mut next) = (chunks.into_iter().flat_map(|list| list.iter()), 0);
        let mut read = 0;
        let value = |number: u64| {
            let value = values.nth((number - next) as usize).unwrap_or_default();
            next = number + 1;
            record.check_value(feature, number, value)?;
            read += value.len() as u64;
            Ok(value)
        };
        decode_array_box(&layout, part, value, limits, scratch, out).map_err(|error| match error {
            SampleError::Decode(source) => invalid(source),
            other => other,
        })?;
        Ok(if record.unread_bytes() > 0 { read } else { 0 })
    }
}
