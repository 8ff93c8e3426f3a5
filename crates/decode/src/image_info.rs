//! What the header of an image says.

use crate::format::Format;

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
    /// Orientation, 1 to 8, as in EXIF: where Pillow's `exif_transpose` finds it, in EXIF or XMP; 1 if the file has none.
    pub orientation: u8,
}
