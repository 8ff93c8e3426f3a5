//! Where the parts of a batch lie in a slot's device memory: images first, then ids, valid and the columns of numbers.

use crate::error::{Error, Result};
use crate::feed::Rows;
use cudarc::driver::DeviceRepr;
use shardtool_decode::{Dtype, Output};
use shardtool_load::Values;
use std::ops::Range;

/// One array of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The images, in the type and layout of the [`Output`].
    Images,
    /// Ids of the samples, i64 `[N]`.
    Ids,
    /// Whether rows show a sample, bool (one byte each) `[N]`.
    Valid,
    /// A column of numbers, i64 or f32 `[N, width]`, or `[N]` where a row has one.
    Column(&'a str),
}

/// Type of an array's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Images' values.
    Pixel(Dtype),
    /// u8: pixels on the host.
    U8,
    /// i64.
    I64,
    /// f32.
    F32,
    /// One byte, 0 or 1.
    Bool,
}

impl Element {
    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Element::Pixel(dtype) => dtype.bytes(),
            Element::U8 | Element::Bool => 1,
            Element::I64 => 8,
            Element::F32 => 4,
        }
    }

    /// `float16`, `int64`, `bool` …
    pub fn name(self) -> &'static str {
        match self {
            Element::Pixel(dtype) => dtype.name(),
            Element::U8 => "uint8",
            Element::I64 => "int64",
            Element::F32 => "float32",
            Element::Bool => "bool",
        }
    }
}

/// A type that an array on the device can be seen as.
pub trait Value: DeviceRepr + sealed::Sealed {
    /// Its name, as in [`Dtype::name`].
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
values!(f32 = "float32", half::f16 = "float16", half::bf16 = "bfloat16", i64 = "int64", bool = "bool");

/// An array's place in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bytes: Range<usize>,
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
}

impl Place {
    /// Checks that the values are what they are asked for as.
    pub(crate) fn expect<T: Value>(&self) -> Result<()> {
        let expected = self.element.name();
        if T::NAME == expected { Ok(()) } else { Err(Error::Type { expected, found: T::NAME }) }
    }
}

/// The places of all parts, the same for every batch of a loader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// `[N, H, W, 3]` on the host.
    pub(crate) pixels: [usize; 4],
    images: Place,
    ids: Place,
    valid: Place,
    columns: Vec<(String, Place)>,
    total: usize,
}

/// Alignment of each part: what vector loads and DLPack consumers want.
const ALIGNMENT: usize = 256;

impl Parts {
    pub(crate) fn new(pixels: [usize; 4], rows: &Rows, output: &Output) -> Self {
        let mut end = 0;
        let mut place = |element: Element, shape: Vec<usize>| {
            let start = usize::next_multiple_of(end, ALIGNMENT);
            end = start + shape.iter().product::<usize>() * element.bytes();
            Place { bytes: start..end, element, shape }
        };
        let n = pixels[0];
        let images = place(Element::Pixel(output.dtype()), output.layout().shape(pixels).to_vec());
        let ids = place(Element::I64, vec![n]);
        let valid = place(Element::Bool, vec![n]);
        let columns = rows.columns.iter().filter_map(|(name, values, width)| {
            let shape = match (*width)? {
                1 => vec![n],
                width => vec![n, width],
            };
            let element = match values {
                Values::Int64(_) => Element::I64,
                Values::Float(_) => Element::F32,
                _ => return None,
            };
            Some((name.clone(), place(element, shape)))
        });
        let columns = columns.collect();
        Parts { pixels, images, ids, valid, columns, total: end }
    }

    /// Bytes of a slot.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Bytes of the pixels, as they travel.
    pub(crate) fn pixel_bytes(&self) -> usize {
        self.pixels.iter().product()
    }

    /// The part of a slot that is copied as it is: everything after the images.
    pub(crate) fn side(&self) -> Range<usize> {
        self.ids.bytes.start..self.total
    }

    /// Names of the columns that travel.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn place(&self, part: Part<'_>) -> Result<&Place> {
        match part {
            Part::Images => Ok(&self.images),
            Part::Ids => Ok(&self.ids),
            Part::Valid => Ok(&self.valid),
            Part::Column(name) => {
                self.columns.iter().find(|(n, _)| n == name).map(|(_, place)| place).ok_or_else(|| Error::NoColumn {
                    name: name.to_owned(),
                    known: self.columns.iter().map(|(name, _)| name.clone()).collect(),
                })
            }
        }
    }

    /// Writes what lies in [`Parts::side`].
    pub(crate) fn write_side(&self, rows: &Rows, side: &mut [u8]) {
        let start = self.side().start;
        let mut put = |place: &Place, bytes: &mut dyn Iterator<Item = u8>| {
            let to = &mut side[place.bytes.start - start..place.bytes.end - start];
            to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        };
        put(&self.ids, &mut rows.ids.iter().flat_map(|v| v.to_le_bytes()));
        put(&self.valid, &mut rows.valid.iter().map(|v| *v as u8));
        for (name, values, _) in &rows.columns {
            let Some((_, place)) = self.columns.iter().find(|(n, _)| n == name) else { continue };
            match values {
                Values::Int64(v) => put(place, &mut v.iter().flat_map(|v| v.to_le_bytes())),
                Values::Float(v) => put(place, &mut v.iter().flat_map(|v| v.to_le_bytes())),
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
    fn parts_are_aligned_do_not_overlap_and_hold_what_was_written() {
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
        let parts = Parts::new([3, 5, 7, 3], &rows, &output);
        assert_eq!(parts.place(Part::Images).unwrap().shape, [3, 3, 5, 7]);
        let all = [Part::Images, Part::Ids, Part::Valid, Part::Column("label"), Part::Column("box")];
        let places = all.map(|part| parts.place(part).unwrap());
        for pair in places.windows(2) {
            assert!(pair[0].bytes.end <= pair[1].bytes.start && pair[1].bytes.start % ALIGNMENT == 0);
        }
        assert_eq!(places[4].bytes.end, parts.total());
        assert!(matches!(parts.place(Part::Column("text")), Err(Error::NoColumn { .. })));

        let mut side = vec![0xee; parts.side().len()];
        parts.write_side(&rows, &mut side);
        let bytes = |place: &Place| &side[place.bytes.start - parts.side().start..place.bytes.end - parts.side().start];
        let i64s =
            |place| bytes(place).chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>();
        assert_eq!(i64s(places[1]), rows.ids);
        assert_eq!(bytes(places[2]), [1, 0, 1]);
        assert_eq!(i64s(places[3]), [7, -100, 9]);
        let floats: Vec<f32> = bytes(places[4]).chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(floats, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    }
}
