//! A box of an array, decoded from the chunks that it meets. Elements may be flipped and transposed on the way into the
//! output, which needs no memory in between.

use crate::array::{decode_chunk_prefix, invalid};
use crate::error::Error;
use crate::limits::Limits;
use shardtool_format::array::ArrayLayout;
use std::ops::Range;

/// A box of an array, and where its elements are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayBox {
    /// The first index in each dimension.
    pub start: Vec<u64>,
    /// The length in each dimension.
    pub size: Vec<u64>,
    /// Where the first element is written, in elements of the output.
    pub origin: i64,
    /// How far apart neighbours in each dimension are written, in elements of the output. A negative one flips the
    /// dimension.
    pub strides: Vec<i64>,
}

impl ArrayBox {
    /// Returns a box that is written in C order.
    pub fn contiguous(start: Vec<u64>, size: Vec<u64>) -> Self {
        let mut strides = vec![1i64; size.len()];
        for d in (1..size.len()).rev() {
            strides[d - 1] = strides[d].saturating_mul(i64::try_from(size[d]).unwrap_or(i64::MAX));
        }
        ArrayBox { start, size, origin: 0, strides }
    }

    /// Checks that the box lies in the array, and that all its elements are written into `out` bytes.
    fn check(&self, layout: &ArrayLayout<'_>, out: usize) -> Result<(), Error> {
        let shape = layout.shape();
        let wrong = || Error::ArrayBox { shape: shape.to_vec(), start: self.start.clone(), size: self.size.clone() };
        let dimensions = [self.start.len(), self.size.len(), self.strides.len()];
        if dimensions != [shape.len(); 3] {
            return Err(wrong());
        }
        let ends = self.start.iter().zip(&self.size).map(|(start, size)| start.checked_add(*size));
        if ends.zip(shape).any(|(end, length)| end.is_none_or(|end| end > *length as u64)) {
            return Err(wrong());
        }
        if self.is_empty() {
            return Ok(());
        }
        // The offsets of the outermost elements, in 128 bits, which d products of 64-bit numbers cannot exceed.
        let (mut least, mut most) = (i128::from(self.origin), i128::from(self.origin));
        for (size, stride) in self.size.iter().zip(&self.strides) {
            let reach = i128::from(size - 1) * i128::from(*stride);
            *(if reach < 0 { &mut least } else { &mut most }) += reach;
        }
        let elements = (out / layout.dtype().bytes()) as i128;
        if least < 0 || most >= elements { Err(wrong()) } else { Ok(()) }
    }

    fn is_empty(&self) -> bool {
        self.size.contains(&0)
    }
}

/// Returns the numbers of the chunks that the box with this first index and size meets, ascending.
///
/// # Panics
/// If the box does not lie in the array.
pub fn chunks_of_box(layout: &ArrayLayout<'_>, start: &[u64], size: &[u64]) -> impl Iterator<Item = u64> + use<> {
    // For each dimension, the chunks that the box meets, and how many the array has.
    let met = layout.shape().iter().zip(layout.chunk()).enumerate().map(|(d, (length, chunk))| {
        let (length, chunk, end) = (*length as u64, *chunk as u64, start[d] + size[d]);
        assert!(end <= length, "the box lies in the array");
        (start[d] / chunk..end.div_ceil(chunk), length.div_ceil(chunk))
    });
    let met: Vec<_> = met.collect();
    let first = met.iter().map(|(range, _)| range.start).collect();
    let mut next = (!size.contains(&0)).then_some(first);
    std::iter::from_fn(move || {
        let at: &mut Vec<u64> = next.as_mut()?;
        let number = at.iter().zip(&met).fold(0, |number, (index, (_, count))| number * count + index);
        match (0..met.len()).rev().find(|d| at[*d] + 1 < met[*d].0.end) {
            None => next = None,
            Some(moved) => {
                at[moved] += 1;
                (moved + 1..met.len()).for_each(|d| at[d] = met[d].0.start);
            }
        }
        Some(number)
    })
}

/// Decodes a box of an array, little-endian, into `out`. `chunks` returns the value with a number in the array's feature, and
/// is called for the chunks that the box meets, in ascending order. `scratch` holds a chunk; its allocation is reused.
///
/// # Errors
/// [`Error::ArrayBox`] if the box leaves the array or `out`; those of [`decode_chunk`](crate::decode_chunk) and of `chunks`.
pub fn decode_array_box<'c, E: From<Error>>(
    layout: &ArrayLayout<'_>,
    part: &ArrayBox,
    mut chunks: impl FnMut(u64) -> Result<&'c [u8], E>,
    limits: &Limits,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), E> {
    part.check(layout, out.len())?;
    if part.is_empty() {
        return Ok(());
    }
    for number in chunks_of_box(layout, &part.start, &part.size) {
        let (met, bytes) = (ChunkPart::new(layout, number, part), layout.dtype().bytes());
        let data = decode_chunk_prefix(layout, number, met.end() * bytes, chunks(number)?, limits, scratch)?;
        match bytes {
            1 => met.copy::<1>(&part.strides, data, out),
            2 => met.copy::<2>(&part.strides, data, out),
            4 => met.copy::<4>(&part.strides, data, out),
            _ => met.copy::<8>(&part.strides, data, out),
        }
    }
    Ok(())
}

/// As [`decode_array_box`]. `values` iterates over the values of the array's feature, whose number is checked.
///
/// # Errors
/// [`Error::Array`] if the number of chunks is wrong; those of [`decode_array_box`].
pub fn decode_array_box_of<'c, I: Iterator<Item = &'c [u8]>>(
    layout: &ArrayLayout<'_>,
    part: &ArrayBox,
    values: impl Fn() -> I,
    limits: &Limits,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), Error> {
    layout.check_chunks(values().count() as u64).map_err(invalid)?;
    let (mut values, mut next) = (values(), 0);
    let chunk = |number: u64| {
        let value = values.nth((number - next) as usize);
        next = number + 1;
        value.ok_or_else(|| layout.check_chunks(next - 1).map_err(invalid).expect_err("a chunk is missing"))
    };
    decode_array_box(layout, part, chunk, limits, scratch, out)
}

/// The part of a chunk that lies in a box.
struct ChunkPart {
    /// The length in each dimension.
    lengths: Vec<usize>,
    /// How far apart neighbours in each dimension are in the chunk, in elements.
    steps: Vec<usize>,
    /// The first element in the chunk.
    from: usize,
    /// Where it is written, in elements of the output.
    to: i64,
}

impl ChunkPart {
    /// The box was checked, and meets the chunk.
    fn new(layout: &ArrayLayout<'_>, number: u64, part: &ArrayBox) -> Self {
        let (dimensions, mut step) = (part.size.len(), 1);
        let mut found =
            ChunkPart { lengths: vec![0; dimensions], steps: vec![0; dimensions], from: 0, to: part.origin };
        let region: Vec<Range<u64>> = layout.region(number).collect();
        for (d, Range { start, end }) in region.into_iter().enumerate().rev() {
            let first = start.max(part.start[d]);
            found.lengths[d] = (end.min(part.start[d] + part.size[d]) - first) as usize;
            found.steps[d] = step;
            found.from += (first - start) as usize * step;
            found.to += (first - part.start[d]) as i64 * part.strides[d];
            step *= (end - start) as usize;
        }
        found
    }

    /// Returns the end of the last element in the chunk.
    fn end(&self) -> usize {
        self.lengths.iter().zip(&self.steps).fold(self.from + 1, |end, (length, step)| end + (length - 1) * step)
    }

    /// Copies the elements. `BYTES` is the size of one, `data` the chunk, perhaps without what follows the part.
    fn copy<const BYTES: usize>(&self, strides: &[i64], data: &[u8], out: &mut [u8]) {
        let (elements, _) = data.as_chunks::<BYTES>();
        let (target, _) = out.as_chunks_mut::<BYTES>();
        let last = self.lengths.len() - 1;
        let (run, stride) = (self.lengths[last], strides[last]);
        let (mut from, mut to, mut at) = (self.from, self.to, vec![0; last]);
        loop {
            let row = &elements[from..from + run];
            if stride == 1 {
                target[to as usize..to as usize + run].copy_from_slice(row);
            } else {
                for (n, element) in row.iter().enumerate() {
                    target[(to + n as i64 * stride) as usize] = *element;
                }
            }
            // The next index of the outer dimensions, of which the last one moves fastest.
            let Some(moved) = (0..last).rev().find(|d| at[*d] + 1 < self.lengths[*d]) else { return };
            (at[moved], from, to) = (at[moved] + 1, from + self.steps[moved], to + strides[moved]);
            for d in moved + 1..last {
                from -= at[d] * self.steps[d];
                to -= at[d] as i64 * strides[d];
                at[d] = 0;
            }
        }
    }
}
