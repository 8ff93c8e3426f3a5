//! Converts an image for storage: keeps the file's bytes unless the image is resized or stored raw.

use crate::{JpegLayout, Options, PixelStore, Reason, Resize};
use shardtool_decode::{
    self as decode, DecodeBudget, DecodeOptions, Depth, EncodedImage, Format, ImageInfo, Orientation, Pixels,
    encode_jpeg, encode_raw_zstd, reduce_longer, reduce_shorter, resize, strip_metadata,
};
use shardtool_host::scratch_pool::Admitted;
use std::borrow::Cow;

/// An image as stored.
pub(crate) struct StoredImage<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) format: Format,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) channels: u32,
    pub(crate) orientation: u32,
    /// Whether it was decoded although it is cut or damaged.
    pub(crate) filled: bool,
    /// Whether metadata was removed from it.
    pub(crate) stripped: bool,
    /// Whether 16 bits became 8, or alpha was removed.
    pub(crate) reduced: bool,
}

/// Decoded pixels of a program: `[height, width, channels]` u8, top row first, upright.
#[derive(Debug, Clone, Copy)]
pub struct PixelArray<'a> {
    data: &'a [u8],
    width: u32,
    height: u32,
    channels: u8,
    jpeg: bool,
}

impl<'a> PixelArray<'a> {
    /// Wraps pixels of 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) channels. With `jpeg`, they are stored as JPEG in
    /// the writer's quality, otherwise as PNG. Returns `None` if `data` is not `height * width * channels` bytes.
    pub fn new(data: &'a [u8], width: u32, height: u32, channels: u8, jpeg: bool) -> Option<Self> {
        let bytes = u64::from(width) * u64::from(height) * u64::from(channels);
        let good = (1..=4).contains(&channels) && data.len() as u64 == bytes;
        good.then_some(PixelArray { data, width, height, channels, jpeg })
    }

    /// Returns width and height in pixels.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }
}

/// Encodes the array as a PNG file.
fn encode_png(array: &PixelArray<'_>) -> Vec<u8> {
    let mut file = vec![];
    let mut encoder = png::Encoder::new(&mut file, array.width, array.height);
    encoder.set_depth(png::BitDepth::Eight);
    // Files are about 10 % larger than by default, but PNG encoding bounds the rate of writing arrays.
    encoder.set_compression(png::Compression::Fast);
    encoder.set_color(match array.channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(array.data));
    written.expect("into a Vec, as many bytes as the header says");
    file
}

/// Converts images, reusing its buffers.
#[derive(Default)]
pub(crate) struct ImageConverter {
    pixels: Pixels,
    encoded: Vec<u8>,
    /// Memory of the image that is being converted.
    admitted: Option<Admitted<'static>>,
}

impl ImageConverter {
    /// Converts an image file for storage. Decoded pixels are RGB, with the EXIF orientation applied. An image that
    /// needs no conversion keeps its bytes.
    ///
    /// # Errors
    /// The reason why the image cannot be stored.
    pub(crate) fn store<'a>(
        &'a mut self,
        file: &'a [u8],
        info: &ImageInfo,
        options: &Options,
    ) -> Result<StoredImage<'a>, Reason> {
        let upright = Orientation::from_exif(info.orientation).size((info.width, info.height));
        let size = match options.resize {
            Some(Resize::Shorter(shorter)) => reduce_shorter(upright, shorter),
            Some(Resize::MaxSide(longer)) => reduce_longer(upright, longer),
            None => upright,
        };
        // Images of one pack are turned upright all, or none.
        let turns = options.resize.is_some() && info.orientation != 1;
        let keeps = options.pixels == PixelStore::Encoded && size == upright && !turns;
        let decoding = DecodeOptions::default()
            .with_limits(options.limits)
            .with_apply_orientation(true)
            .with_float_range(options.float_range)
            .with_truncated(options.truncated);
        if !keeps || (options.jpeg == JpegLayout::Optimize && info.format == Format::Jpeg) {
            self.admitted = Some(DecodeBudget::of_process().admit(file, &decoding)?);
        }
        if keeps {
            let stripped = if options.strip_metadata { strip_metadata(file)? } else { Cow::Borrowed(file) };
            let is_stripped = matches!(stripped, Cow::Owned(_));
            let bytes = match stripped {
                Cow::Borrowed(file) => file,
                Cow::Owned(stripped) => {
                    self.encoded = stripped;
                    &self.encoded
                }
            };
            return Ok(StoredImage {
                bytes,
                format: info.format,
                width: info.width,
                height: info.height,
                channels: info.channels.into(),
                orientation: info.orientation.into(),
                filled: false,
                stripped: is_stripped,
                reduced: false,
            });
        }
        let filled = decode::decode_into(file, &decoding, &mut self.pixels)?;
        Ok(StoredImage { filled, reduced: loses_in_rgb8(file, info), ..self.store_decoded(size, options)? })
    }

    /// Returns the memory of the last image, except what may be kept for the next one.
    pub(crate) fn release(&mut self) {
        if self.admitted.take().is_some() {
            let kept = DecodeBudget::of_process().kept_bytes();
            if self.pixels.data.capacity() + self.encoded.capacity() > kept {
                (self.pixels, self.encoded) = Default::default();
            }
        }
    }

    /// Converts an array for storage: to PNG, which preserves every value, or to JPEG if the array requests it.
    /// Resizing and raw storage are as for image files.
    ///
    /// # Errors
    /// The reason why the array cannot be stored.
    pub(crate) fn store_pixels<'a>(
        &'a mut self,
        array: &PixelArray<'_>,
        options: &Options,
    ) -> Result<StoredImage<'a>, Reason> {
        let PixelArray { width, height, channels, .. } = *array;
        if !(1..=65535).contains(&width) || !(1..=65535).contains(&height) {
            return Err(decode::Error::Side { width, height }.into());
        }
        let size = match options.resize {
            Some(Resize::Shorter(shorter)) => reduce_shorter((width, height), shorter),
            Some(Resize::MaxSide(longer)) => reduce_longer((width, height), longer),
            None => (width, height),
        };
        let keep = options.pixels == PixelStore::Encoded && size == (width, height);
        if keep && !array.jpeg {
            self.encoded = encode_png(array);
            let channels = channels.into();
            return Ok(StoredImage {
                bytes: &self.encoded,
                format: Format::Png,
                width,
                height,
                channels,
                orientation: 1,
                filled: false,
                stripped: false,
                reduced: false,
            });
        }
        if channels == 3 {
            (self.pixels.width, self.pixels.height) = (width, height);
            self.pixels.data.clear();
            self.pixels.data.extend_from_slice(array.data);
        } else {
            let decoding = DecodeOptions::default().with_limits(options.limits);
            decode::decode_into(&encode_png(array), &decoding, &mut self.pixels)?;
        }
        Ok(StoredImage { reduced: has_alpha(channels), ..self.store_decoded(size, options)? })
    }

    /// Converts the decoded pixels, resized to `size`.
    fn store_decoded(&mut self, size: (u32, u32), options: &Options) -> Result<StoredImage<'_>, Reason> {
        if size != (self.pixels.width, self.pixels.height) {
            self.pixels = resize(self.pixels.view()?, size)?;
        }
        let (bytes, format) = match options.pixels {
            PixelStore::Raw => (&self.pixels.data, Format::Raw),
            PixelStore::RawZstd { level } => {
                self.encoded = encode_raw_zstd(self.pixels.view()?, level)?;
                (&self.encoded, Format::RawZstd)
            }
            PixelStore::Encoded => {
                self.encoded = encode_jpeg(self.pixels.view()?, options.quality)?;
                (&self.encoded, Format::Jpeg)
            }
        };
        let (width, height) = (self.pixels.width, self.pixels.height);
        let (channels, orientation) = (3, 1);
        let (filled, stripped, reduced) = (false, false, false);
        Ok(StoredImage { bytes, format, width, height, channels, orientation, filled, stripped, reduced })
    }
}

/// Returns whether an image has samples of 16 bits, or alpha, so that RGB of 8 bits holds less.
fn loses_in_rgb8(file: &[u8], info: &ImageInfo) -> bool {
    match EncodedImage::parse(file).ok().and_then(|image| image.stored_samples()) {
        Some(samples) => samples.format.depth == Depth::Sixteen || has_alpha(info.channels),
        // Four channels of a TIFF are the colours of CMYK; samples of grey that are computed have more than 8 bits.
        None if info.format == Format::Tiff => info.channels == 1,
        // A GIF always counts as one with alpha.
        None => !matches!(info.format, Format::Jpeg | Format::Gif) && has_alpha(info.channels),
    }
}

fn has_alpha(channels: u8) -> bool {
    matches!(channels, 2 | 4)
}
