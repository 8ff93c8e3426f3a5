//! What the samples of a PNG or TIFF are, read from its header.

use crate::pixel_format::PixelFormat;

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
