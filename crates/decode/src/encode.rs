//! RGB back to JPEG, for `pack` when it makes images smaller.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use crate::error::Error;
use crate::pixels::PixelsRef;

/// Encodes pixels as a baseline JPEG of `quality` 1 to 100 (the scale of libjpeg), with Huffman tables made for the image
/// and, below quality 90, colour at half resolution (4:2:0), as every common encoder does.
///
/// Through `jpeg-encoder`, not through the `image` crate's own encoder: that one always keeps colour at full resolution
/// with the standard tables, so its files are larger and, having twice the blocks, slower to decode in every epoch.
///
/// # Errors
/// [`Error::Quality`]; [`Error::Encode`] if a side is longer than JPEG's 65,535 pixels.
pub fn encode_jpeg(pixels: PixelsRef<'_>, quality: u8) -> Result<Vec<u8>, Error> {
    if !(1..=100).contains(&quality) {
        return Err(Error::Quality { found: quality });
    }
    let (width, height) = (pixels.width(), pixels.height());
    let (Ok(w), Ok(h)) = (u16::try_from(width), u16::try_from(height)) else {
        return Err(Error::Side { width, height });
    };
    let mut jpeg = Vec::with_capacity(pixels.data().len() / 8);
    let mut encoder = Encoder::new(&mut jpeg, quality);
    encoder.set_sampling_factor(if quality < 90 { SamplingFactor::F_2_2 } else { SamplingFactor::F_1_1 });
    encoder.set_optimized_huffman_tables(true);
    encoder.encode(pixels.data(), w, h, ColorType::Rgb).map_err(|source| Error::Encode { source })?;
    Ok(jpeg)
}
