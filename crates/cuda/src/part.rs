//! The arrays of a batch on the device: their names, and the types of their values.

use cudarc::driver::DeviceRepr;
use shardtool_decode::{Depth, Dtype, LabelDtype};
use shardtool_format::array::ArrayDtype;

/// One array of a batch; `S` is the text of a feature's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartOf<S> {
    /// The first array of images.
    Images,
    /// An array of images or of clips, in the type and layout of the [`Output`](crate::Output); of further images that hold values,
    /// in theirs.
    Picture {
        /// The feature of a further image or of clips; `None` for the record's image.
        feature: Option<S>,
        /// The name of the view; empty if it has none.
        view: S,
    },
    /// Label maps, u8 or u16 `[N, H, W]`.
    Mask(S),
    /// Which pixels show the image, u8 `[N, H, W]`.
    PixelMask,
    /// Arrays of the records, `[N, …]`.
    Array(S),
    /// Ids of the samples, i64 `[N]`; of packed rows `[S]`, the samples of row i are those of
    /// [`SampleOffsets`](PartOf::SampleOffsets).
    Ids,
    /// Whether rows have a sample, bool (one byte each) `[N]`.
    Valid,
    /// A column of numbers: `[N, width]`, or `[N]` if each row has one number. Of a ragged column the values of all rows, `[M]`, or
    /// `[M, 4]` of boxes and `[M, 3]` of points.
    Column(S),
    /// Of a ragged column, i64 `[N + 1]`: row i has the values `offsets[i]..offsets[i + 1]`.
    Offsets(S),
    /// Of packed rows, i64 `[N + 1]`: row i has the samples `offsets[i]..offsets[i + 1]`.
    SampleOffsets,
    /// Of packed rows, the tokens of each sample, i64 `[S]`.
    Tokens,
    /// Of packed rows, the number of each token's sample in its row, from 1, and 0 after the last one, i32 `[N, V]`.
    SegmentIds,
    /// Of packed rows, the position of each token in its sample, from 0, i32 `[N, V]`.
    PositionIds,
}

/// One array of a batch.
pub type Part<'a> = PartOf<&'a str>;

impl<S> PartOf<S> {
    fn map<'a, T>(&'a self, name: impl Fn(&'a S) -> T) -> PartOf<T> {
        match self {
            PartOf::Images => PartOf::Images,
            PartOf::Picture { feature, view } => {
                PartOf::Picture { feature: feature.as_ref().map(&name), view: name(view) }
            }
            PartOf::Mask(feature) => PartOf::Mask(name(feature)),
            PartOf::PixelMask => PartOf::PixelMask,
            PartOf::Array(feature) => PartOf::Array(name(feature)),
            PartOf::Ids => PartOf::Ids,
            PartOf::Valid => PartOf::Valid,
            PartOf::Column(feature) => PartOf::Column(name(feature)),
            PartOf::Offsets(feature) => PartOf::Offsets(name(feature)),
            PartOf::SampleOffsets => PartOf::SampleOffsets,
            PartOf::Tokens => PartOf::Tokens,
            PartOf::SegmentIds => PartOf::SegmentIds,
            PartOf::PositionIds => PartOf::PositionIds,
        }
    }
}

impl Part<'_> {
    /// Returns the same part, with names that it owns.
    pub fn to_owned(&self) -> PartOf<String> {
        self.map(|name| (*name).to_owned())
    }
}

impl PartOf<String> {
    /// Returns the same part, with borrowed names.
    pub fn borrowed(&self) -> Part<'_> {
        self.map(String::as_str)
    }
}

/// Type of an array's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names of the types")]
pub enum Element {
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
    /// One byte, 0 or 1.
    Bool,
    /// One byte, as stored: 0 is false, every other byte true. In Rust its values are u8.
    StoredBool,
}

impl Element {
    /// Returns the size of one value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Element::U8 | Element::I8 | Element::Bool | Element::StoredBool => 1,
            Element::U16 | Element::I16 | Element::F16 | Element::Bf16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 | Element::F64 => 8,
        }
    }

    /// Returns the name of the type: `float16`, `int64`, `bool` …
    pub fn name(self) -> &'static str {
        match self {
            Element::U8 => "uint8",
            Element::I8 => "int8",
            Element::U16 => "uint16",
            Element::I16 => "int16",
            Element::U32 => "uint32",
            Element::I32 => "int32",
            Element::U64 => "uint64",
            Element::I64 => "int64",
            Element::F16 => "float16",
            Element::Bf16 => "bfloat16",
            Element::F32 => "float32",
            Element::F64 => "float64",
            Element::Bool | Element::StoredBool => "bool",
        }
    }

    /// Returns the name of the [`Value`] type that views of the values have.
    pub(crate) fn value(self) -> &'static str {
        if self == Element::StoredBool { Element::U8.name() } else { self.name() }
    }
}

impl From<Dtype> for Element {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Element::F32,
            Dtype::F16 => Element::F16,
            Dtype::Bf16 => Element::Bf16,
        }
    }
}

impl From<Depth> for Element {
    fn from(depth: Depth) -> Self {
        match depth {
            Depth::Eight => Element::U8,
            Depth::Sixteen => Element::U16,
        }
    }
}

impl From<LabelDtype> for Element {
    fn from(dtype: LabelDtype) -> Self {
        match dtype {
            LabelDtype::U8 => Element::U8,
            LabelDtype::U16 => Element::U16,
            LabelDtype::I32 => Element::I32,
        }
    }
}

impl From<ArrayDtype> for Element {
    fn from(dtype: ArrayDtype) -> Self {
        match dtype {
            ArrayDtype::U8 => Element::U8,
            ArrayDtype::I8 => Element::I8,
            ArrayDtype::U16 => Element::U16,
            ArrayDtype::I16 => Element::I16,
            ArrayDtype::U32 => Element::U32,
            ArrayDtype::I32 => Element::I32,
            ArrayDtype::U64 => Element::U64,
            ArrayDtype::I64 => Element::I64,
            ArrayDtype::F16 => Element::F16,
            ArrayDtype::Bf16 => Element::Bf16,
            ArrayDtype::F32 => Element::F32,
            ArrayDtype::F64 => Element::F64,
            ArrayDtype::Bool => Element::StoredBool,
        }
    }
}

/// A Rust type of an array's values. This trait is sealed.
pub trait Value: DeviceRepr + Copy + Default + sealed::Sealed {
    /// Name of the type, as in [`Element::name`].
    const NAME: &'static str;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! values {
    ($($type:ty = $name:literal),*) => {$(
        impl sealed::Sealed for $type {}
        impl Value for $type {
            const NAME: &'static str = $name;
        }
    )*};
}
values!(
    u8 = "uint8",
    i8 = "int8",
    u16 = "uint16",
    i16 = "int16",
    u32 = "uint32",
    i32 = "int32",
    u64 = "uint64",
    i64 = "int64",
    half::f16 = "float16",
    half::bf16 = "bfloat16",
    f32 = "float32",
    f64 = "float64",
    bool = "bool"
);
