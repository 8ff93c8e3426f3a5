//! Encodes RGB as JPEG, for `pack --resize`. Built with the feature `encode`.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};

use crate::error::Error;
use crate::pixels::PixelsRef;

/// Encodes pixels as a baseline JPEG of `quality` 1 to 100, on libjpeg's scale. Below quality 90 the chroma is subsampled
/// (4:2:0), as is common.
///
/// The JPEG has one interleaved scan, the only kind with entry points. That excludes optimised Huffman tables, with which
/// `jpeg-encoder` writes one scan per component. The `image` crate's own encoder never subsamples, so its files are larger
/// and slower to decode.
///
/// # Errors
/// [`Error::Quality`] if `quality` is out of range; [`Error::Side`] if a side is longer than JPEG's 65,535 pixels;
/// [`Error::Encode`] if the encoder fails.
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
    // The default keeps one sample of four, which loses thin coloured lines.
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.encode(pixels.data(), w, h, ColorType::Rgb).map_err(|source| Error::Encode { source: source.into() })?;
    Ok(jpeg)
}
