//! Removes what follows the pixels of a bitmap. The format itself has no place for metadata.

use super::refused;
use crate::error::Error;
use crate::format::Format;

/// `LINK`: the colour profile is the path of a file (BITMAPV5HEADER).
const LINKED_PROFILE: u32 = 0x4c49_4e4b;

/// Returns the bitmap up to the end of its pixels and of its colour profile. A bitmap whose length does not follow from its header is
/// returned as it is.
///
/// # Errors
/// [`Error::Metadata`] for a colour profile that is the path of a file, and for a JPEG or PNG inside the bitmap.
pub(super) fn strip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let number = |at: usize| bytes.get(at..)?.first_chunk().map(|field| u32::from_le_bytes(*field));
    if number(14) >= Some(124) && number(70) == Some(LINKED_PROFILE) {
        return Err(refused(Format::Bmp, "its colour profile is the path of a file"));
    }
    if number(14) >= Some(40) && matches!(number(30), Some(4 | 5)) {
        return Err(refused(Format::Bmp, "its pixels are a JPEG or PNG"));
    }
    let end = pixel_end(number).map_or(u64::MAX, |pixels| pixels.max(profile_end(number).unwrap_or(0)));
    Ok(bytes[..usize::try_from(end).unwrap_or(usize::MAX).min(bytes.len())].to_vec())
}

/// Returns where the pixels end, in bytes.
fn pixel_end(number: impl Fn(usize) -> Option<u32>) -> Option<u64> {
    // The file header has the offset of the pixels; after it, the header begins with its length.
    let (start, header) = (u64::from(number(10)?), number(14)?);
    if header < 40 {
        return None;
    }
    let (width, height) = (u64::from(number(18)?), number(22)? as i32);
    let (bits, compression, size) = (u64::from(number(28)? & 0xffff), number(30)?, u64::from(number(34)?));
    let len = match compression {
        // Rows of whole u32.
        0 | 3 | 6 => ((width * bits).div_ceil(32) * 4).checked_mul(height.unsigned_abs().into())?,
        _ => Some(size).filter(|size| *size > 0)?,
    };
    start.checked_add(len)
}

/// Returns where the embedded colour profile ends.
fn profile_end(number: impl Fn(usize) -> Option<u32>) -> Option<u64> {
    let has_profile = number(14)? >= 124;
    let (start, len) = (u64::from(number(126)?), u64::from(number(130)?));
    (has_profile && len > 0).then_some(14 + start + len)
}
