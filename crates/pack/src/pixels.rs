//! What is stored of an image: the file's own bytes, unless it is to be smaller or raw.

use crate::{Options, PixelStore, Reason, Resize};
use shardtool_decode::{
    self as decode, DecodeOptions, Format, Info, Orientation, Pixels, encode_jpeg, encode_raw_zstd, reduce_longer,
    reduce_shorter, resize,
};

/// An image as it is stored.
pub(crate) struct Stored<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) format: Format,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) channels: u32,
    pub(crate) orientation: u32,
}

/// Buffers that are used again for every image.
#[derive(Default)]
pub(crate) struct Storing {
    pixels: Pixels,
    encoded: Vec<u8>,
}

impl Storing {
    /// What is stored of an image file. Where pixels are decoded, the orientation is applied to them, and colour is
    /// RGB. An image that is small enough already keeps its file's bytes.
    ///
    /// # Errors
    /// What is wrong with the image.
    pub(crate) fn store<'a>(
        &'a mut self,
        file: &'a [u8],
        info: &Info,
        options: &Options,
    ) -> Result<Stored<'a>, Reason> {
        let upright = Orientation::from_exif(info.orientation).size((info.width, info.height));
        let size = match options.resize {
            Some(Resize::Shorter(shorter)) => reduce_shorter(upright, shorter),
            Some(Resize::MaxSide(longer)) => reduce_longer(upright, longer),
            None => upright,
        };
        if options.pixels == PixelStore::Encoded && size == upright {
            return Ok(Stored {
                bytes: file,
                format: info.format,
                width: info.width,
                height: info.height,
                channels: info.channels.into(),
                orientation: info.orientation.into(),
            });
        }
        let decoding = DecodeOptions { limits: options.limits, apply_orientation: true };
        decode::decode_into(file, &decoding, &mut self.pixels)?;
        if size != upright {
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
        Ok(Stored { bytes, format, width, height, channels: 3, orientation: 1 })
    }
}
