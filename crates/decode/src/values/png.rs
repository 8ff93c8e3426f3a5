//! Values of PNG.

use crate::codecs::png::{damaged, decoder};
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;

/// What [`decode`] decoded.
pub(crate) struct PngValues {
    pub(crate) size: (u32, u32),
    pub(crate) channels: usize,
    /// Bytes of a value: 1, or 2 of 16 bits.
    pub(crate) bytes: usize,
}

/// Decodes a PNG to its stored values, `[H, W, C]`, little-endian: of a palette the indices, of 1, 2 and 4 bits the values. Returns
/// `None`, without decoding, if it has more than `most` channels. Call it inside
/// [`catch_panic`](crate::codecs::panics::catch_panic).
///
/// # Errors
/// If the file is damaged or truncated, or exceeds a limit.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    most: usize,
    data: &mut Vec<u8>,
) -> Result<Option<PngValues>, Error> {
    let mut decoder = decoder(bytes, limits)?;
    decoder.set_transformations(png::Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(damaged)?;
    let size @ (width, height) = reader.info().size();
    let (color, depth) = reader.output_color_type();
    let (channels, bits) = (color.samples(), depth as u8);
    let value = if bits == 16 { 2 } else { 1 };
    limits.check(Format::Png, width, height, (channels * value) as u8)?;
    if channels > most {
        return Ok(None);
    }
    let (width, height) = (width as usize * channels, height as usize);
    let stride = (width * usize::from(bits)).div_ceil(8);
    data.resize(width * height * value, 0);
    // Packed rows are decoded to the end of the buffer, so that unpacking from its start never overwrites unread bytes.
    let packed = data.len() - stride * height;
    reader.next_frame(&mut data[packed..]).map_err(damaged)?;
    // Checks the chunks after the pixels as well, so that a truncated file is an error.
    reader.finish().map_err(damaged)?;
    match bits {
        8 => {}
        // Big-endian in the file.
        16 => data.as_chunks_mut::<2>().0.iter_mut().for_each(|value| value.swap(0, 1)),
        bits => unpack(data, (width, height), packed, bits),
    }
    Ok(Some(PngValues { size, channels, bytes: value }))
}

/// Unpacks rows of packed values that start at `packed` to one byte per value from the start of `data`.
fn unpack(data: &mut [u8], (width, height): (usize, usize), packed: usize, bits: u8) {
    let (per_byte, mask) = (usize::from(8 / bits), (1u8 << bits) - 1);
    let stride = width.div_ceil(per_byte);
    for y in 0..height {
        for x in 0..width {
            let byte = data[packed + y * stride + x / per_byte];
            let shift = 8 - usize::from(bits) * (x % per_byte + 1);
            data[y * width + x] = byte >> shift & mask;
        }
    }
}
