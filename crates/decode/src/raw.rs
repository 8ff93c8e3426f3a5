//! Pixels stored as they are (`image/format` `raw`), or as one zstd frame of that (`raw-zstd`).
//!
//! `raw` is exactly height × width × 3 bytes, `[H, W, 3]` u8 RGB, rows from the top, no padding; the size is in
//! `image/height` and `image/width`. `raw-zstd` is exactly one zstd frame of it whose header declares the content size.

use zstd::zstd_safe;

use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::pixels::{PixelsRef, check_len};

/// The pixels of a `raw` or `raw-zstd` payload: borrowed from the payload, or decompressed into `scratch`, whose
/// allocation is reused. The declared sizes are checked before anything is allocated.
///
/// # Errors
/// [`Error::PixelBytes`] if the payload holds another number of bytes than `width` and `height` ask for;
/// [`Error::Zstd`] and [`Error::ZstdFrame`] for a damaged frame; [`Error::Limit`]; [`Error::NotRaw`] for another format.
pub fn decode_raw<'a>(
    format: Format,
    payload: &'a [u8],
    width: u32,
    height: u32,
    limits: &Limits,
    scratch: &'a mut Vec<u8>,
) -> Result<PixelsRef<'a>, Error> {
    limits.check(format, width, height, 3)?;
    match format {
        Format::Raw => PixelsRef::new(width, height, payload),
        Format::RawZstd => {
            let len = frame_content_len(payload)?;
            check_len(width, height, len)?;
            scratch.resize(len, 0);
            let found = zstd::bulk::decompress_to_buffer(payload, scratch).map_err(|source| Error::Zstd { source })?;
            check_len(width, height, found)?;
            PixelsRef::new(width, height, scratch)
        }
        other => Err(Error::NotRaw { found: other }),
    }
}

/// Encodes pixels as a `raw-zstd` payload at a zstd level (1 to 22; 3 is zstd's own default, 0 means it).
///
/// # Errors
/// [`Error::Zstd`] if the library refuses.
pub fn encode_raw_zstd(pixels: PixelsRef<'_>, level: i32) -> Result<Vec<u8>, Error> {
    zstd::bulk::compress(pixels.data(), level).map_err(|source| Error::Zstd { source })
}

/// The content size that the frame declares; the frame must be the whole payload.
fn frame_content_len(payload: &[u8]) -> Result<usize, Error> {
    let frame = zstd_safe::find_frame_compressed_size(payload).ok();
    if frame != Some(payload.len()) {
        return Err(Error::ZstdFrame { expected: "exactly one whole zstd frame", found: payload.len() as u64 });
    }
    let len = zstd_safe::get_frame_content_size(payload).ok().flatten();
    len.and_then(|n| usize::try_from(n).ok()).ok_or(Error::ZstdFrame {
        expected: "a zstd frame that declares its content size",
        found: payload.len() as u64,
    })
}
