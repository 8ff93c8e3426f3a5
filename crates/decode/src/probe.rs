//! Reads format, size, channels and orientation from the header, and what the samples are.

use crate::codecs::panics::catch_panic;
use crate::codecs::{image_crate, png, tiff};
use crate::encoded::EncodedImage;
use crate::error::Error;
use crate::format::Format;
use crate::header;
use crate::image_info::ImageInfo;
use crate::limits::Limits;
use crate::markers;
use crate::sniff::sniff;
use crate::stored_samples::StoredSamples;

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
    match format {
        Format::Png => catch_panic(format, || png::probe(bytes, limits)),
        Format::Tiff => tiff::probe(bytes, limits),
        _ => image_crate::probe(format, bytes, limits),
    }
}

impl EncodedImage<'_> {
    /// Returns what the samples of a PNG or TIFF are; `None` for other formats, for floating-point samples, for others that are
    /// computed when they are decoded, and if the header is damaged.
    pub fn stored_samples(&self) -> Option<StoredSamples> {
        match self.format()? {
            Format::Png => png::stored_samples(self.bytes()),
            Format::Tiff => tiff::stored_samples(self.bytes()),
            _ => None,
        }
    }
}
