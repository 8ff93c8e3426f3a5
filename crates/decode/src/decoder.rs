//! Decodes images of any format to RGB: whole, or the region that a geometry needs.

use crate::codecs::{self, CodecOptions};
use crate::decode_options::DecodeOptions;
use crate::encoded::EncodedImage;
use crate::error::Error;
use crate::format::Format;
use crate::jpeg::Jpeg;
use crate::pixels::Pixels;
use crate::probe::probe;
use crate::region::{DecodedRegion, RegionOptions};
use crate::sniff::sniff;
use crate::transform::geometry::Geometry;
use crate::transform::orientation::Orientation;

/// Decodes an image to `[H, W, 3]` u8 RGB. The format is detected from the content.
///
/// ```
/// use shardtool_decode::{DecodeOptions, decode};
///
/// // A bitmap of 2x1 pixels: blue and green, stored as BGR.
/// let mut bmp = b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
/// bmp.extend([0; 24]);
/// bmp.extend([255, 0, 0, 0, 255, 0, 0, 0]);
///
/// let pixels = decode(&bmp, &DecodeOptions::default())?;
/// assert_eq!((pixels.width, pixels.height), (2, 1));
/// assert_eq!(pixels.data, [0, 0, 255, 0, 255, 0]);
/// # Ok::<(), shardtool_decode::Error>(())
/// ```
///
/// # Errors
/// As [`Decoder::decode_into`].
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Pixels, Error> {
    let mut pixels = Pixels::default();
    decode_into(bytes, options, &mut pixels)?;
    Ok(pixels)
}

/// Decodes an image into `pixels`, whose allocation is reused. After an error the content of `pixels` is unspecified.
/// For many images use a [`Decoder`], which also reuses its other memory. Returns whether the image is a JPEG that
/// [`Truncated::Fill`](crate::Truncated::Fill) filled.
///
/// # Errors
/// As [`Decoder::decode_into`].
pub fn decode_into(bytes: &[u8], options: &DecodeOptions, pixels: &mut Pixels) -> Result<bool, Error> {
    Decoder::default().decode_into(bytes, options, pixels)
}

/// Decodes images and keeps its memory from one to the next. Use one per thread. Decoding a JPEG allocates nothing if an
/// earlier one was at least as large; decoders of other formats allocate for each image.
#[derive(Default)]
pub struct Decoder {
    jpeg: Jpeg,
    pixels: Pixels,
}

impl Decoder {
    /// Decodes an image into `pixels`, whose allocation is reused. After an error the content of `pixels` is unspecified.
    /// The pixels of a JPEG are equal to libjpeg-turbo's; a truncated JPEG is an error by default. Returns whether the image is a JPEG
    /// that [`Truncated::Fill`](crate::Truncated::Fill) filled.
    ///
    /// # Errors
    /// If the data is damaged or truncated, uses an unsupported feature, or exceeds a limit.
    pub fn decode_into(&mut self, bytes: &[u8], options: &DecodeOptions, pixels: &mut Pixels) -> Result<bool, Error> {
        let filled = match sniff(bytes).ok_or_else(|| Error::unknown(bytes))? {
            Format::Jpeg => self.jpeg.whole(bytes, options, pixels)?,
            format => {
                codecs::decode(format, bytes, &CodecOptions::from(options), pixels)?;
                false
            }
        };
        if options.apply_orientation {
            Orientation::from_exif(probe(bytes, &options.limits)?.orientation).apply(pixels);
        }
        Ok(filled)
    }

    /// Decodes at least the pixels that `geometry` needs. The region is valid until the next call.
    ///
    /// Of a JPEG only a rectangle is decoded, reduced as `options` allow. `entries` are the entry points that the index
    /// stores for the image; they are hints and ignored if they do not fit. Of a PNG that is not interlaced, and of a
    /// WebP with the feature `libwebp`, the rows below are not decoded. Other formats are decoded whole.
    ///
    /// Damage outside the region is not detected.
    ///
    /// # Errors
    /// As [`Decoder::decode_into`]; [`Error::SizeMismatch`] if the image has another size than the geometry was planned
    /// for, for JPEGs before anything is decoded.
    pub fn decode_region(
        &mut self,
        bytes: &[u8],
        entries: Option<&[u8]>,
        geometry: &Geometry,
        options: &RegionOptions,
    ) -> Result<DecodedRegion<'_>, Error> {
        let image = EncodedImage::parse(bytes)?;
        self.decode_parsed_region(&image, entries, std::slice::from_ref(geometry), options)
    }

    /// As [`Decoder::decode_region`], for an image whose header is parsed already, of which several geometries each need a
    /// part. Decodes the smallest rectangle around all parts, as little reduced as any of them needs.
    ///
    /// # Errors
    /// As [`Decoder::decode_region`].
    pub fn decode_parsed_region(
        &mut self,
        image: &EncodedImage<'_>,
        entries: Option<&[u8]>,
        geometries: &[Geometry],
        options: &RegionOptions,
    ) -> Result<DecodedRegion<'_>, Error> {
        let bytes = image.bytes();
        match (image.jpeg(), image.format()) {
            (Some(jpeg), _) => self.jpeg.region(jpeg, entries, geometries, options, &mut self.pixels),
            (None, Some(format)) => codecs::decode_region(format, bytes, geometries, options, &mut self.pixels),
            (None, None) => Err(Error::unknown(bytes)),
        }
    }

    /// The most bytes of memory that a decoder's tables take, which it always keeps.
    pub const TABLE_BYTES: usize = shardtool_jpeg::Decoder::TABLE_BYTES;

    /// Returns the memory kept for the next image in bytes, without the tables ([`Decoder::TABLE_BYTES`]).
    pub fn held_bytes(&self) -> usize {
        self.jpeg.held_bytes() + self.pixels.data.capacity()
    }

    /// Frees the memory if it exceeds `bytes`, for instance after an exceptionally large image.
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
