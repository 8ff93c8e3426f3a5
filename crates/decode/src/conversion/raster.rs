//! A decoded image, as PNG stores it.

use png::{BitDepth, ColorType, Compression, Encoder};

use crate::error::Error;

/// The samples of an image in the order of PNG: rows from the top, each of whole bytes, 16-bit samples big-endian.
pub(super) struct Raster {
    pub(super) width: u32,
    pub(super) height: u32,
    color: ColorType,
    depth: BitDepth,
    /// Red, green and blue of each index.
    pub(super) palette: Vec<u8>,
    /// The alpha of each index.
    pub(super) alpha: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl Raster {
    /// Returns a black image. The caller checked the limits.
    pub(super) fn new(width: u32, height: u32, color: ColorType, depth: BitDepth) -> Self {
        let row = (width as usize * color.samples() * depth as usize).div_ceil(8);
        let data = vec![0; row * height as usize];
        Raster { width, height, color, depth, palette: vec![], alpha: vec![], data }
    }

    /// Encodes the image as PNG. The settings are those with which `pack` stores arrays: the rate of packing matters more than the
    /// last bytes.
    pub(super) fn encode(self) -> Result<Vec<u8>, Error> {
        let failed = |source| Error::Encode { source: Box::new(source) };
        let mut file = vec![];
        let mut encoder = Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(self.color);
        encoder.set_depth(self.depth);
        encoder.set_compression(Compression::Fast);
        if self.color == ColorType::Indexed {
            encoder.set_palette(self.palette);
            if self.alpha.iter().any(|alpha| *alpha != 255) {
                encoder.set_trns(self.alpha);
            }
        }
        encoder.write_header().and_then(|mut writer| writer.write_image_data(&self.data)).map_err(failed)?;
        Ok(file)
    }
}
