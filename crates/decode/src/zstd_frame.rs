//! One zstd frame (RFC 8878) that declares its content size: the form of compressed pixels and of the chunks of arrays.

use crate::error::Error;
use zstd::zstd_safe;

/// First bytes of a zstd frame; skippable frames have others.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns the content size that the frame declares. The frame must be the whole payload and need no dictionary.
///
/// # Errors
/// [`Error::ZstdFrame`], [`Error::ZstdSize`].
pub(crate) fn content_length(payload: &[u8]) -> Result<u64, Error> {
    let wrong = |expected| Error::ZstdFrame { expected, found: payload.len() as u64 };
    let frame = zstd_safe::find_frame_compressed_size(payload).ok();
    if frame != Some(payload.len()) || !payload.starts_with(&MAGIC) {
        return Err(wrong("exactly one whole zstd frame"));
    }
    if zstd_safe::get_dict_id_from_frame(payload).is_some() {
        return Err(wrong("a zstd frame without a dictionary"));
    }
    zstd_safe::get_frame_content_size(payload).ok().flatten().ok_or(Error::ZstdSize)
}

/// Decompresses a frame into `out`, whose length becomes the frame's content size `length`.
///
/// # Errors
/// [`Error::Zstd`].
pub(crate) fn decompress(payload: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    out.resize(length, 0);
    let found = zstd::bulk::decompress_to_buffer(payload, out).map_err(|source| Error::Zstd { source })?;
    out.truncate(found);
    Ok(())
}

/// Compresses bytes at a level: 1 to 22, or 0 for zstd's default, 3.
///
/// # Errors
/// [`Error::Zstd`] if the library fails.
pub(crate) fn compress(bytes: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    zstd::bulk::compress(bytes, level).map_err(|source| Error::Zstd { source })
}
