//! The values of images that hold measurements, such as depths: as the file stores them, never scaled, mixed, inverted or looked up in
//! a palette.
//!
//! | module | content |
//! |---|---|
//! | `png` | PNG of all kinds |
//! | `tiff` | TIFF of integers and floating-point numbers, with the crate `tiff` |

pub(crate) mod png;
mod tiff;

use crate::codecs::panics::catch_panic;
use crate::codecs::png_palette;
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::sniff::sniff;
use shardtool_format::array::ArrayDtype;

/// The values of an image.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredValues {
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Values of a pixel, at least 1.
    pub channels: usize,
    /// The type of a value.
    pub dtype: ArrayDtype,
    /// `[H, W, C]` values, little-endian.
    pub data: Vec<u8>,
}

impl StoredValues {
    /// Returns the shape: `[H, W]` with one value a pixel, else `[H, W, C]`.
    pub fn shape(&self) -> Vec<u64> {
        let (width, height) = self.size;
        let shape = [u64::from(height), u64::from(width), self.channels as u64];
        shape[..if self.channels == 1 { 2 } else { 3 }].to_vec()
    }
}

/// Decodes a PNG or the only image of a TIFF to the values that it stores: of a PNG with a palette the indices.
///
/// # Errors
/// [`Error::Unsupported`] for other formats, and for TIFFs whose values depend on more than one sample; if the file is damaged or
/// truncated, or exceeds a limit.
pub fn decode_values(bytes: &[u8], limits: &Limits) -> Result<StoredValues, Error> {
    let format = sniff(bytes).ok_or_else(|| Error::unknown(bytes))?;
    catch_panic(format, || match format {
        Format::Png => {
            let mut data = vec![];
            let found = png::decode(&png_palette::repaired(bytes), limits, usize::MAX, &mut data)?;
            let found = found.ok_or(Error::Values { format, problem: "too many channels" })?;
            let dtype = if found.bytes == 1 { ArrayDtype::U8 } else { ArrayDtype::U16 };
            Ok(StoredValues { size: found.size, channels: found.channels, dtype, data })
        }
        Format::Tiff => tiff::decode(bytes, limits),
        format => Err(Error::Values { format, problem: "expected a PNG or a TIFF, which keep values as they are" }),
    })
}
