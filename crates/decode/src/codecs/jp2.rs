//! Decodes JPEG 2000 with `hayro-jpeg2000`, which yields floating-point samples. They are rounded to integers as in OpenJPEG, and
//! to 8 bits as in Pillow.

use hayro_jpeg2000::{ComponentData, DecodeSettings, DecoderContext, Image};

use super::decoder_error;
use super::to_rgb::cmyk_to_rgb;
use crate::error::Error;
use crate::format::Format;
use crate::header::{jp2_codestream, jp2_color};
use crate::limits::Limits;
use crate::pixels::Pixels;

/// Decodes an image. Call it inside
/// [`catch_panic`](super::panics::catch_panic).
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let color = jp2_color(bytes);
    if color.high_throughput {
        return Err(unsupported("high-throughput block coding (HTJ2K)"));
    }
    let (cmyk, ycbcr) = match color.enumerated {
        Some(CMYK) => (true, false),
        Some(SYCC) => (false, true),
        // The values of ROMM RGB, and of a profile, are used as they are.
        Some(SRGB | GRAY | E_SRGB | ROMM_RGB) => (false, false),
        // Without a container, chroma of fewer samples shows YCbCr.
        None if !color.chroma_subsampled || color.bare => (false, color.chroma_subsampled),
        None => return Err(unsupported("chroma of fewer samples and no colour space that says whether it is YCbCr")),
        Some(_) => return Err(unsupported("colours other than grey, RGB, sYCC and CMYK")),
    };
    // The decoder would convert samples that are not rounded.
    let declared = if ycbcr { declared_rgb(bytes) } else { None };
    let bytes = declared.as_deref().unwrap_or(bytes);
    let settings = DecodeSettings { resolve_palette_indices: true, strict: true, ..DecodeSettings::default() };
    let image = Image::new(bytes, &settings).map_err(damaged)?;
    let (width, height) = (image.width(), image.height());
    if (width, height) != color.size {
        return Err(unsupported("a size of which every channel has only a part of the samples"));
    }
    let channels = image.color_space().num_channels().saturating_add(image.has_alpha().into());
    limits.check(Format::Jp2, width, height, channels.saturating_mul(CHANNEL).saturating_add(SHARED))?;
    let mut context = DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(damaged)?;
    let count = width as usize * height as usize;
    let components = decoded.components();
    if components.iter().any(|component| component.samples().len() != count) {
        return Err(unsupported("channels of different sizes"));
    }
    pixels.data.clear();
    pixels.data.resize(count * 3, 0);
    let out = pixels.data.as_chunks_mut::<3>().0;
    match components {
        [gray] | [gray, _] => samples(gray).zip(out).for_each(|(value, out)| *out = [value; 3]),
        [c, m, y, k] if cmyk => {
            let inks = samples(c).zip(samples(m)).zip(samples(y)).zip(samples(k));
            inks.zip(out).for_each(|((((c, m), y), k), out)| *out = cmyk_to_rgb([c, m, y, k]));
        }
        [red, green, blue] | [red, green, blue, _] if !cmyk => {
            for (channel, component) in [red, green, blue].into_iter().enumerate() {
                samples(component).zip(&mut *out).for_each(|(value, out)| out[channel] = value);
            }
            if ycbcr {
                out.iter_mut().for_each(|pixel| *pixel = ycbcr_to_rgb(*pixel));
            }
        }
        _ => return Err(unsupported("a number of channels that its colours do not have")),
    }
    (pixels.width, pixels.height) = (width, height);
    Ok(())
}

/// Bytes a pixel that decoding takes at most, for each channel and in addition: coefficients and samples of 32 bits, copies of
/// them, and the result. 16 (grey), 24 (RGB) and 41 (RGB and alpha) in all were measured with 12 megapixels.
const CHANNEL: u8 = 10;
const SHARED: u8 = 6;

/// Enumerated colour spaces (ITU-T T.800, table I.10, and T.801, table M.25).
const CMYK: u64 = 12;
const SRGB: u64 = 16;
const GRAY: u64 = 17;
const SYCC: u64 = 18;
const E_SRGB: u64 = 20;
const ROMM_RGB: u64 = 21;

/// Returns the samples of a component in 8 bits: deeper ones are rounded, others scaled.
fn samples(component: &ComponentData) -> impl Iterator<Item = u8> {
    let bits = u32::from(component.bit_depth());
    let max = u32::MAX >> (32 - bits.clamp(1, 32));
    component.samples().iter().map(move |sample| {
        // Half way between two integers OpenJPEG rounds to the even one. The conversion is limited to 0 and the largest u32.
        let value = (sample.round_ties_even() as u32).min(max);
        match bits {
            8 => value as u8,
            9.. => (value.saturating_add(1 << (bits - 9)) >> (bits - 8)).min(255) as u8,
            _ => ((value * 255 + max / 2) / max) as u8,
        }
    })
}

/// Returns the codestream in a container that says that it is RGB, so that the samples are not converted; `None` for a palette.
fn declared_rgb(bytes: &[u8]) -> Option<Vec<u8>> {
    let codestream = jp2_codestream(bytes)?;
    let mut file =
        b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 \0\0\0\0jp2 \0\0\0\x17jp2h\0\0\0\x0fcolr\x01\0\0".to_vec();
    file.extend((SRGB as u32).to_be_bytes());
    // The last box extends to the end of the file.
    file.extend(b"\0\0\0\0jp2c");
    file.extend(codestream);
    Some(file)
}

/// Converts YCbCr to RGB (T.800, I.5.3.3, as in ITU-R BT.601), rounded to nearest.
fn ycbcr_to_rgb([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let [y, cb, cr] = [f32::from(y), f32::from(cb) - 128.0, f32::from(cr) - 128.0];
    [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb].map(|value| value.round() as u8)
}

fn unsupported(feature: &'static str) -> Error {
    Error::Unsupported { format: Format::Jp2, feature }
}

fn damaged(source: hayro_jpeg2000::DecodeError) -> Error {
    decoder_error(Format::Jp2, source)
}
