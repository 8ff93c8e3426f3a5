//! Arrays of any number of dimensions, stored in chunks: feature `NAME` holds one byte string for each chunk, in C order
//! of the grid of chunks, and four more features describe them.
//!
//! | feature | type | meaning |
//! |---|---|---|
//! | `NAME/shape` | int64 | length of each dimension, at least 0 |
//! | `NAME/chunk` | int64 | length of a chunk in each dimension, at least 1 |
//! | `NAME/dtype` | bytes | type of the elements: [`ArrayDtype`] |
//! | `NAME/codec` | bytes | how each chunk is coded: [`Codec`] |
//!
//! Elements are little-endian and in C order inside a chunk. Chunks at the end of a dimension are clipped to the array.

mod error;
mod features;
#[cfg(test)]
mod tests;

pub use error::ArrayError;
pub use features::{ArrayFeatures, array_name};

/// The largest number of bytes of an array, and of a chunk that is not clipped.
const MAX_BYTES: u64 = 1 << 63;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say what the types are")]
pub enum ArrayDtype {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
    Bool,
}

impl ArrayDtype {
    /// Every type.
    pub const ALL: [ArrayDtype; 13] = [
        ArrayDtype::U8,
        ArrayDtype::I8,
        ArrayDtype::U16,
        ArrayDtype::I16,
        ArrayDtype::U32,
        ArrayDtype::I32,
        ArrayDtype::U64,
        ArrayDtype::I64,
        ArrayDtype::F16,
        ArrayDtype::Bf16,
        ArrayDtype::F32,
        ArrayDtype::F64,
        ArrayDtype::Bool,
    ];

    /// Returns the name in `NAME/dtype`.
    pub fn name(self) -> &'static str {
        match self {
            ArrayDtype::U8 => "u8",
            ArrayDtype::I8 => "i8",
            ArrayDtype::U16 => "u16",
            ArrayDtype::I16 => "i16",
            ArrayDtype::U32 => "u32",
            ArrayDtype::I32 => "i32",
            ArrayDtype::U64 => "u64",
            ArrayDtype::I64 => "i64",
            ArrayDtype::F16 => "f16",
            ArrayDtype::Bf16 => "bf16",
            ArrayDtype::F32 => "f32",
            ArrayDtype::F64 => "f64",
            ArrayDtype::Bool => "bool",
        }
    }

    /// Returns the size of an element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            ArrayDtype::U8 | ArrayDtype::I8 | ArrayDtype::Bool => 1,
            ArrayDtype::U16 | ArrayDtype::I16 | ArrayDtype::F16 | ArrayDtype::Bf16 => 2,
            ArrayDtype::U32 | ArrayDtype::I32 | ArrayDtype::F32 => 4,
            ArrayDtype::U64 | ArrayDtype::I64 | ArrayDtype::F64 => 8,
        }
    }
}

/// How each chunk of an array is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// The elements as they are.
    Raw,
    /// One zstd frame with its content size, without a dictionary, and nothing after it.
    Zstd,
}

impl Codec {
    /// Returns the name in `NAME/codec`.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Raw => "raw",
            Codec::Zstd => "zstd",
        }
    }
}

/// The layout of an array: its shape, and how it is divided into chunks. All numbers are checked, so that no method can
/// overflow; does not allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayLayout<'a> {
    shape: &'a [i64],
    chunk: &'a [i64],
    dtype: ArrayDtype,
    codec: Codec,
    chunks: u64,
    bytes: u64,
}

impl<'a> ArrayLayout<'a> {
    /// Checks the layout with these values of `NAME/shape`, `NAME/chunk`, `NAME/dtype` and `NAME/codec`.
    ///
    /// ```
    /// use shardtool_format::array::ArrayLayout;
    /// let layout = ArrayLayout::new(&[5, 4], &[2, 4], b"u16", b"zstd")?;
    /// assert_eq!((layout.chunks(), layout.bytes()), (3, 40));
    /// // The last chunk is clipped to one row.
    /// assert_eq!(layout.region(2).collect::<Vec<_>>(), [4..5, 0..4]);
    /// assert_eq!(layout.chunk_bytes(2), 8);
    /// # Ok::<(), shardtool_format::array::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Dtype`], [`ArrayError::Codec`], [`ArrayError::Dimensions`], [`ArrayError::Length`],
    /// [`ArrayError::TooLarge`].
    pub fn new(shape: &'a [i64], chunk: &'a [i64], dtype: &[u8], codec: &[u8]) -> Result<Self, ArrayError> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let known = ArrayDtype::ALL.into_iter().find(|known| known.name().as_bytes() == dtype);
        let dtype = known.ok_or_else(|| ArrayError::Dtype { found: text(dtype) })?;
        let known = [Codec::Raw, Codec::Zstd].into_iter().find(|known| known.name().as_bytes() == codec);
        let codec = known.ok_or_else(|| ArrayError::Codec { found: text(codec) })?;
        if shape.is_empty() || shape.len() != chunk.len() {
            return Err(ArrayError::Dimensions { shape: shape.len(), chunk: chunk.len() });
        }
        for (dimension, (length, chunk)) in shape.iter().zip(chunk).enumerate() {
            if *length < 0 || *chunk < 1 {
                return Err(ArrayError::Length { dimension, length: *length, chunk: *chunk });
            }
        }
        let size = |lengths: &[i64]| {
            let all = lengths.iter().map(|length| *length as u64).chain([dtype.bytes() as u64]);
            product(all).ok_or(ArrayError::TooLarge)
        };
        size(chunk)?;
        let bytes = size(shape)?;
        // At most the number of elements.
        let chunks = product(grid(shape, chunk)).expect("fewer chunks than bytes");
        Ok(ArrayLayout { shape, chunk, dtype, codec, chunks, bytes })
    }

    /// Returns the length of each dimension.
    pub fn shape(&self) -> &'a [i64] {
        self.shape
    }

    /// Returns the length of a chunk that is not clipped in each dimension.
    pub fn chunk(&self) -> &'a [i64] {
        self.chunk
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> ArrayDtype {
        self.dtype
    }

    /// Returns how each chunk is coded.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns the number of chunks; 0 if the array has no elements.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Returns the size of the whole array in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the range of the array's indices that a chunk holds, in each dimension.
    ///
    /// # Panics
    /// If `number` is not less than the number of chunks.
    pub fn region(&self, number: u64) -> impl Iterator<Item = std::ops::Range<u64>> + use<'a> {
        assert!(number < self.chunks, "chunk {number} of {}", self.chunks);
        let (mut rest, mut inner) = (number, self.chunks);
        let lengths = self.shape.iter().zip(self.chunk).map(|(length, chunk)| (*length as u64, *chunk as u64));
        lengths.zip(grid(self.shape, self.chunk)).map(move |((length, chunk), count)| {
            inner /= count;
            let start = rest / inner * chunk;
            rest %= inner;
            start..length.min(start.saturating_add(chunk))
        })
    }

    /// Returns the size of a chunk's elements in bytes.
    ///
    /// # Panics
    /// As [`ArrayLayout::region`].
    pub fn chunk_bytes(&self, number: u64) -> u64 {
        self.region(number).map(|range| range.end - range.start).product::<u64>() * self.dtype.bytes() as u64
    }

    /// Checks the number of chunks of a record.
    ///
    /// # Errors
    /// [`ArrayError::Chunks`].
    pub fn check_chunks(&self, found: u64) -> Result<(), ArrayError> {
        if found == self.chunks { Ok(()) } else { Err(ArrayError::Chunks { expected: self.chunks, found }) }
    }

    /// Checks the size of a chunk's elements.
    ///
    /// # Errors
    /// [`ArrayError::ChunkBytes`].
    ///
    /// # Panics
    /// As [`ArrayLayout::region`].
    pub fn check_chunk(&self, number: u64, found: u64) -> Result<(), ArrayError> {
        let expected = self.chunk_bytes(number);
        if found == expected { Ok(()) } else { Err(ArrayError::ChunkBytes { number, expected, found }) }
    }
}

/// Returns the number of chunks in each dimension.
fn grid<'a>(shape: &'a [i64], chunk: &'a [i64]) -> impl Iterator<Item = u64> + use<'a> {
    shape.iter().zip(chunk).map(|(length, chunk)| (*length as u64).div_ceil(*chunk as u64))
}

/// Returns the product, unless it is over [`MAX_BYTES`].
fn product(factors: impl Iterator<Item = u64>) -> Option<u64> {
    // A factor of 0 makes the product 0, however large the others are.
    let (mut product, mut zero) = (Some(1u64), false);
    for factor in factors {
        zero |= factor == 0;
        product = product.and_then(|p| p.checked_mul(factor)).filter(|p| *p <= MAX_BYTES);
    }
    if zero { Some(0) } else { product }
}
