//! Decodes BMP: run-length coded images here, all others by the `image` crate.
//!
//! The `image` crate refuses 4-bit images with a run that is longer than its row, which encoders write for odd widths, and
//! paints pixels black that the runs leave out. They have the first colour of the palette here, as in Pillow and Windows: encoders
//! leave out what has that colour.

use super::{decoder_error, image_crate};
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::pixels::Pixels;

/// Decodes an image. Call it inside [`catch_panic`](super::panics::catch_panic).
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let Some(coded) = RunLengths::find(bytes) else { return image_crate::decode(Format::Bmp, bytes, limits, pixels) };
    // Checks the header and the limits.
    let (width, height) = image_crate::size(Format::Bmp, bytes, limits)?;
    (pixels.width, pixels.height) = (width, height);
    pixels.data.clear();
    pixels.data.resize(width as usize * height as usize * 3, 0);
    coded.decode(width as usize, &mut pixels.data)
}

/// A run-length coded image (BI_RLE8 or BI_RLE4).
struct RunLengths<'a> {
    /// Whether an index has 4 bits, else 8.
    nibbles: bool,
    palette: [[u8; 3]; 256],
    data: &'a [u8],
}

impl<'a> RunLengths<'a> {
    /// Returns `None` for an image that is coded otherwise, or whose header is damaged: the `image` crate has an error for that.
    fn find(bytes: &'a [u8]) -> Option<Self> {
        let number = |at: usize| bytes.get(at..)?.first_chunk().map(|field| u32::from_le_bytes(*field));
        // The file header ends with the offset of the pixels; the next header begins with its length.
        let (data, header) = (number(10)?, number(14)?);
        if header < 40 {
            return None;
        }
        let bits = number(28)? & 0xffff;
        let nibbles = match (number(30)?, bits) {
            (1, 8) => false,
            (2, 4) => true,
            _ => return None,
        };
        let most = 1 << bits;
        let colors = match number(46)? {
            0 => most,
            colors => colors.min(most),
        };
        let mut palette = [[0; 3]; 256];
        let stored = bytes.get(14 + header as usize..)?.as_chunks::<4>().0;
        for (color, [blue, green, red, _]) in palette.iter_mut().zip(&stored[..stored.len().min(colors as usize)]) {
            *color = [*red, *green, *blue];
        }
        Some(RunLengths { nibbles, palette, data: bytes.get(data as usize..)? })
    }

    /// Decodes into rows of RGB from the top; the first row of the data is the last one of the image.
    fn decode(&self, width: usize, out: &mut [u8]) -> Result<(), Error> {
        let out = out.as_chunks_mut::<3>().0;
        out.fill(self.palette[0]);
        let mut rows = out.rchunks_exact_mut(width);
        let Some(mut row) = rows.next() else { return Ok(()) };
        let (mut data, mut x) = (self.data, 0);
        let mut take = |len: usize| {
            let (taken, rest) = data.split_at_checked(len).ok_or_else(|| damaged("truncated run-length data"))?;
            data = rest;
            Ok(taken)
        };
        loop {
            let code = take(2)?;
            match (code[0], code[1]) {
                (0, 0) => match rows.next() {
                    Some(next) => (row, x) = (next, 0),
                    None => return Ok(()),
                },
                (0, 1) => return Ok(()),
                (0, 2) => {
                    let step = take(2)?;
                    x += usize::from(step[0]);
                    if step[1] > 0 {
                        row = rows.nth(usize::from(step[1]) - 1).ok_or_else(|| damaged("pixels below the last row"))?;
                    }
                    if x > width {
                        return Err(damaged("pixels beyond the end of a row"));
                    }
                }
                (0, count) => {
                    let count = usize::from(count);
                    let len = if self.nibbles { count.div_ceil(2) } else { count };
                    let indices = take(len.next_multiple_of(2))?;
                    // Encoders write whole bytes at the end of odd rows.
                    let kept = count.min(width - x);
                    if count - kept > usize::from(self.nibbles) {
                        return Err(damaged("pixels beyond the end of a row"));
                    }
                    self.write(indices.iter().copied(), &mut row[x..x + kept]);
                    x += kept;
                }
                (count, indices) => {
                    // Encoders of odd widths, and ImageMagick, write runs that go beyond the row.
                    let count = usize::from(count).min(width - x);
                    self.write(std::iter::repeat(indices), &mut row[x..x + count]);
                    x += count;
                }
            }
        }
    }

    /// Writes the colours of as many indices as `run` has pixels.
    fn write(&self, bytes: impl Iterator<Item = u8>, run: &mut [[u8; 3]]) {
        let indices = bytes.flat_map(|byte| match self.nibbles {
            true => [Some(byte >> 4), Some(byte & 15)],
            false => [Some(byte), None],
        });
        for (pixel, index) in run.iter_mut().zip(indices.flatten()) {
            *pixel = self.palette[usize::from(index)];
        }
    }
}

fn damaged(what: &'static str) -> Error {
    decoder_error(Format::Bmp, what)
}
