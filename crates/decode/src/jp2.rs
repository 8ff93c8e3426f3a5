//! JPEG 2000 to RGB through `hayro-jpeg2000`.

use hayro_jpeg2000::{ColorSpace, DecodeSettings, Image};

use crate::error::Error;
use crate::format::Format;
use crate::header::is_cmyk;
use crate::library::{pick, spread};
use crate::limits::Limits;
use crate::pixels::Pixels;

/// Decodes an image. Foreign code: to be called inside [`isolate`](crate::foreign::isolate).
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let settings = DecodeSettings { resolve_palette_indices: true, strict: true, ..DecodeSettings::default() };
    let image = Image::new(bytes, &settings).map_err(bad)?;
    let (width, height) = (image.width(), image.height());
    let channels = image.color_space().num_channels() + u8::from(image.has_alpha());
    // 32-bit coefficients and samples, and copies of them: measured.
    limits.check(Format::Jp2, width, height, channels.saturating_mul(11))?;
    let color = match (image.color_space(), channels) {
        (ColorSpace::Gray, 1 | 2) | (ColorSpace::RGB, 3 | 4) => channels,
        // Four channels whose colours nothing specifies: alpha is the last, as in OpenJPEG and Pillow.
        (ColorSpace::CMYK, 4) if !is_cmyk(bytes) => channels,
        (ColorSpace::CMYK, _) => return Err(Error::Unsupported { format: Format::Jp2, feature: "CMYK" }),
        // A profile that is not applied: the channels count as they are.
        (ColorSpace::Icc { .. }, 1..=4) => channels,
        _ => return Err(Error::Unsupported { format: Format::Jp2, feature: "colours other than grey and RGB" }),
    };
    let count = width as usize * height as usize;
    pixels.data = image.decode().map_err(bad)?;
    if pixels.data.len() != count * usize::from(color) {
        return Err(Error::Unsupported { format: Format::Jp2, feature: "channels of different sizes" });
    }
    pixels.data.resize(count * usize::from(color).max(3), 0);
    match color {
        1 => spread::<1>(&mut pixels.data, count, 0),
        2 => spread::<2>(&mut pixels.data, count, 0),
        3 => {}
        _ => pick::<4>(&mut pixels.data, count, [0, 1, 2]),
    }
    pixels.data.truncate(count * 3);
    (pixels.width, pixels.height) = (width, height);
    Ok(())
}

fn bad(source: hayro_jpeg2000::error::DecodeError) -> Error {
    Error::Foreign { format: Format::Jp2, source: source.into() }
}
