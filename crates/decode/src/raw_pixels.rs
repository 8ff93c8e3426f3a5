//! Pixels stored without coding (`image/format` `raw`), or in one zstd frame (`raw-zstd`).
//!
//! `raw` is exactly height × width × 3 bytes, `[H, W, 3]` u8 RGB, rows from the top, no padding; the size is in
//! `image/height` and `image/width`. `raw-zstd` is exactly one zstd frame of the same bytes, whose header declares the
//! content size.

use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::pixel_format::{PixelFormat, convert};
use crate::pixels::PixelsRef;
use crate::zstd_frame;

/// Returns the pixels of a `raw` or `raw-zstd` payload, borrowed from the payload or decompressed into `scratch`, whose
/// allocation is reused. Checks the declared sizes before allocating.
///
/// # Errors
/// [`Error::PixelBytes`] if the payload does not have `height * width * 3` bytes; [`Error::Zstd`], [`Error::ZstdFrame`] or
/// [`Error::ZstdSize`] if the frame is damaged; [`Error::Empty`] if a side is 0; [`Error::Limit`] if the image exceeds a limit;
/// [`Error::NotRaw`] if `format` is another one.
pub fn decode_raw<'a>(
    format: Format,
    payload: &'a [u8],
    width: u32,
    height: u32,
    limits: &Limits,
    scratch: &'a mut Vec<u8>,
) -> Result<PixelsRef<'a>, Error> {
    match format {
        Format::Raw => {
            let pixels = PixelsRef::new(width, height, payload)?;
            limits.check(format, width, height, 3)?;
            Ok(pixels)
        }
        Format::RawZstd => {
            let length = usize::try_from(zstd_frame::content_length(payload)?).map_err(|_| Error::ZstdSize)?;
            PixelFormat::RGB8.check_len((width, height), length)?;
            limits.check(format, width, height, 3)?;
            zstd_frame::decompress(payload, length, scratch)?;
            PixelsRef::new(width, height, scratch)
        }
        other => Err(Error::NotRaw { found: other }),
    }
}

/// As [`decode_raw`], converted to a pixel format. Pixels in a format other than 8-bit RGB are in `scratch`.
///
/// # Errors
/// As [`decode_raw`].
pub fn decode_raw_as<'a>(
    format: Format,
    payload: &'a [u8],
    (width, height): (u32, u32),
    limits: &Limits,
    wanted: PixelFormat,
    scratch: &'a mut Vec<u8>,
) -> Result<PixelsRef<'a>, Error> {
    if wanted == PixelFormat::RGB8 {
        return decode_raw(format, payload, width, height, limits, scratch);
    }
    let len = decode_raw(format, payload, width, height, limits, scratch)?.data().len();
    if format == Format::Raw {
        scratch.clear();
        scratch.reserve_exact(len.max(wanted.len((width, height)) as usize));
        scratch.extend_from_slice(payload);
    }
    convert(scratch, width as usize * height as usize, PixelFormat::RGB8, wanted);
    PixelsRef::with_format(width, height, wanted, scratch)
}

/// Encodes pixels as a `raw-zstd` payload at zstd level `level`: 1 to 22, or 0 for zstd's default, 3.
///
/// # Errors
/// [`Error::Zstd`] if the library fails.
pub fn encode_raw_zstd(pixels: PixelsRef<'_>, level: i32) -> Result<Vec<u8>, Error> {
    zstd_frame::compress(pixels.data(), level)
}
