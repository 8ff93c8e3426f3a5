//! Bytes of any image format to RGB, all of it or what a geometry needs.

use crate::error::Error;
use crate::format::{Format, sniff};
use crate::geometry::Geometry;
use crate::jpeg::Jpeg;
use crate::library;
use crate::limits::Limits;
use crate::orientation::Orientation;
use crate::pixels::Pixels;
use crate::probe::probe;
use crate::window::{DecodePath, DecodedRegion, RegionOptions};

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
/// As [`Decoder::decode_into`].
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Pixels, Error> {
    let mut pixels = Pixels::default();
    decode_into(bytes, options, &mut pixels)?;
    Ok(pixels)
}

/// Decodes an image into `pixels`, whose allocation is reused. What stands in `pixels` after an error is unspecified.
/// For many images a [`Decoder`] is faster, which keeps the rest of its memory too.
///
/// # Errors
/// As [`Decoder::decode_into`].
pub fn decode_into(bytes: &[u8], options: &DecodeOptions, pixels: &mut Pixels) -> Result<(), Error> {
    Decoder::default().decode_into(bytes, options, pixels)
}

/// Decodes one image after the other in memory that it keeps: one for each thread. Once it has seen JPEGs as large as any
/// to come, decoding a JPEG allocates nothing; decoders of other formats allocate for each image.
#[derive(Default)]
pub struct Decoder {
    jpeg: Jpeg,
    pixels: Pixels,
}

impl Decoder {
    /// Decodes an image into `pixels`, whose allocation is reused. What stands in `pixels` after an error is unspecified.
    /// The pixels of a JPEG are those of libjpeg-turbo; one that is cut short is refused.
    ///
    /// # Errors
    /// Bad or truncated data, an unsupported feature, or the limit that the image exceeds.
    pub fn decode_into(&mut self, bytes: &[u8], options: &DecodeOptions, pixels: &mut Pixels) -> Result<(), Error> {
        match sniff(bytes).ok_or_else(|| Error::unknown(bytes))? {
            Format::Jpeg => self.jpeg.whole(bytes, &options.limits, pixels)?,
            format => library::decode(format, bytes, &options.limits, pixels)?,
        }
        if options.apply_orientation {
            Orientation::from_exif(probe(bytes, &options.limits)?.orientation).apply(pixels);
        }
        Ok(())
    }

    /// Decodes at least what `geometry` needs of an image, to be used until the next call. Of a JPEG that is a rectangle,
    /// reduced as `options` allow, and entered by `entries`, the entry points that the index has for it: hints, left
    /// aside where they do not fit. Other formats, and JPEGs that our decoder does not read (CMYK), are decoded whole.
    ///
    /// What lies outside the window is not looked at: damage there goes unnoticed.
    ///
    /// # Errors
    /// As [`Decoder::decode_into`]; [`Error::SizeMismatch`], before anything is decoded where the format allows, if the
    /// image has another size than the geometry was planned for.
    pub fn decode_region(
        &mut self,
        bytes: &[u8],
        entries: Option<&[u8]>,
        geometry: &Geometry,
        options: &RegionOptions,
    ) -> Result<DecodedRegion<'_>, Error> {
        match sniff(bytes).ok_or_else(|| Error::unknown(bytes))? {
            Format::Jpeg => self.jpeg.window(bytes, entries, geometry, options, &mut self.pixels),
            format => {
                library::decode(format, bytes, &options.limits, &mut self.pixels)?;
                let window =
                    DecodedRegion { path: DecodePath::WholeImage, ..DecodedRegion::whole_image(self.pixels.view()?) };
                geometry.check_stored(window.stored)?;
                Ok(window)
            }
        }
    }

    /// Bytes of memory that are kept for the next image, without a few fixed tables.
    pub fn held_bytes(&self) -> usize {
        self.jpeg.held_bytes() + self.pixels.data.capacity()
    }

    /// Gives memory back if more than `bytes` are held, for instance after an exceptionally large image.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.held_bytes() > bytes {
            self.jpeg.shrink();
            self.pixels = Pixels::default();
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("held_bytes", &self.held_bytes()).finish_non_exhaustive()
    }
}
