//! Decodes the first image of a TIFF or BigTIFF (TIFF 6.0) to RGB, as Pillow does.
//!
//! | module | content |
//! |---|---|
//! | `directory` | header and directories (IFDs): tags and their values |
//! | `tags` | names of tags and of their values |
//! | `layout` | size, samples and chunks of the image, validated from the tags |
//! | `error` | errors |
//! | `work` | refuses files whose chunks take far more work than their length or the size of the image explains |
//! | `codec` | decompresses one strip or tile |
//! | `fax`, `jpeg` | fax data (ITU-T T.4 and T.6), and JPEG compression |
//! | `samples` | undoes the predictor and converts samples to one byte each, or to 16 bits |
//! | `color` | converts pixels of one byte per sample to RGB |
//! | `ycbcr` | converts YCbCr, whose chroma may have fewer samples |
//! | `deep` | converts pixels of 16-bit samples to grey or RGB of 16 bits |
//!
//! Compressed data is decoded by the crates `flate2`, `weezl` and `zstd`, by our JPEG decoder, and by `fax`.

mod codec;
mod color;
mod deep;
pub(crate) mod directory;
mod error;
mod fax;
mod jpeg;
mod layout;
mod samples;
pub(crate) mod tags;
mod work;
mod ycbcr;

use super::CodecOptions;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::image_info::ImageInfo;
use crate::limits::Limits;
use crate::pixel_format::{Depth, PixelFormat};
use crate::pixels::Pixels;
use crate::stored_samples::{FEW_BITS, StoredSamples};
use codec::Codec;
use deep::DeepColor;
use layout::{Area, Layout};
use tags::{photometric, sample_format};
use ycbcr::{Blocks, Ycbcr};

/// Reads the header without decoding pixels.
pub(crate) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    let layout = Layout::read(bytes)?;
    limits.check(Format::Tiff, layout.width, layout.height, 3)?;
    let Layout { width, height, orientation, .. } = layout;
    Ok(ImageInfo { format: Format::Tiff, width, height, channels: layout.channels(), orientation })
}

/// Returns what the samples are; `None` if they are computed when they are decoded, as from floating-point numbers, or if the header
/// is damaged.
pub(crate) fn stored_samples(bytes: &[u8]) -> Option<StoredSamples> {
    let layout = Layout::read(bytes).ok()?;
    let palette = layout.photometric == photometric::PALETTE;
    let whole = layout.sample_format == sample_format::UNSIGNED && matches!(layout.bits, 1 | 2 | 4 | 8 | 16);
    let format = match (layout.photometric, layout.bits) {
        (photometric::WHITE_IS_ZERO | photometric::BLACK_IS_ZERO, 16) => PixelFormat::GRAY16,
        (photometric::WHITE_IS_ZERO | photometric::BLACK_IS_ZERO, _) => PixelFormat::GRAY8,
        (photometric::RGB, 16) => PixelFormat::RGB16,
        (photometric::RGB, 8) | (photometric::PALETTE, _) => PixelFormat::RGB8,
        _ => return None,
    };
    let colors = if layout.photometric == photometric::RGB { 3 } else { 1 };
    let changed = match layout.photometric {
        _ if layout.samples > colors && layout.has_alpha() => Some("an image with alpha, which is dropped"),
        _ if layout.samples > colors => Some("an image with extra samples, which are dropped"),
        photometric::WHITE_IS_ZERO => Some("an image in which 0 is white, which is inverted"),
        photometric::BLACK_IS_ZERO if layout.bits < 8 => Some(FEW_BITS),
        _ => None,
    };
    whole.then_some(StoredSamples { format, palette, changed })
}

/// Returns the largest buffer for decompressed data in bytes.
pub(crate) fn chunk_bytes(bytes: &[u8]) -> Result<u64, Error> {
    Ok(Layout::read(bytes)?.chunk_bytes())
}

/// Decodes the first image into `pixels`. Returns the format of the pixels: 8-bit RGB, or the channels of the image and 16 bits, if
/// that is the depth requested and the image has more than 8. Returns `None`, without decoding, for the kinds left to the `image`
/// crate.
pub(crate) fn decode(bytes: &[u8], options: &CodecOptions, pixels: &mut Pixels) -> Result<Option<PixelFormat>, Error> {
    let limits = &options.limits;
    let layout = Layout::read(bytes)?;
    let size @ (width, height) = (layout.width, layout.height);
    limits.check(Format::Tiff, width, height, 3)?;
    if layout.is_foreign() {
        return Ok(None);
    }
    let blocks = Blocks::of(&layout)?;
    let mut codec = Codec::new(&layout, blocks, options.float_range)?;
    let color = color::Color::new(&layout)?;
    let chunk_bytes = layout.chunk_bytes();
    if chunk_bytes > limits.max_bytes {
        let (kind, needed, allowed) = (LimitKind::Bytes, chunk_bytes, limits.max_bytes);
        return Err(Error::Limit { format: Format::Tiff, width, height, kind, needed, allowed });
    }
    // Before anything is allocated for the image.
    codec.work(bytes, color.planes())?;
    let deep = match options.pixel_format.depth {
        Depth::Eight => None,
        Depth::Sixteen => DeepColor::new(&layout),
    };
    let format = deep.as_ref().map_or(PixelFormat::RGB8, DeepColor::format);
    limits.check(Format::Tiff, width, height, format.bytes() as u8)?;
    (pixels.width, pixels.height) = size;
    pixels.data.clear();
    pixels.data.resize(format.len(size) as usize, 0);
    let out = &mut pixels.data;
    let length = layout.chunk.0.min(width) as usize * layout.chunk_samples();
    match deep {
        None if blocks.is_some() => {
            if let Some((blocks, ycbcr)) = blocks.zip(color.ycbcr()) {
                block_rows(bytes, &layout, &mut codec, blocks, ycbcr, out)?;
            }
        }
        None => {
            let mut line = vec![0; length];
            rows(bytes, &layout, &mut codec, color.planes(), |codec, plane, row, [start, end], samples| {
                codec.samples().row(row, &mut line[..samples]);
                color.write(plane, &line[..samples], &mut out[start * 3..end * 3]);
            })?;
        }
        Some(color) => {
            let mut line = vec![0; length];
            rows(bytes, &layout, &mut codec, color.planes(), |codec, plane, row, [start, end], samples| {
                codec.samples().row_16(row, &mut line[..samples]);
                color.write(plane, &line[..samples], &mut out[start * format.bytes()..end * format.bytes()]);
            })?;
        }
    }
    Ok(Some(format))
}

/// Decompresses the chunks of the first `planes` planes and calls `write` with each row in them: the plane, the packed samples,
/// the range of pixels of the image that it covers, and their number of samples.
fn rows(
    bytes: &[u8],
    layout: &Layout<'_>,
    codec: &mut Codec<'_, '_>,
    planes: usize,
    mut write: impl FnMut(&Codec<'_, '_>, usize, &mut [u8], [usize; 2], usize),
) -> Result<(), Error> {
    let mut chunk = vec![];
    for plane in 0..planes {
        for number in 0..layout.chunks_per_plane() {
            let Area { left, top, width, height } = layout.area(number);
            codec.decode(bytes, layout.chunk_of(plane, number)?, height, &mut chunk)?;
            let samples = width as usize * layout.chunk_samples();
            for (y, row) in chunk.chunks_exact_mut(codec.row_bytes()).take(height as usize).enumerate() {
                let start = (top as usize + y) * layout.width as usize + left as usize;
                write(codec, plane, row, [start, start + width as usize], samples);
            }
        }
    }
    Ok(())
}

/// Decompresses the chunks of subsampled YCbCr, and converts their blocks to RGB.
fn block_rows(
    bytes: &[u8],
    layout: &Layout<'_>,
    codec: &mut Codec<'_, '_>,
    blocks: Blocks,
    ycbcr: &Ycbcr,
    out: &mut [u8],
) -> Result<(), Error> {
    let (mut chunk, out) = (vec![], out.as_chunks_mut::<3>().0);
    let down = blocks.size.1;
    for number in 0..layout.chunks_per_plane() {
        let Area { left, top, width, height } = layout.area(number);
        codec.decode(bytes, layout.chunk_of(0, number)?, height.div_ceil(down), &mut chunk)?;
        for y in 0..height {
            let row = &chunk[(y / down) as usize * codec.row_bytes()..][..codec.row_bytes()];
            let start = (top + y) as usize * layout.width as usize + left as usize;
            blocks.row(ycbcr, row, (y % down) as usize, &mut out[start..start + width as usize]);
        }
    }
    Ok(())
}
