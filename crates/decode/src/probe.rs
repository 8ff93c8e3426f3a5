//! Reads format, size, channels and orientation from the header.

use crate::codecs::{image_crate, tiff};
use crate::error::Error;
use crate::format::{Format, sniff};
use crate::header;
use crate::limits::Limits;
use crate::markers;

/// The header of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageInfo {
    /// Format, detected from the first bytes.
    pub format: Format,
    /// Width in pixels as coded, before the orientation is applied.
    pub width: u32,
    /// Height in pixels as coded.
    pub height: u32,
    /// Channels before conversion to RGB: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha, or CMYK. A palette counts
    /// as the channels of its colours.
    pub channels: u8,
    /// EXIF orientation, 1 to 8; 1 if the file has none.
    pub orientation: u8,
}

/// Reads the header of an image without decoding pixels.
///
/// # Errors
/// If the header is invalid, truncated or of no known format, or the image exceeds a limit.
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    let format = sniff(bytes).ok_or_else(|| Error::unknown(bytes))?;
    if format == Format::Jpeg {
        let h = markers::header(bytes)?;
        let (width, height) = (h.width, h.height);
        limits.check(format, width, height, 3)?;
        return Ok(ImageInfo { format, width, height, channels: h.components, orientation: h.orientation });
    }
    if let Some(info) = header::probe(format, bytes, limits) {
        return info;
    }
    if format == Format::Tiff {
        return tiff::probe(bytes, limits);
    }
    image_crate::probe(format, bytes, limits)
}
