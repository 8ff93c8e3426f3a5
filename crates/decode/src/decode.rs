//! Bytes of any image format to RGB.
//!
//! Grey is repeated into the three channels; alpha is dropped, not blended, as PIL's `convert("RGB")` does; palettes are
//! looked up; CMYK is converted; of 16-bit samples the high byte is kept, as libpng and PIL do. Floating-point samples are
//! refused by name: what their range means is the file's secret. Of animations the first frame counts.

use image::{ColorType, ImageDecoder};

use crate::error::Error;
use crate::format::{Format, sniff};
use crate::geometry::{Geometry, Rect};
use crate::jpeg;
use crate::limits::Limits;
use crate::orientation::Orientation;
use crate::pixels::{Pixels, PixelsRef};
use crate::probe::{open, probe};

/// How to decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeOptions {
    /// How large an image may be.
    pub limits: Limits,
    /// Turn the image upright as its EXIF orientation says. Off by default, as in torchvision's and PIL's readers.
    pub apply_orientation: bool,
}

/// Decodes an image, `[H, W, 3]` u8 RGB.
///
/// # Errors
/// As [`decode_into`].
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Pixels, Error> {
    let mut pixels = Pixels::default();
    decode_into(bytes, options, &mut pixels)?;
    Ok(pixels)
}

/// Decodes an image into `pixels`, whose allocation is reused. What stands in `pixels` after an error is unspecified.
///
/// # Errors
/// Bad or truncated data, an unsupported feature, or the limit that the image exceeds.
pub fn decode_into(bytes: &[u8], options: &DecodeOptions, pixels: &mut Pixels) -> Result<(), Error> {
    decode_stored(bytes, &options.limits, pixels)?;
    if options.apply_orientation {
        Orientation::from_exif(probe(bytes, &options.limits)?.orientation).apply(pixels);
    }
    Ok(())
}

/// The part of a stored image that was decoded.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The decoded pixels.
    pub pixels: PixelsRef<'a>,
    /// Where they stand in the stored image.
    pub rect: Rect,
    /// Size of the stored image: width, height.
    pub stored: (u32, u32),
}

impl<'a> Window<'a> {
    /// The window that shows the whole image.
    pub fn whole(pixels: PixelsRef<'a>) -> Self {
        let (width, height) = (pixels.width(), pixels.height());
        Window { pixels, rect: Rect { left: 0, top: 0, width, height }, stored: (width, height) }
    }
}

/// Decodes at least what `geometry` needs of an image into `pixels`, whose allocation is reused.
///
/// # Errors
/// As [`decode_into`]; [`Error::SizeMismatch`] if the image has another size than the geometry was planned for.
pub fn decode_window<'a>(
    bytes: &[u8],
    geometry: &Geometry,
    limits: &Limits,
    pixels: &'a mut Pixels,
) -> Result<Window<'a>, Error> {
    decode_stored(bytes, limits, pixels)?;
    let window = Window::whole(pixels.view()?);
    geometry.check_stored(window.stored)?;
    Ok(window)
}

fn decode_stored(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    match sniff(bytes).ok_or_else(|| Error::unknown(bytes))? {
        Format::Jpeg => jpeg::decode(bytes, limits, pixels),
        format => decode_with_library(format, bytes, limits, pixels),
    }
}

/// Decodes through the `image` crate. The samples of the file are read into the buffer of `pixels` and converted there.
pub(crate) fn decode_with_library(
    format: Format,
    bytes: &[u8],
    limits: &Limits,
    pixels: &mut Pixels,
) -> Result<(), Error> {
    let decoder = open(format, bytes, limits)?;
    let (width, height) = decoder.dimensions();
    let color = decoder.color_type();
    let Some(to_rgb) = conversion(color) else {
        return Err(Error::Unsupported { format, feature: "samples other than 8-bit or 16-bit integers" });
    };
    // Within the limits, which `open` checked, so these fit.
    let count = width as usize * height as usize;
    let stored_len = count * usize::from(color.bytes_per_pixel());
    pixels.data.resize(stored_len.max(count * 3), 0);
    decoder.read_image(&mut pixels.data[..stored_len]).map_err(|source| Error::Decoder { format, source })?;
    to_rgb(&mut pixels.data, count);
    pixels.data.truncate(count * 3);
    (pixels.width, pixels.height) = (width, height);
    Ok(())
}

/// Converts `count` pixels of a colour type at the beginning of a buffer to RGB in place.
fn conversion(color: ColorType) -> Option<fn(&mut [u8], usize)> {
    // Where the high byte of a 16-bit sample stands: the `image` crate writes them in the machine's order.
    const HIGH: usize = if cfg!(target_endian = "little") { 1 } else { 0 };
    Some(match color {
        ColorType::Rgb8 => |_, _| {},
        ColorType::L8 => |data, count| spread::<1>(data, count, 0),
        ColorType::La8 => |data, count| spread::<2>(data, count, 0),
        ColorType::L16 => |data, count| spread::<2>(data, count, HIGH),
        ColorType::La16 => |data, count| pick::<4>(data, count, [HIGH; 3]),
        ColorType::Rgba8 => |data, count| pick::<4>(data, count, [0, 1, 2]),
        ColorType::Rgb16 => |data, count| pick::<6>(data, count, [HIGH, 2 + HIGH, 4 + HIGH]),
        ColorType::Rgba16 => |data, count| pick::<8>(data, count, [HIGH, 2 + HIGH, 4 + HIGH]),
        _ => return None,
    })
}

/// Pixels of `N` < 3 bytes grow to three copies of byte `at`; from the last to the first, so that none is overwritten
/// before it is read.
fn spread<const N: usize>(data: &mut [u8], count: usize, at: usize) {
    for i in (0..count).rev() {
        let v = data[i * N + at];
        data[i * 3..i * 3 + 3].fill(v);
    }
}

/// Pixels of `N` > 3 bytes shrink to the three bytes `at`, from the first to the last.
fn pick<const N: usize>(data: &mut [u8], count: usize, at: [usize; 3]) {
    for i in 0..count {
        let rgb = at.map(|k| data[i * N + k]);
        data[i * 3..i * 3 + 3].copy_from_slice(&rgb);
    }
}
