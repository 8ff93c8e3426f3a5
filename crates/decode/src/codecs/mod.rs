//! Decoders of the formats other than JPEG, and of rare JPEGs: bytes to RGB.
//!
//! | module | content |
//! |---|---|
//! | `png` | PNG |
//! | `image_crate` | formats that the `image` crate decodes |
//! | `tiff` | TIFF, decoded as Pillow does |
//! | `jxl`, `jp2` | JPEG XL and JPEG 2000, if built with the features of these names |
//! | `panics` | turns a panic of a decoder into an error of that image |
//! | `to_rgb` | conversion of pixels to RGB in place |

pub(crate) mod image_crate;
#[cfg(feature = "jp2")]
mod jp2;
#[cfg(feature = "jxl")]
mod jxl;
pub(crate) mod panics;
pub(crate) mod png;
pub(crate) mod tiff;
mod to_rgb;

use crate::decode_options::DecodeOptions;
use crate::error::Error;
use crate::float_range::FloatRange;
use crate::format::Format;
use crate::header;
use crate::limits::Limits;
use crate::pixels::Pixels;
use crate::region::RegionOptions;
use panics::catch_panic;

/// The options that these decoders use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodecOptions {
    pub(crate) limits: Limits,
    pub(crate) float_range: Option<FloatRange>,
}

impl From<&DecodeOptions> for CodecOptions {
    fn from(options: &DecodeOptions) -> Self {
        CodecOptions { limits: options.limits, float_range: options.float_range }
    }
}

impl From<&RegionOptions> for CodecOptions {
    fn from(options: &RegionOptions) -> Self {
        CodecOptions { limits: options.limits, float_range: options.float_range }
    }
}

/// Decodes a whole image into `pixels`. If the decoder panics, the content of `pixels` is discarded.
pub(crate) fn decode(format: Format, bytes: &[u8], options: &CodecOptions, pixels: &mut Pixels) -> Result<(), Error> {
    let limits = &options.limits;
    // The size limits are checked before the decoder is called.
    if let Some(info) = header::probe(format, bytes, limits) {
        info?;
    }
    let result = catch_panic(format, || match format {
        #[cfg(feature = "jxl")]
        Format::Jxl => jxl::decode(bytes, limits, pixels),
        #[cfg(feature = "jp2")]
        Format::Jp2 => jp2::decode(bytes, limits, pixels),
        #[allow(unreachable_patterns, reason = "features decide which formats have a decoder")]
        Format::Avif | Format::Heif | Format::Jxl | Format::Jp2 => Err(not_decoded(format)),
        Format::Png => png::decode(bytes, limits, pixels),
        Format::Tiff if tiff::decode(bytes, options, pixels)? => Ok(()),
        _ => image_crate::decode(format, bytes, limits, pixels),
    });
    if matches!(result, Err(Error::Panic { .. })) {
        *pixels = Pixels::default();
    }
    result
}

/// Decodes a JPEG of a kind that our decoder does not read, such as CMYK.
pub(crate) fn decode_rare_jpeg(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    decode(Format::Jpeg, bytes, &CodecOptions { limits: *limits, float_range: None }, pixels)
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

/// The error of a decoder of another crate.
fn decoder_error(format: Format, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Decoder { format, source: source.into() }
}
