//! Formats that the `image` crate decodes: WebP, GIF, BMP, and the TIFFs that our own decoder does not read.
//!
//! As Pillow's `convert("RGB")` does, grey is repeated into three channels, alpha is dropped without blending, palettes are
//! looked up and CMYK is converted. Of 16-bit samples the high byte is kept. Floating-point samples are refused. Of
//! animations the first frame is decoded.

use std::io::Cursor;

use image::{ColorType, ImageDecoder, ImageFormat, ImageReader};

use super::decoder_error;
use super::panics::catch_panic;
use super::to_rgb::{replicate, select};
use crate::error::Error;
use crate::format::Format;
use crate::image_info::ImageInfo;
use crate::label_dtype::LabelDtype;
use crate::limits::Limits;
use crate::metadata;
use crate::pixels::Pixels;

/// Reads the header of an image. A panic of the decoder is an error.
pub(crate) fn probe(format: Format, bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    catch_panic(format, || {
        let decoder = open(format, bytes, limits)?;
        let (width, height) = decoder.dimensions();
        let orientation = if format == Format::WebP { metadata::webp(bytes).orientation() } else { 1 };
        let channels = decoder.color_type().channel_count();
        Ok(ImageInfo { format, width, height, channels, orientation })
    })
}

/// Reads width and height from the header, and checks the limits. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
pub(crate) fn size(format: Format, bytes: &[u8], limits: &Limits) -> Result<(u32, u32), Error> {
    Ok(open(format, bytes, limits)?.dimensions())
}

/// Opens the decoder of `format`, which reads the header, and checks the limits. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
fn open<'a>(format: Format, bytes: &'a [u8], limits: &Limits) -> Result<impl ImageDecoder + use<'a>, Error> {
    let image_format = match format {
        Format::WebP => ImageFormat::WebP,
        Format::Gif => ImageFormat::Gif,
        Format::Bmp => ImageFormat::Bmp,
        Format::Tiff => ImageFormat::Tiff,
        _ => return Err(Error::unknown(bytes)),
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), image_format);
    // The size is checked below, where the error names the limit. This limit bounds the decoder's other allocations.
    let mut allowed = image::Limits::no_limits();
    allowed.max_alloc = Some(limits.max_bytes);
    reader.limits(allowed);
    let decoder = reader.into_decoder().map_err(|source| decoder_error(format, source))?;
    let (width, height) = decoder.dimensions();
    limits.check(format, width, height, decoder.color_type().bytes_per_pixel().max(3))?;
    Ok(decoder)
}

/// Decodes a whole image. The samples are decoded into the buffer of `pixels` and converted there. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
pub(crate) fn decode(format: Format, bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let decoder = open(format, bytes, limits)?;
    let (width, height) = decoder.dimensions();
    let color = decoder.color_type();
    let Some(to_rgb) = conversion(color) else {
        return Err(Error::Unsupported { format, feature: "samples other than 8-bit or 16-bit integers" });
    };
    // `open` checked the limits, so these products do not overflow.
    let count = width as usize * height as usize;
    let stored_len = count * usize::from(color.bytes_per_pixel());
    pixels.data.resize(stored_len.max(count * 3), 0);
    decoder.read_image(&mut pixels.data[..stored_len]).map_err(|source| decoder_error(format, source))?;
    to_rgb(&mut pixels.data, count);
    pixels.data.truncate(count * 3);
    (pixels.width, pixels.height) = (width, height);
    Ok(())
}

/// Decodes an image of one channel of 8 or 16 bits into `values`. Returns its width and height and the type of the values,
/// or `None` if it has other pixels. Call it inside [`catch_panic`](super::panics::catch_panic).
pub(crate) fn decode_grey(
    format: Format,
    bytes: &[u8],
    limits: &Limits,
    values: &mut Vec<u8>,
) -> Result<Option<(u32, u32, LabelDtype)>, Error> {
    let decoder = open(format, bytes, limits)?;
    let dtype = match decoder.color_type() {
        ColorType::L8 => LabelDtype::U8,
        ColorType::L16 => LabelDtype::U16,
        _ => return Ok(None),
    };
    let (width, height) = decoder.dimensions();
    values.resize(width as usize * height as usize * dtype.bytes(), 0);
    decoder.read_image(values).map_err(|source| decoder_error(format, source))?;
    if dtype == LabelDtype::U16 && cfg!(target_endian = "big") {
        // The `image` crate writes samples in native byte order.
        values.as_chunks_mut::<2>().0.iter_mut().for_each(|value| value.swap(0, 1));
    }
    Ok(Some((width, height, dtype)))
}

/// Returns the conversion of a colour type to RGB: of `count` pixels at the start of a buffer, in place.
fn conversion(color: ColorType) -> Option<fn(&mut [u8], usize)> {
    // Offset of the high byte of a 16-bit sample, which the `image` crate writes in native byte order.
    const HIGH: usize = if cfg!(target_endian = "little") { 1 } else { 0 };
    Some(match color {
        ColorType::Rgb8 => |_, _| {},
        ColorType::L8 => |data, count| replicate::<1>(data, count, 0),
        ColorType::La8 => |data, count| replicate::<2>(data, count, 0),
        ColorType::L16 => |data, count| replicate::<2>(data, count, HIGH),
        ColorType::La16 => |data, count| select::<4, 3>(data, count, [HIGH; 3]),
        ColorType::Rgba8 => |data, count| select::<4, 3>(data, count, [0, 1, 2]),
        ColorType::Rgb16 => |data, count| select::<6, 3>(data, count, [HIGH, 2 + HIGH, 4 + HIGH]),
        ColorType::Rgba16 => |data, count| select::<8, 3>(data, count, [HIGH, 2 + HIGH, 4 + HIGH]),
        _ => return None,
    })
}
