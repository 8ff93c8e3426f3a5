//! Decodes WebP: still images, and the first frame of animations, which is a still image at a place on the canvas.
//!
//! The `image` crate would blend the first frame with the canvas. It rounds then, and multiplies colours by alpha. The canvas
//! below the first frame is empty, so its pixels are the result, as in libwebp and Pillow; the canvas around it is black.

use std::ops::Range;

use super::image_crate;
#[cfg(feature = "libwebp")]
use super::libwebp;
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::metadata::webp_chunks;
use crate::pixels::Pixels;

/// Decodes an image, or at least the rows `rows` of it. Returns the first row decoded and the rows of the whole image; `None` if
/// all were decoded. Call it inside [`catch_panic`](super::panics::catch_panic).
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    rows: Option<Range<u32>>,
    pixels: &mut Pixels,
) -> Result<Option<(u32, u32)>, Error> {
    let Some(frame) = FirstFrame::find(bytes) else { return decode_still(bytes, limits, rows, pixels) };
    let (width, height) = frame.canvas;
    limits.check(Format::WebP, width, height, 4)?;
    decode_still(&frame.still(), limits, None, pixels)?;
    if (pixels.width, pixels.height) != frame.size {
        return Err(Error::SizeMismatch { expected: frame.size, found: (pixels.width, pixels.height) });
    }
    if frame.size != frame.canvas {
        let mut canvas = vec![0; width as usize * height as usize * 3];
        let (stride, row_len) = (width as usize * 3, frame.size.0 as usize * 3);
        let start = frame.top as usize * stride + frame.left as usize * 3;
        for (to, from) in canvas[start..].chunks_mut(stride).zip(pixels.data.chunks_exact(row_len)) {
            to[..row_len].copy_from_slice(from);
        }
        *pixels = Pixels { width, height, data: canvas };
    }
    Ok(None)
}

fn decode_still(
    bytes: &[u8],
    limits: &Limits,
    rows: Option<Range<u32>>,
    pixels: &mut Pixels,
) -> Result<Option<(u32, u32)>, Error> {
    #[cfg(feature = "libwebp")]
    if let Some(part) = libwebp::decode(bytes, limits, rows, pixels)? {
        return Ok(Some(part));
    }
    #[cfg(not(feature = "libwebp"))]
    let _ = rows;
    image_crate::decode(Format::WebP, bytes, limits, pixels)?;
    Ok(None)
}

/// The first frame of an animation (RFC 9649, 2.7.1.1): where it is on the canvas, and its chunks `ALPH` and `VP8 ` or `VP8L`.
struct FirstFrame<'a> {
    canvas: (u32, u32),
    left: u32,
    top: u32,
    size: (u32, u32),
    alpha: Option<&'a [u8]>,
    kind: &'a [u8; 4],
    data: &'a [u8],
}

impl<'a> FirstFrame<'a> {
    /// Returns `None` if the file is not an animation, or one without a first frame inside the canvas: the `image` crate has
    /// an error for that.
    fn find(bytes: &'a [u8]) -> Option<Self> {
        let mut chunks = webp_chunks(bytes.get(12..)?);
        let canvas = match chunks.next()? {
            (b"VP8X", header) if header.first()? & ANIMATION != 0 => (header.get(4..)?, header.get(7..)?),
            _ => return None,
        };
        let canvas = (u24(canvas.0)? + 1, u24(canvas.1)? + 1);
        let (_, frame) = chunks.find(|(kind, _)| *kind == b"ANMF")?;
        let field = |at| u24(frame.get(at..)?);
        let (left, top) = (2 * field(0)?, 2 * field(3)?);
        let size = (field(6)? + 1, field(9)? + 1);
        if left + size.0 > canvas.0 || top + size.1 > canvas.1 {
            return None;
        }
        let mut alpha = None;
        for (kind, data) in webp_chunks(frame.get(16..)?) {
            match kind {
                b"ALPH" => alpha = Some(data),
                b"VP8 " | b"VP8L" => return Some(FirstFrame { canvas, left, top, size, alpha, kind, data }),
                _ => {}
            }
        }
        None
    }

    /// Returns the frame as a file.
    fn still(&self) -> Vec<u8> {
        let mut file = b"RIFF\0\0\0\0WEBP".to_vec();
        if let Some(alpha) = self.alpha {
            let mut header = vec![ALPHA, 0, 0, 0];
            header.extend_from_slice(&(self.size.0 - 1).to_le_bytes()[..3]);
            header.extend_from_slice(&(self.size.1 - 1).to_le_bytes()[..3]);
            append(&mut file, b"VP8X", &header);
            append(&mut file, b"ALPH", alpha);
        }
        append(&mut file, self.kind, self.data);
        // Parts of a file whose lengths fit 32 bits.
        let len = (file.len() - 8) as u32;
        file[4..8].copy_from_slice(&len.to_le_bytes());
        file
    }
}

/// Flags of the chunk `VP8X`.
const ANIMATION: u8 = 0x02;
const ALPHA: u8 = 0x10;

/// Reads 24 bits, little-endian.
fn u24(bytes: &[u8]) -> Option<u32> {
    let &[a, b, c] = bytes.first_chunk()?;
    Some(u32::from_le_bytes([a, b, c, 0]))
}

fn append(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    file.extend_from_slice(kind);
    file.extend_from_slice(&(data.len() as u32).to_le_bytes());
    file.extend_from_slice(data);
    file.extend(std::iter::repeat_n(0, data.len() % 2));
}
