//! Size, channels and orientation from the header alone.

use std::io::Cursor;

use image::{ImageDecoder, ImageFormat, ImageReader};

use crate::error::Error;
use crate::foreign::isolate;
use crate::format::{Format, sniff};
use crate::header;
use crate::limits::Limits;
use crate::markers;
use crate::tiff;

/// What the header of an image says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    /// Format told by the first bytes.
    pub format: Format,
    /// Width as coded, in pixels: before the orientation is applied.
    pub width: u32,
    /// Height as coded, in pixels.
    pub height: u32,
    /// Channels that the file decodes to before conversion to RGB: 1 grey, 2 grey and alpha, 3 colour, 4 colour and
    /// alpha or CMYK. A palette counts as the colours it stands for.
    pub channels: u8,
    /// EXIF orientation, 1 to 8; 1 (as coded) where the file has none.
    pub orientation: u8,
}

/// Reads the header of an image; decodes no pixels.
///
/// # Errors
/// What was expected and found in a bad or truncated header, or the limit that the image exceeds.
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    let format = sniff(bytes).ok_or_else(|| Error::unknown(bytes))?;
    if format == Format::Jpeg {
        let h = markers::header(bytes)?;
        let (width, height) = (h.width.into(), h.height.into());
        limits.check(format, width, height, 3)?;
        return Ok(ImageInfo { format, width, height, channels: h.components, orientation: h.orientation });
    }
    if let Some(info) = header::probe(format, bytes, limits) {
        return info;
    }
    if format == Format::Tiff {
        return tiff::probe(bytes, limits);
    }
    isolate(format, || {
        let mut decoder = open(format, bytes, limits)?;
        let (width, height) = decoder.dimensions();
        let orientation = decoder.orientation().map_err(|source| Error::Decoder { format, source })?.to_exif();
        let channels = decoder.color_type().channel_count();
        Ok(ImageInfo { format, width, height, channels, orientation })
    })
}

/// The `image` crate's decoder of a sniffed format, its header read and within the limits. Foreign code:
/// to be called inside [`isolate`].
pub(crate) fn open<'a>(format: Format, bytes: &'a [u8], limits: &Limits) -> Result<impl ImageDecoder + use<'a>, Error> {
    let library = match format {
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Png => ImageFormat::Png,
        Format::WebP => ImageFormat::WebP,
        Format::Gif => ImageFormat::Gif,
        Format::Bmp => ImageFormat::Bmp,
        Format::Tiff => ImageFormat::Tiff,
        _ => return Err(Error::unknown(bytes)),
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), library);
    // Sizes are checked below, by name; this one bounds what the decoder allocates beside the pixels.
    let mut allowed = image::Limits::no_limits();
    allowed.max_alloc = Some(limits.max_bytes);
    reader.limits(allowed);
    let decoder = reader.into_decoder().map_err(|source| Error::Decoder { format, source })?;
    let (width, height) = decoder.dimensions();
    limits.check(format, width, height, decoder.color_type().bytes_per_pixel().max(3))?;
    Ok(decoder)
}
