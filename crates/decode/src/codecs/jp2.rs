//! Decodes JPEG 2000 with `hayro-jpeg2000`.

use hayro_jpeg2000::{ColorSpace, DecodeSettings, Image};

use super::decoder_error;
use super::to_rgb::{replicate, select};
use crate::error::Error;
use crate::format::Format;
use crate::header::is_cmyk;
use crate::limits::Limits;
use crate::pixels::Pixels;

/// Decodes an image. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let settings = DecodeSettings { resolve_palette_indices: true, strict: true, ..DecodeSettings::default() };
    let image = Image::new(bytes, &settings).map_err(damaged)?;
    let (width, height) = (image.width(), image.height());
    let channels = image.color_space().num_channels() + u8::from(image.has_alpha());
    // Coefficients and samples of 32 bits and copies of them: 11 bytes per channel, measured.
    limits.check(Format::Jp2, width, height, channels.saturating_mul(11))?;
    let color = match (image.color_space(), channels) {
        (ColorSpace::Gray, 1 | 2) | (ColorSpace::RGB, 3 | 4) => channels,
        // Four channels without a colour specification: the last one is alpha, as in OpenJPEG and Pillow.
        (ColorSpace::CMYK, 4) if !is_cmyk(bytes) => channels,
        (ColorSpace::CMYK, _) => return Err(Error::Unsupported { format: Format::Jp2, feature: "CMYK" }),
        // The profile is not applied.
        (ColorSpace::Icc { .. }, 1..=4) => channels,
        _ => return Err(Error::Unsupported { format: Format::Jp2, feature: "colours other than grey and RGB" }),
    };
    let count = width as usize * height as usize;
    pixels.data = image.decode().map_err(damaged)?;
    if pixels.data.len() != count * usize::from(color) {
        return Err(Error::Unsupported { format: Format::Jp2, feature: "channels of different sizes" });
    }
    pixels.data.resize(count * usize::from(color).max(3), 0);
    match color {
        1 => replicate::<1>(&mut pixels.data, count, 0),
        2 => replicate::<2>(&mut pixels.data, count, 0),
        3 => {}
        _ => select::<4, 3>(&mut pixels.data, count, [0, 1, 2]),
    }
    pixels.data.truncate(count * 3);
    (pixels.width, pixels.height) = (width, height);
    Ok(())
}

fn damaged(source: hayro_jpeg2000::error::DecodeError) -> Error {
    decoder_error(Format::Jp2, source)
}
