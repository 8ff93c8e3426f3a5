//! RGB back to JPEG, for `pack` when it makes images smaller.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};

use crate::error::Error;
use crate::pixels::PixelsRef;

/// Encodes pixels as a baseline JPEG of `quality` 1 to 100 (the scale of libjpeg) in one interleaved scan, the only kind
/// that entry points exist for; below quality 90 with colour at half resolution (4:2:0), as is common.
///
/// Through `jpeg-encoder`, not the `image` crate's own encoder: that one always keeps colour at full resolution, so its
/// files are larger and, having twice the blocks, slower to decode in every epoch. Huffman tables made for the image are
/// left off, since `jpeg-encoder` then writes a scan for each component.
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
    // Its default keeps one sample of four, which costs thin coloured lines.
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.encode(pixels.data(), w, h, ColorType::Rgb).map_err(|source| Error::Encode { source })?;
    Ok(jpeg)
}
