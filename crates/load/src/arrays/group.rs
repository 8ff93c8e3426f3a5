//! What the loader knows of a group of arrays, of whichever kind.

use super::positions::Positions;
use super::stored::StoredArray;
use crate::buffer::RowMut;
use crate::error::{ArrayProblem, Error, SampleError};
use crate::image::SampleDraws;
use crate::planes::Planes;
use shardtool_decode::Limits;
use shardtool_format::array::ArrayDtype;
use shardtool_read::Record;
use std::sync::atomic::AtomicBool;

/// Bytes of one array of a batch, at most: 2⁴⁸, so that sums and products of several batches do not overflow.
const MAX_BATCH_BYTES: u64 = 1 << 48;

/// Arrays of a record that share what is drawn for it.
pub(crate) trait Group: Send + Sync {
    /// Returns the features, whose arrays a record has.
    fn features(&self) -> &[String];

    /// Returns the arrays of a batch: those of the features, then what describes them.
    fn outputs(&self) -> &[ArrayOutput];

    /// Returns whether rows need some chunks of the arrays only.
    fn is_partial(&self) -> bool;

    /// Returns the share of an array's chunks that a row needs on average, at most 1.
    fn share(&self, array: &StoredArray<'_>) -> f64;

    /// Returns the scratch that an array takes in addition to a chunk.
    fn whole(&self, array: &StoredArray<'_>) -> u64;

    /// Returns the dimensions that follow the geometry of the record's image, if any do.
    fn image_axes(&self) -> Option<(usize, usize)> {
        None
    }

    /// Checks the arrays of a record, one of each feature, and draws what is done to them.
    ///
    /// # Errors
    /// If one does not have the type and shape that its row needs.
    fn plan<'g>(
        &'g self,
        arrays: Vec<StoredArray<'g>>,
        limits: &Limits,
        draws: SampleDraws,
    ) -> Result<Box<dyn PlannedGroup + 'g>, SampleError>;
}

/// The arrays of a record, with what was drawn for them.
pub(crate) trait PlannedGroup {
    /// Returns the arrays, one of each feature.
    fn arrays(&self) -> &[StoredArray<'_>];

    /// Returns the numbers of the chunks that are decoded of the array at this place.
    fn chunks(&self, at: usize) -> Vec<u64>;

    /// Decodes the arrays of `record` into their rows, one of each output. Returns the bytes of values that were read, of a record
    /// that was made without them.
    fn write(
        &self,
        record: &Record,
        limits: &Limits,
        scratch: &mut ArrayScratch,
        rows: &mut [RowMut<'_>],
    ) -> Result<u64, SampleError>;
}

/// One array of a batch.
pub(crate) struct ArrayOutput {
    /// Its name in the batch: the feature, or what describes it.
    pub(crate) name: String,
    pub(crate) dtype: ArrayDtype,
    /// The shape of a row.
    pub(crate) shape: Vec<u64>,
    /// The element where a row has none of the record's.
    pub(crate) pad: Vec<u8>,
    /// Whether rows without a sample have this element, too, and not 0.
    pub(crate) pads_masked: bool,
    /// How a row lies in memory if it follows the geometry of the image.
    pub(crate) planes: Option<Planes>,
    /// Bytes of a row.
    pub(crate) row_bytes: usize,
    /// Whether it was reported that the array does not follow its image.
    pub(crate) reported: AtomicBool,
}

/// Memory that a worker reuses for the arrays of one record after the other.
#[derive(Default)]
pub(crate) struct ArrayScratch {
    /// A decompressed chunk.
    pub(super) chunk: Vec<u8>,
    /// An array of which a row has a selection.
    pub(super) whole: Vec<u8>,
    /// The elements of such a selection.
    pub(super) selected: Vec<u64>,
    /// Which pixel of the image each pixel of the row of an array shows that follows its image.
    pub(crate) positions: Positions,
}

impl ArrayOutput {
    /// Returns an array of `batch` rows of this shape. `pad` is the element where a row has none of the record's.
    ///
    /// # Errors
    /// [`ArrayProblem::TooLarge`].
    pub(super) fn new(name: &str, dtype: ArrayDtype, shape: &[u64], pad: Vec<u8>, batch: u32) -> Result<Self, Error> {
        let mut factors = shape.iter().copied().chain([dtype.bytes() as u64]);
        let bytes = factors.try_fold(1u64, u64::checked_mul);
        let fits = bytes.and_then(|bytes| bytes.checked_mul(batch.into())).is_some_and(|all| all <= MAX_BATCH_BYTES);
        let Some(row_bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|_| fits) else {
            return Err(problem(name, ArrayProblem::TooLarge { shape: shape.to_vec(), dtype: dtype.name() }));
        };
        let (name, shape, reported) = (name.to_owned(), shape.to_vec(), AtomicBool::new(false));
        Ok(ArrayOutput { name, dtype, shape, pad, pads_masked: false, planes: None, row_bytes, reported })
    }

    /// Checks that an array has the type of its row.
    ///
    /// # Errors
    /// [`SampleError::ArrayDtype`].
    pub(super) fn check_dtype(&self, array: &StoredArray<'_>) -> Result<(), SampleError> {
        if array.dtype() == self.dtype {
            return Ok(());
        }
        let (feature, expected, found) = (self.name.clone(), self.dtype.name(), array.dtype().name());
        Err(SampleError::ArrayDtype { feature, expected, found })
    }

    /// Fills a row without a sample.
    pub(crate) fn mask(&self, row: &mut [u8]) {
        if self.pads_masked { self.fill(row) } else { row.fill(0) }
    }

    /// Fills the row, or a part of it, with the element where it has none of the record's.
    pub(super) fn fill(&self, row: &mut [u8]) {
        row.chunks_exact_mut(self.pad.len()).for_each(|element| element.copy_from_slice(&self.pad));
    }
}

impl ArrayScratch {
    /// Decodes a whole array of `record`, with the feature's name, into the buffer of this scratch. Returns the bytes that were read.
    pub(super) fn decode_whole(
        &mut self,
        array: &StoredArray<'_>,
        source: (&Record, &str),
        limits: &Limits,
    ) -> Result<u64, SampleError> {
        let bytes = array.bytes() as usize;
        if self.whole.capacity() < bytes {
            // Growing a buffer would hold both the old and the new one for a moment.
            self.whole = vec![];
            self.whole.reserve_exact(bytes);
        }
        self.whole.clear();
        self.whole.resize(bytes, 0);
        array.decode(source, &array.all(), limits, &mut self.chunk, &mut self.whole)
    }
}

/// Checks that a whole array fits the limits.
///
/// # Errors
/// [`SampleError::Array`].
pub(super) fn check_whole(array: &StoredArray<'_>, feature: &str, limits: &Limits) -> Result<(), SampleError> {
    if array.bytes() <= limits.max_bytes {
        return Ok(());
    }
    let source = shardtool_decode::Error::ArrayLimit { needed: array.bytes(), allowed: limits.max_bytes };
    Err(SampleError::Array { feature: feature.to_owned(), source })
}

/// Returns the element of each feature where a row has none of the record's: zero, or the numbers given.
///
/// # Errors
/// [`ArrayProblem::PadCount`], [`ArrayProblem::Pad`].
pub(super) fn pads(features: &[String], given: Option<&[f64]>, dtypes: &[ArrayDtype]) -> Result<Vec<Vec<u8>>, Error> {
    if let Some(given) = given
        && given.len() != features.len()
    {
        let found = ArrayProblem::PadCount { found: given.len(), features: features.len() };
        return Err(problem(features.first().map_or("", String::as_str), found));
    }
    let pad = |(at, (feature, dtype)): (usize, (&String, &ArrayDtype))| {
        let value = given.map_or(0.0, |given| given[at]);
        let cannot = || problem(feature, ArrayProblem::Pad { value, dtype: dtype.name() });
        super::pad_value::element(value, *dtype).ok_or_else(cannot)
    };
    features.iter().zip(dtypes).enumerate().map(pad).collect()
}

/// Returns the scratch of arrays, of which one after the other is decoded: their largest chunk, and the most that one takes in addition.
pub(super) fn scratch<'a, 'r: 'a>(arrays: impl Iterator<Item = (&'a dyn Group, &'a StoredArray<'r>)>) -> u64 {
    let (mut chunk, mut whole) = (0, 0);
    for (group, array) in arrays {
        (chunk, whole) = (array.scratch.max(chunk), group.whole(array).max(whole));
    }
    chunk + whole
}

pub(super) fn problem(feature: &str, problem: ArrayProblem) -> Error {
    Error::Array { feature: feature.to_owned(), problem }
}
