//! Layout of a slot: the images first, then the row data (ids, `valid`, the columns of numbers, and how to mix the rows),
//! each array aligned.

use crate::error::{Error, Result};
use crate::feed::Rows;
use cudarc::driver::DeviceRepr;
use shardtool_decode::{Dtype, Output};
use shardtool_load::{BatchMix, RowMix, Values};
use std::ops::Range;

/// One array of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part<'a> {
    /// The images, in the type and layout of the [`Output`].
    Images,
    /// Ids of the samples, i64 `[N]`.
    Ids,
    /// Whether rows have a sample, bool (one byte each) `[N]`.
    Valid,
    /// A column of numbers, i64 or f32 `[N, width]`, or `[N]` if each row has one number.
    Column(&'a str),
}

/// Type of an array's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Element {
    /// Values of images.
    Pixel(Dtype),
    /// i64.
    I64,
    /// u64.
    U64,
    /// f32.
    F32,
    /// f64.
    F64,
    /// One byte, 0 or 1.
    Bool,
}

impl Element {
    /// Returns the size of one value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Element::Pixel(dtype) => dtype.bytes(),
            Element::Bool => 1,
            Element::I64 | Element::U64 | Element::F64 => 8,
            Element::F32 => 4,
        }
    }

    /// Returns the name of the type: `float16`, `int64`, `bool` …
    pub fn name(self) -> &'static str {
        match self {
            Element::Pixel(dtype) => dtype.name(),
            Element::I64 => "int64",
            Element::U64 => "uint64",
            Element::F32 => "float32",
            Element::F64 => "float64",
            Element::Bool => "bool",
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
    f32 = "float32",
    f64 = "float64",
    half::f16 = "float16",
    half::bf16 = "bfloat16",
    i64 = "int64",
    u64 = "uint64",
    bool = "bool"
);

/// Where an array lies in a slot, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartLayout {
    /// Byte range in the slot.
    pub(crate) bytes: Range<usize>,
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
}

impl PartLayout {
    /// Checks that the values are of type `T`.
    pub(crate) fn expect<T: Value>(&self) -> Result<()> {
        let expected = self.element.name();
        if T::NAME == expected { Ok(()) } else { Err(Error::Type { expected, found: T::NAME }) }
    }
}

/// Where all arrays of a batch lie in a slot, the same for every batch of a loader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlotLayout {
    /// Shape of the host's pixels, `[N, H, W, 3]`.
    pub(crate) pixels: [usize; 4],
    images: PartLayout,
    ids: PartLayout,
    valid: PartLayout,
    columns: Vec<(String, PartLayout)>,
    /// Byte range of the [`RowMix`](shardtool_load::RowMix) of each row, for the kernel; empty if batches are not mixed.
    mixes: Range<usize>,
    total: usize,
}

/// Alignment of each array in bytes: DLPack recommends 256.
const ALIGNMENT: usize = 256;

impl SlotLayout {
    /// `mixed` says whether the device mixes the batches.
    pub(crate) fn new(pixels: [usize; 4], rows: &Rows, output: &Output, mixed: bool) -> Self {
        let mut end = 0;
        let mut allocate = |element: Element, shape: Vec<usize>| {
            let start = usize::next_multiple_of(end, ALIGNMENT);
            end = start + shape.iter().product::<usize>() * element.bytes();
            PartLayout { bytes: start..end, element, shape }
        };
        let n = pixels[0];
        let images = allocate(Element::Pixel(output.dtype()), output.layout().shape(pixels).to_vec());
        let ids = allocate(Element::I64, vec![n]);
        let valid = allocate(Element::Bool, vec![n]);
        let columns = rows.columns.iter().filter_map(|(name, values, width)| {
            let shape = match (*width)? {
                1 => vec![n],
                width => vec![n, width],
            };
            let element = match values {
                Values::Int64(_) => Element::I64,
                Values::Float(_) => Element::F32,
                Values::Float64(_) => Element::F64,
                Values::Uint64(_) => Element::U64,
                _ => return None,
            };
            Some((name.clone(), allocate(element, shape)))
        });
        let columns = columns.collect();
        let start = if mixed { end.next_multiple_of(ALIGNMENT) } else { end };
        let mixes = start..start + if mixed { n * RowMix::WORDS * size_of::<u32>() } else { 0 };
        SlotLayout { pixels, images, ids, valid, columns, total: mixes.end, mixes }
    }

    /// Returns the size of a slot in bytes.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Returns the number of bytes of u8 pixels.
    pub(crate) fn pixel_bytes(&self) -> usize {
        self.pixels.iter().product()
    }

    /// Returns the byte range of the row data, which is copied unchanged: everything after the images.
    pub(crate) fn row_data(&self) -> Range<usize> {
        self.ids.bytes.start..self.total
    }

    /// Returns a way of mixing if it is for the batches of this layout.
    ///
    /// # Errors
    /// [`Error::Mix`].
    pub(crate) fn check_mix<'m>(&self, mix: &'m BatchMix) -> Result<&'m BatchMix> {
        let [n, h, w, _] = self.pixels;
        let expected = self.mixes().map(|_| [n, h, w]);
        let found = mix.shape();
        if expected == Some(found) { Ok(mix) } else { Err(Error::Mix { expected, found }) }
    }

    /// Returns where in the slot the kernel finds how to mix the rows; `None` if batches are not mixed.
    pub(crate) fn mixes(&self) -> Option<usize> {
        (!self.mixes.is_empty()).then_some(self.mixes.start)
    }

    /// Returns the names of the columns that are uploaded.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the layout of one array.
    ///
    /// # Errors
    /// [`Error::NoColumn`].
    pub(crate) fn part(&self, part: Part<'_>) -> Result<&PartLayout> {
        match part {
            Part::Images => Ok(&self.images),
            Part::Ids => Ok(&self.ids),
            Part::Valid => Ok(&self.valid),
            Part::Column(name) => {
                self.columns.iter().find(|(n, _)| n == name).map(|(_, part)| part).ok_or_else(|| Error::NoColumn {
                    name: name.to_owned(),
                    known: self.columns.iter().map(|(name, _)| name.clone()).collect(),
                })
            }
        }
    }

    /// Writes the row data into `target`, which is as long as [`SlotLayout::row_data`].
    pub(crate) fn write_row_data(&self, rows: &Rows, mix: Option<&BatchMix>, target: &mut [u8]) {
        let start = self.row_data().start;
        let mut put_at = |range: &Range<usize>, bytes: &mut dyn Iterator<Item = u8>| {
            let to = &mut target[range.start - start..range.end - start];
            to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        };
        if let Some(mix) = mix {
            put_at(&self.mixes, &mut mix.rows().flat_map(|row| row.words()).flat_map(u32::to_le_bytes));
        }
        let mut put = |part: &PartLayout, bytes: &mut dyn Iterator<Item = u8>| put_at(&part.bytes, bytes);
        put(&self.ids, &mut rows.ids.iter().flat_map(|v| v.to_le_bytes()));
        put(&self.valid, &mut rows.valid.iter().map(|v| *v as u8));
        for (name, values, _) in &rows.columns {
            let Some((_, part)) = self.columns.iter().find(|(n, _)| n == name) else { continue };
            match values {
                Values::Int64(v) => put(part, &mut v.iter().flat_map(|v| v.to_le_bytes())),
                Values::Float(v) => put(part, &mut v.iter().flat_map(|v| v.to_le_bytes())),
                Values::Float64(v) => put(part, &mut v.iter().flat_map(|v| v.to_le_bytes())),
                Values::Uint64(v) => put(part, &mut v.iter().flat_map(|v| v.to_le_bytes())),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardtool_decode::Layout;

    #[test]
    fn arrays_are_aligned_disjoint_and_hold_the_rows() {
        let output = Output::new(Dtype::F16, Layout::Nchw, [0.0; 3], [1.0; 3]).unwrap();
        let rows = Rows {
            ids: vec![5, -1, 1 << 40],
            valid: vec![true, false, true],
            columns: vec![
                ("label".into(), Values::Int64(vec![7, -100, 9]), Some(1)),
                ("text".into(), Values::Bytes { offsets: vec![0, 1, 1, 1], values: vec![1] }, None),
                ("box".into(), Values::Float(vec![0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), Some(2)),
            ],
            ..Rows::default()
        };
        let layout = SlotLayout::new([3, 5, 7, 3], &rows, &output, false);
        assert_eq!(layout.part(Part::Images).unwrap().shape, [3, 3, 5, 7]);
        let all = [Part::Images, Part::Ids, Part::Valid, Part::Column("label"), Part::Column("box")];
        let parts = all.map(|part| layout.part(part).unwrap());
        for pair in parts.windows(2) {
            assert!(pair[0].bytes.end <= pair[1].bytes.start && pair[1].bytes.start % ALIGNMENT == 0);
        }
        assert_eq!(parts[4].bytes.end, layout.total());
        assert!(matches!(layout.part(Part::Column("text")), Err(Error::NoColumn { .. })));

        let mut row_data = vec![0xee; layout.row_data().len()];
        layout.write_row_data(&rows, None, &mut row_data);
        let start = layout.row_data().start;
        let bytes = |part: &PartLayout| &row_data[part.bytes.start - start..part.bytes.end - start];
        let i64s = |part| bytes(part).chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>();
        assert_eq!(i64s(parts[1]), rows.ids);
        assert_eq!(bytes(parts[2]), [1, 0, 1]);
        assert_eq!(i64s(parts[3]), [7, -100, 9]);
        let floats: Vec<f32> = bytes(parts[4]).chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(floats, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    }
}
