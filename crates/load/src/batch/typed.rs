//! Typed and owned access to a batch.

use super::Batch;
use super::arrays::{Array, Pictures};
use crate::column_values::Values;
use crate::columns::ResolvedColumn;
use bytemuck::AnyBitPattern;
use half::{bf16, f16};
use shardtool_decode::Dtype;
use shardtool_format::array::ArrayDtype;

/// A number that an array of a batch can hold.
pub trait Element: AnyBitPattern + sealed::Sealed {
    /// The type in the dataset.
    const DTYPE: ArrayDtype;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($type:ty: $dtype:ident),*) => {
        $(impl Element for $type {
            const DTYPE: ArrayDtype = ArrayDtype::$dtype;
        }
        impl sealed::Sealed for $type {})*
    };
}

element!(u8: U8, i8: I8, u16: U16, i16: I16, u32: U32, i32: I32, u64: U64, i64: I64, f16: F16, bf16: Bf16, f32: F32, f64: F64);

impl<'b> Array<'b> {
    /// Returns the elements in C order; `None` if they are of another type.
    pub fn values<T: Element>(&self) -> Option<&'b [T]> {
        (self.dtype == T::DTYPE).then(|| bytemuck::cast_slice(self.bytes))
    }
}

impl<'b> Pictures<'b> {
    /// Returns the normalised pixels, in the order of `shape`; `None` if they are of another type than float32.
    pub fn f32(&self) -> Option<&'b [f32]> {
        let output = self.output.filter(|output| output.dtype() == Dtype::F32 && !self.values);
        output.map(|_| bytemuck::cast_slice(self.bytes))
    }
}

/// The pixels of a batch, which keep its memory: see [`Batch::into_images`]. Aligned to 64 bytes.
#[derive(Debug)]
pub struct OwnedImages(Batch);

impl OwnedImages {
    /// Returns the batch.
    pub fn batch(&self) -> &Batch {
        &self.0
    }
}

impl AsRef<[u8]> for OwnedImages {
    /// As [`Batch::images`].
    fn as_ref(&self) -> &[u8] {
        self.0.images().unwrap_or_default()
    }
}

impl Batch {
    /// Returns the normalised pixels of the first view, in the order of [`Batch::image_shape`]; `None` without images, and if they
    /// are of another type than float32.
    ///
    /// ```no_run
    /// use shardtool_decode::Pipeline;
    /// use shardtool_load::{Config, Image, Loader};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let split = shardtool_read::Dataset::open("dataset")?.split("train")?.clone();
    /// let image = Image::new(Pipeline::train(224)?).with_normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    /// let mut loader = Loader::new(&Config::new(split, [image], 256))?;
    /// for batch in loader.epoch() {
    ///     let batch = batch?;
    ///     let (pixels, labels) = (batch.images_f32().unwrap(), batch.labels().unwrap()); // [N, 3, 224, 224], [N]
    ///     assert_eq!(pixels.len(), labels.len() * 3 * 224 * 224);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn images_f32(&self) -> Option<&[f32]> {
        self.pictures().next()?.f32()
    }

    /// Returns the pixels with the batch's memory, without a copy, for code that owns its bytes; `None` without images.
    pub fn into_images(self) -> Option<OwnedImages> {
        self.images().is_some().then_some(OwnedImages(self))
    }

    /// Returns the class id of each row, `[N]`, −100 in rows without a sample; `None` if the dataset has no labels, if a sample has
    /// several, and for the mixed labels of [`Batch::soft_labels`].
    pub fn labels(&self) -> Option<&[i64]> {
        let labels = self.label()?.as_int64()?;
        (labels.len() == self.len()).then_some(labels)
    }

    /// Returns the share of each class in each row, `[N, classes]`, of mixed labels; `None` if labels are not mixed.
    pub fn soft_labels(&self) -> Option<&[f32]> {
        self.label()?.as_float()
    }

    /// Returns a ragged column as an array `[N, V]`, where V is [`Batch::row_length`]: with the number after the values of a row that
    /// [`Tokens::padded`](crate::Tokens::padded) or [`LengthBuckets::padded`](crate::LengthBuckets::padded) says. `None` for a column
    /// that these do not name.
    pub fn padded(&self, feature: &str) -> Option<Values> {
        let (_, fill) = self.shared().config.padded.iter().find(|(name, _)| name == feature)?;
        self.column(feature)?.padded(self.row_length()?, *fill)
    }

    /// Returns the values of the label.
    fn label(&self) -> Option<&Values> {
        let at = self.shared().config.columns.iter().position(ResolvedColumn::is_label)?;
        self.shared().table().values.get(at)
    }
}

impl Values {
    /// Returns integers `[N, width]`; `None` for other columns.
    pub fn as_int64(&self) -> Option<&[i64]> {
        match self {
            Values::Int64(values) => Some(values),
            _ => None,
        }
    }

    /// Returns floats `[N, width]`; `None` for other columns.
    pub fn as_float(&self) -> Option<&[f32]> {
        match self {
            Values::Float(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the floats of a row of a ragged column, such as its boxes; `None` for other columns and rows.
    pub fn row_floats(&self, row: usize) -> Option<&[f32]> {
        match self {
            Values::RaggedFloat { offsets, values } => part(offsets, values, row),
            _ => None,
        }
    }

    /// Returns the integers of a row of a ragged column; `None` for other columns and rows.
    pub fn row_int64s(&self, row: usize) -> Option<&[i64]> {
        match self {
            Values::RaggedInt64 { offsets, values } => part(offsets, values, row),
            _ => None,
        }
    }

    /// Returns the byte string of a row, such as a text; `None` for other columns and rows.
    pub fn row_bytes(&self, row: usize) -> Option<&[u8]> {
        match self {
            Values::Bytes { offsets, values } => part(offsets, values, row),
            _ => None,
        }
    }
}

fn part<'v, T>(offsets: &[i64], values: &'v [T], row: usize) -> Option<&'v [T]> {
    let (start, end) = (*offsets.get(row)?, *offsets.get(row + 1)?);
    values.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}
