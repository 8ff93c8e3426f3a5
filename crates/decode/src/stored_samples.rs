//! What the samples of a PNG or TIFF are, read from its header.

use crate::codecs::tiff;
use crate::encoded::EncodedImage;
use crate::format::Format;
use crate::pixel_format::{Channels, Depth, PixelFormat};

/// What the samples of a stored image are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSamples {
    /// The format that holds them exactly, without alpha. Colours of a palette are RGB of 8 bits.
    pub format: PixelFormat,
    /// Whether they are indices into a palette.
    pub palette: bool,
    /// What is not delivered as it is stored, if anything is not: the end of a sentence, such as "with alpha, which is dropped".
    pub changed: Option<&'static str>,
}

impl StoredSamples {
    /// Returns the format in which all samples are delivered as they are stored.
    ///
    /// # Errors
    /// What is not.
    pub fn unchanged(self) -> Result<PixelFormat, &'static str> {
        self.changed.map_or(Ok(self.format), Err)
    }

    /// Returns what the image is called if it may hold depths, ids or labels instead of colours: grey of 16 bits, and indices into
    /// a palette. `None` for others, which may do so as well, but are colours as a rule.
    pub fn may_be_values(self) -> Option<&'static str> {
        match self {
            StoredSamples { palette: true, .. } => Some("an image with a palette"),
            StoredSamples { format: PixelFormat::GRAY16, .. } => Some("grey of 16 bits"),
            _ => None,
        }
    }
}

/// Why grey of 1, 2 or 4 bits is not delivered as it is stored.
pub(crate) const FEW_BITS: &str = "grey of fewer than 8 bits, which is scaled to 0 to 255";

impl EncodedImage<'_> {
    /// Returns what the samples of a PNG or TIFF are; `None` for other formats, for floating-point samples, for others that are
    /// computed when they are decoded, and if the header is damaged.
    pub fn stored_samples(&self) -> Option<StoredSamples> {
        match self.format()? {
            Format::Png => png(self.bytes()),
            Format::Tiff => tiff::stored_samples(self.bytes()),
            _ => None,
        }
    }
}

/// Reads the bit depth and the colour type, which follow signature, length and name of the first chunk (IHDR), width and height.
fn png(bytes: &[u8]) -> Option<StoredSamples> {
    let (bits, color) = (*bytes.get(24)?, *bytes.get(25)?);
    let depth = if bits == 16 { Depth::Sixteen } else { Depth::Eight };
    // PNG, section 11.2.1: 0 and 4 are grey, 2 and 6 RGB, 3 has a palette.
    let channels = if matches!(color, 0 | 4) { Channels::Gray } else { Channels::Rgb };
    let changed = match (color, bits) {
        (4 | 6, _) => Some("an image with alpha, which is dropped"),
        (0, ..8) => Some(FEW_BITS),
        _ => None,
    };
    Some(StoredSamples { format: PixelFormat { channels, depth }, palette: color == 3, changed })
}
