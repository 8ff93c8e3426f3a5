//! Arrays of any number of dimensions: their chunks are decoded one by one, or all into a buffer, and encoded.

use crate::error::Error;
use crate::limits::Limits;
use crate::zstd_frame;
use shardtool_format::array::{ArrayError, ArrayLayout, Codec};
use std::ops::Range;

/// Decodes a whole array, little-endian and in C order, into `out`, which has [`ArrayLayout::bytes`] bytes. `chunks` are
/// the values of the array's feature. `scratch` holds a chunk; its allocation is reused.
///
/// # Errors
/// [`Error::ArrayBuffer`] if `out` has another length; [`Error::Array`] if the number or the length of chunks is wrong;
/// [`Error::ArrayLimit`], [`Error::Zstd`], [`Error::ZstdFrame`] or [`Error::ZstdSize`] for a chunk.
pub fn decode_array<'c>(
    layout: &ArrayLayout<'_>,
    chunks: impl Iterator<Item = &'c [u8]> + Clone,
    limits: &Limits,
    scratch: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), Error> {
    if out.len() as u64 != layout.bytes() {
        return Err(Error::ArrayBuffer { expected: layout.bytes(), found: out.len() as u64 });
    }
    layout.check_chunks(chunks.clone().count() as u64).map_err(invalid)?;
    for (number, chunk) in (0..layout.chunks()).zip(chunks) {
        let data = decode_chunk(layout, number, chunk, limits, scratch)?;
        each_row(layout, number, |inside, rows| out[inside].copy_from_slice(&data[rows]));
    }
    Ok(())
}

/// Decodes a chunk: returns its elements, little-endian and in C order, borrowed from `chunk` or decompressed into
/// `scratch`. Checks declared sizes before allocating.
///
/// # Errors
/// [`Error::Array`] if its length is wrong; [`Error::ArrayLimit`] if it exceeds `max_bytes`; [`Error::Zstd`],
/// [`Error::ZstdFrame`] or [`Error::ZstdSize`] if the frame is damaged.
///
/// # Panics
/// If the layout has no chunk of that number.
pub fn decode_chunk<'a>(
    layout: &ArrayLayout<'_>,
    number: u64,
    chunk: &'a [u8],
    limits: &Limits,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    decode_chunk_prefix(layout, number, usize::MAX, chunk, limits, scratch)
}

/// As [`decode_chunk`], but may return only the first elements, at least `needed` bytes of them unless the chunk has fewer. Damage
/// after them is then not found.
pub(crate) fn decode_chunk_prefix<'a>(
    layout: &ArrayLayout<'_>,
    number: u64,
    needed: usize,
    chunk: &'a [u8],
    limits: &Limits,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    if layout.codec() == Codec::Raw {
        layout.check_chunk(number, chunk.len() as u64).map_err(invalid)?;
        return Ok(chunk);
    }
    let length = zstd_frame::content_length(chunk)?;
    layout.check_chunk(number, length).map_err(invalid)?;
    if length > limits.max_bytes {
        return Err(Error::ArrayLimit { needed: length, allowed: limits.max_bytes });
    }
    let length =
        usize::try_from(length).map_err(|_| Error::ArrayLimit { needed: length, allowed: usize::MAX as u64 })?;
    zstd_frame::decompress_prefix(chunk, needed, length, scratch)?;
    Ok(scratch)
}

/// Encodes an array, given little-endian and in C order, as the values of its feature. `level` is that of zstd: 1 to 22, or
/// 0 for zstd's default, 3.
///
/// # Errors
/// [`Error::ArrayBuffer`] if `data` does not have [`ArrayLayout::bytes`] bytes; [`Error::Zstd`] if the library fails.
pub fn encode_array(layout: &ArrayLayout<'_>, data: &[u8], level: i32) -> Result<Vec<Vec<u8>>, Error> {
    if data.len() as u64 != layout.bytes() {
        return Err(Error::ArrayBuffer { expected: layout.bytes(), found: data.len() as u64 });
    }
    let encode = |number| {
        let mut chunk = Vec::with_capacity(layout.chunk_bytes(number) as usize);
        each_row(layout, number, |inside, _| chunk.extend_from_slice(&data[inside]));
        match layout.codec() {
            Codec::Raw => Ok(chunk),
            Codec::Zstd => zstd_frame::compress(&chunk, level),
        }
    };
    (0..layout.chunks()).map(encode).collect()
}

pub(crate) fn invalid(source: ArrayError) -> Error {
    Error::Array { source }
}

/// Calls `visit` for each run of bytes of a chunk that is contiguous in the array, in C order, with its range in the array
/// and its range in the chunk. The array must fit into memory.
fn each_row(layout: &ArrayLayout<'_>, number: u64, mut visit: impl FnMut(Range<usize>, Range<usize>)) {
    let shape = layout.shape();
    let region: Vec<_> = layout.region(number).map(|range| range.start as usize..range.end as usize).collect();
    // Dimensions that the chunk covers whole are contiguous, and so are the rows of the dimension before them.
    let (mut inner, mut row) = (region.len(), layout.dtype().bytes());
    while inner > 0 {
        inner -= 1;
        row *= region[inner].len();
        if region[inner].len() as i64 != shape[inner] {
            break;
        }
    }
    let mut indices: Vec<_> = region.iter().map(|range| range.start).collect();
    let mut done = 0;
    loop {
        let element = indices.iter().zip(shape).fold(0, |at, (index, length)| at * *length as usize + index);
        let start = element * layout.dtype().bytes();
        visit(start..start + row, done..done + row);
        done += row;
        // The next index of the outer dimensions, of which the last one moves fastest.
        let Some(moved) = (0..inner).rev().find(|d| indices[*d] + 1 < region[*d].end) else { return };
        indices[moved] += 1;
        (moved + 1..inner).for_each(|d| indices[d] = region[d].start);
    }
}
