//! Conversion to PNG of formats that `pack` does not store: Netpbm, QOI, ICO and TGA. Pixels, bits and alpha stay the same. Of
//! Netpbm, either the picture or the numbers do, which differ for bitmaps and where samples have another range than PNG's.
//!
//! | module | content |
//! |---|---|
//! | `netpbm` | PBM, PGM, PPM and PAM |
//! | `ico` | ICO: its largest image |
//! | `tga` | TGA |
//! | `raster` | the decoded image, written as PNG |
//!
//! QOI is decoded by the `image` crate.

mod ico;
mod netpbm;
mod raster;
mod tga;

use std::borrow::Cow;
use std::io::Cursor;

use image::{ColorType, ImageDecoder};

use crate::codecs::panics::catch_panic;
use crate::error::Error;
use crate::format::{ConvertedFormat, Format};
use crate::limits::Limits;
use raster::Raster;

/// What the pixels of files with an extension may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtensionPixels {
    /// One sample a pixel: grey, labels or depths.
    Gray,
    /// One sample a pixel or colours.
    Any,
    /// Colours.
    Color,
}

impl ExtensionPixels {
    /// Returns whether the pixels may be colours.
    pub fn may_be_color(self) -> bool {
        self != ExtensionPixels::Gray
    }

    /// Returns whether the pixels may be labels.
    pub(crate) fn may_be_labels(self) -> bool {
        self != ExtensionPixels::Color
    }
}

/// Which samples the PNG of a Netpbm file has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Samples {
    /// Those of Pillow's picture: scaled to the range of PNG, and 1 of a bitmap is black.
    Picture,
    /// The numbers in the file.
    Numbers,
}

/// The size of an image that is to be converted.
#[derive(Clone, Copy)]
struct Size {
    width: u32,
    height: u32,
    /// Bytes of a pixel once decoded, rounded up.
    pixel_bytes: u8,
    /// The length of the shortest file with this number of pixels.
    least_bytes: u64,
}

impl ConvertedFormat {
    /// Extensions of files in these formats, and what their pixels may be. Those of grey only are last.
    pub const EXTENSIONS: [(&'static str, ExtensionPixels); 8] = [
        ("ppm", ExtensionPixels::Color),
        ("pnm", ExtensionPixels::Any),
        ("pam", ExtensionPixels::Any),
        ("qoi", ExtensionPixels::Color),
        ("ico", ExtensionPixels::Color),
        ("tga", ExtensionPixels::Any),
        ("pgm", ExtensionPixels::Gray),
        ("pbm", ExtensionPixels::Gray),
    ];

    /// Detects the format of a file from its content, or from its first 22 bytes. TGA has no signature: it is detected if the header
    /// is plausible and `name` ends with `.tga`, or the file with TGA's footer.
    pub fn detect(bytes: &[u8], name: Option<&str>) -> Option<Self> {
        match bytes {
            [b'P', b'1'..=b'7' | b'F' | b'f', after, ..] if after.is_ascii_whitespace() || *after == b'#' => {
                Some(ConvertedFormat::Netpbm)
            }
            [b'q', b'o', b'i', b'f', ..] => Some(ConvertedFormat::Qoi),
            _ if ico::is(bytes) => Some(ConvertedFormat::Ico),
            _ if tga::is(bytes, name) => Some(ConvertedFormat::Tga),
            _ => None,
        }
    }

    /// Converts an image to PNG as a picture. The pixels are those of Pillow, at the depth of the file: 16-bit samples keep 16 bits, bitmaps one
    /// bit, palettes of TGA stay palettes. Samples with another largest value than 255 or 65535 are scaled, as in Pillow. A PNG
    /// in an ICO is returned as it is.
    ///
    /// # Errors
    /// [`Error::Conversion`] if the file is damaged or of a kind that is not read; [`Error::Limit`], before its pixels are decoded.
    pub fn to_png<'a>(self, bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>, Error> {
        self.convert(bytes, Samples::Picture, limits)
    }

    /// Converts an image to PNG whose samples are the numbers in the file, such as labels or depths: Netpbm is not scaled, but has
    /// 8 bits if its largest value is up to 255, otherwise 16; bitmaps have 8 bits, and 1 stays 1. Other formats as
    /// [`to_png`](Self::to_png).
    ///
    /// # Errors
    /// As [`to_png`](Self::to_png).
    pub fn to_png_unscaled<'a>(self, bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>, Error> {
        self.convert(bytes, Samples::Numbers, limits)
    }

    fn convert<'a>(self, bytes: &'a [u8], samples: Samples, limits: &Limits) -> Result<Cow<'a, [u8]>, Error> {
        let Size { width, height, pixel_bytes, least_bytes } = self.size(bytes)?;
        limits.check(Format::Png, width, height, pixel_bytes.max(3))?;
        if (bytes.len() as u64) < least_bytes {
            return Err(self.error("its data ends early"));
        }
        if self == ConvertedFormat::Ico
            && let Some(png) = ico::png(bytes)?
        {
            return Ok(Cow::Borrowed(png));
        }
        catch_panic(Format::Png, || match self {
            ConvertedFormat::Netpbm => netpbm::decode(bytes, samples),
            ConvertedFormat::Qoi => qoi(bytes),
            ConvertedFormat::Ico => ico::decode(bytes, limits),
            ConvertedFormat::Tga => tga::decode(bytes),
        })?
        .encode()
        .map(Cow::Owned)
    }

    /// Returns an upper bound of the bytes that converting an image takes, the PNG included.
    pub(crate) fn scratch_bytes(self, bytes: &[u8]) -> Option<(u32, u32, u64)> {
        let Size { width, height, pixel_bytes, .. } = self.size(bytes).ok()?;
        let pixels = u64::from(width) * u64::from(height) * u64::from(pixel_bytes.max(3));
        // The pixels, the PNG, the same uncompressed if that is shorter, and what a decoder keeps.
        Some((width, height, pixels.saturating_mul(4).saturating_add(bytes.len() as u64 + (1 << 20))))
    }

    fn size(self, bytes: &[u8]) -> Result<Size, Error> {
        let size = match self {
            ConvertedFormat::Netpbm => netpbm::size(bytes),
            ConvertedFormat::Qoi => match bytes.first_chunk::<14>() {
                Some([_, _, _, _, a, b, c, d, e, f, g, h, ..]) => {
                    let (width, height) = (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]));
                    // A byte codes at most 62 pixels.
                    let least_bytes = 14 + u64::from(width) * u64::from(height) / 62;
                    Ok(Size { width, height, pixel_bytes: 4, least_bytes })
                }
                None => Err(self.error("the header is cut off")),
            },
            ConvertedFormat::Ico => ico::size(bytes),
            ConvertedFormat::Tga => tga::size(bytes),
        }?;
        match (size.width, size.height) {
            (0, _) | (_, 0) => Err(self.error("it has no pixels")),
            _ => Ok(size),
        }
    }

    fn error(self, problem: impl Into<Cow<'static, str>>) -> Error {
        Error::Conversion { format: self, problem: problem.into() }
    }
}

fn qoi(bytes: &[u8]) -> Result<Raster, Error> {
    let damaged = |_| ConvertedFormat::Qoi.error("its data is damaged or cut off");
    let decoder = image::codecs::qoi::QoiDecoder::new(Cursor::new(bytes)).map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    let color = match decoder.color_type() {
        ColorType::Rgba8 => png::ColorType::Rgba,
        _ => png::ColorType::Rgb,
    };
    let mut raster = Raster::new(width, height, color, png::BitDepth::Eight);
    decoder.read_image(&mut raster.data).map_err(damaged)?;
    Ok(raster)
}
