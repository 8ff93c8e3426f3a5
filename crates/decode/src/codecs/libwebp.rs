//! Decodes WebP with libwebp: lossy images take it less than half the time of the `image` crate.
// The interface of a C library.
#![allow(unsafe_code)]

use std::ops::Range;

use libwebp_sys::{
    VP8StatusCode, WEBP_CSP_MODE, WebPBitstreamFeatures, WebPDecode, WebPDecoderConfig, WebPGetFeatures, WebPRGBABuffer,
};

use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::pixels::Pixels;

/// Rows decoded above and below those needed, because upsampling of chroma reads the rows next to them. libwebp treats the
/// edges of a part as edges of the image, so that these rows are wrong.
const MARGIN: u32 = 2;

/// Decodes an image, or at least the rows `rows` of it, to RGB without its alpha. Rows below are not decoded. Returns the first
/// row decoded, and the rows of the whole image; `None` for what the `image` crate has to decode: animations without a first frame,
/// and images that libwebp refuses, so that their errors do not depend on the decoder.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &Limits,
    rows: Option<Range<u32>>,
    pixels: &mut Pixels,
) -> Result<Option<(u32, u32)>, Error> {
    let Ok(mut config) = WebPDecoderConfig::new() else { return Ok(None) };
    let Some(features) = features(bytes, &mut config) else { return Ok(None) };
    let (Ok(width), Ok(height)) = (u32::try_from(features.width), u32::try_from(features.height)) else {
        return Ok(None);
    };
    if features.has_animation != 0 {
        return Ok(None);
    }
    limits.check(Format::WebP, width, height, if features.has_alpha != 0 { 4 } else { 3 })?;
    let rows = rows.filter(|rows| rows.end <= height).unwrap_or(0..height);
    // From an even row, because libwebp starts at one.
    let decoded = (rows.start.saturating_sub(MARGIN) & !1)..(rows.end + MARGIN).min(height);
    // The limits were checked, so the product does not overflow.
    let stride = width as usize * 3;
    let len = decoded.len() * stride;
    pixels.data.reserve_exact(len.saturating_sub(pixels.data.len()));
    pixels.data.resize(len, 0);
    config.options.use_cropping = 1;
    (config.options.crop_left, config.options.crop_top) = (0, decoded.start as i32);
    (config.options.crop_width, config.options.crop_height) = (width as i32, decoded.len() as i32);
    config.output.colorspace = WEBP_CSP_MODE::MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = WebPRGBABuffer { rgba: pixels.data.as_mut_ptr(), stride: stride as i32, size: len };
    // SAFETY: `bytes` is valid for its length. libwebp writes only to the buffer in `config`, of `size` bytes, and refuses one
    // that is smaller than the rows of `stride` bytes that it writes.
    let status = unsafe { WebPDecode(bytes.as_ptr(), bytes.len(), &mut config) };
    if status != VP8StatusCode::VP8_STATUS_OK {
        return Ok(None);
    }
    let above = (rows.start - decoded.start) as usize * stride;
    if above > 0 {
        pixels.data.copy_within(above..above + rows.len() * stride, 0);
    }
    pixels.data.truncate(rows.len() * stride);
    (pixels.width, pixels.height) = (width, rows.len() as u32);
    Ok(Some((rows.start, height)))
}

/// Reads the header of an image; `None` if libwebp does not read it.
fn features(bytes: &[u8], config: &mut WebPDecoderConfig) -> Option<WebPBitstreamFeatures> {
    // SAFETY: `bytes` is valid for its length; the result is written to a field of `config`.
    let status = unsafe { WebPGetFeatures(bytes.as_ptr(), bytes.len(), &mut config.input) };
    (status == VP8StatusCode::VP8_STATUS_OK).then_some(config.input)
}
