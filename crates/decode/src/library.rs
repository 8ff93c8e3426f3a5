//! What our own decoder does not read: bytes to RGB through the `image` crate.
//!
//! Grey is repeated into the three channels; alpha is dropped, not blended, as PIL's `convert("RGB")` does; palettes are
//! looked up; CMYK is converted; of 16-bit samples the high byte is kept, as libpng and PIL do. Floating-point samples are
//! refused by name: what their range means is the file's secret. Of animations the first frame counts.

use image::{ColorType, ImageDecoder};

use crate::error::Error;
use crate::foreign::isolate;
use crate::format::Format;
use crate::header;
use crate::limits::Limits;
use crate::pixels::Pixels;
use crate::probe::open;
use crate::tiff;

/// Decodes through the `image` crate. The samples of the file are read into the buffer of `pixels` and converted there, and
/// discarded if the decoder panics.
pub(crate) fn decode(format: Format, bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    // Refuses an image beyond the limits before its decoder is entered.
    if let Some(info) = header::probe(format, bytes, limits) {
        info?;
    }
    let result = isolate(format, || match format {
        #[cfg(feature = "jxl")]
        Format::Jxl => crate::jxl::decode(bytes, limits, pixels),
        #[cfg(feature = "jp2")]
        Format::Jp2 => crate::jp2::decode(bytes, limits, pixels),
        #[allow(unreachable_patterns, reason = "features decide which formats have a decoder")]
        Format::Avif | Format::Heif | Format::Jxl | Format::Jp2 => Err(not_decoded(format)),
        Format::Tiff if tiff::decode(bytes, limits, pixels)? => Ok(()),
        _ => read(format, bytes, limits, pixels),
    });
    if matches!(result, Err(Error::Panic { .. })) {
        *pixels = Pixels::default();
    }
    result
}

fn not_decoded(format: Format) -> Error {
    let reason = match format {
        Format::Jxl => "this build is without the feature `jxl`",
        Format::Jp2 => "this build is without the feature `jp2`",
        Format::Avif => "no AVIF decoder in Rust is fit to use; convert it to JPEG, PNG, WebP or JPEG XL",
        _ => "no HEIF decoder in Rust is fit to use; convert it to JPEG, PNG, WebP or JPEG XL",
    };
    Error::NotDecoded { format, reason }
}

fn read(format: Format, bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
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
pub(crate) fn spread<const N: usize>(data: &mut [u8], count: usize, at: usize) {
    for i in (0..count).rev() {
        let v = data[i * N + at];
        data[i * 3..i * 3 + 3].fill(v);
    }
}

/// Pixels of `N` > 3 bytes shrink to the three bytes `at`, from the first to the last.
pub(crate) fn pick<const N: usize>(data: &mut [u8], count: usize, at: [usize; 3]) {
    for i in 0..count {
        let rgb = at.map(|k| data[i * N + k]);
        data[i * 3..i * 3 + 3].copy_from_slice(&rgb);
    }
}
