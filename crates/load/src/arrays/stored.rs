//! The array of a record.

use crate::bad_samples::SampleError;
use shardtool_decode::{ArrayBox, Error, Limits, decode_array_box_of};
use shardtool_format::array::{ArrayDtype, ArrayFeatures, ArrayLayout, Codec, array_name};
use shardtool_format::example::{Example, Feature};

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

    /// Decodes a part of the array into `out`. `chunk` is scratch.
    pub(crate) fn decode(
        &self,
        part: &ArrayBox,
        limits: &Limits,
        chunk: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let ArrayFeatures { dtype, codec, chunks, .. } = self.features;
        let layout = ArrayLayout::new(&self.shape, &self.chunk, dtype, codec);
        let layout = layout.map_err(|source| Error::Array { source })?;
        if self.scratch > chunk.capacity() as u64 {
            // Growing a buffer would hold both the old and the new one for a moment.
            *chunk = vec![];
            chunk.reserve_exact(self.scratch as usize);
        }
        let values = || chunks.into_iter().flat_map(|list| list.iter());
        decode_array_box_of(&layout, part, values, limits, chunk, out)
    }
}
