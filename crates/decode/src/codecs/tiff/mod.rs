//! Decodes the first image of a TIFF or BigTIFF (TIFF 6.0) to RGB, as Pillow does.
//!
//! | module | content |
//! |---|---|
//! | `directory` | header and first directory (IFD): tags and their values |
//! | `tags` | names of tags and of their values |
//! | `layout` | size, samples and chunks of the image, validated from the tags |
//! | `codec` | decompresses one strip or tile |
//! | `samples` | undoes the predictor and converts samples to one byte each |
//! | `color` | converts pixels of one byte per sample to RGB |
//!
//! Compressed data is decoded by the crates `fax`, `flate2`, `weezl` and `zstd`, and by our JPEG decoder. CMYK is left to
//! the `image` crate.

mod codec;
mod color;
mod directory;
mod layout;
mod samples;
mod tags;

use super::CodecOptions;
use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::image_info::ImageInfo;
use crate::limits::Limits;
use crate::pixels::{Pixels, rgb_len};
use codec::Codec;
use layout::Layout;

/// Reads the header without decoding pixels.
pub(crate) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    let layout = Layout::read(bytes)?;
    limits.check(Format::Tiff, layout.width, layout.height, 3)?;
    let Layout { width, height, orientation, .. } = layout;
    Ok(ImageInfo { format: Format::Tiff, width, height, channels: layout.channels(), orientation })
}

/// Returns the largest buffer for decompressed data in bytes.
pub(crate) fn chunk_bytes(bytes: &[u8]) -> Result<u64, Error> {
    Ok(Layout::read(bytes)?.chunk_bytes())
}

/// Decodes the first image into `pixels`. Returns false, without decoding, for the kinds left to the `image` crate.
pub(crate) fn decode(bytes: &[u8], options: &CodecOptions, pixels: &mut Pixels) -> Result<bool, Error> {
    let limits = &options.limits;
    let layout = Layout::read(bytes)?;
    let (width, height) = (layout.width, layout.height);
    limits.check(Format::Tiff, width, height, 3)?;
    if layout.is_cmyk() {
        return Ok(false);
    }
    let mut codec = Codec::new(&layout, options.float_range)?;
    let color = color::Color::new(&layout)?;
    let chunk_bytes = layout.chunk_bytes();
    if chunk_bytes > limits.max_bytes {
        let (kind, needed, allowed) = (LimitKind::Bytes, chunk_bytes, limits.max_bytes);
        return Err(Error::Limit { format: Format::Tiff, width, height, kind, needed, allowed });
    }
    (pixels.width, pixels.height) = (width, height);
    pixels.data.clear();
    pixels.data.resize(rgb_len(width, height) as usize, 0);
    let mut chunk = vec![];
    let mut line = vec![0; layout.chunk.0.min(width) as usize * layout.chunk_samples()];
    for plane in 0..color.planes() {
        for number in 0..layout.chunks_per_plane() {
            let area = layout.area(number);
            codec.decode(bytes, layout.chunk_of(plane, number)?, area.height, &mut chunk)?;
            let samples = &mut line[..area.width as usize * layout.chunk_samples()];
            for (y, row) in chunk.chunks_exact_mut(codec.row_bytes()).take(area.height as usize).enumerate() {
                codec.samples().row(row, samples);
                let start = (area.top as usize + y) * width as usize + area.left as usize;
                color.write(plane, samples, &mut pixels.data[start * 3..(start + area.width as usize) * 3]);
            }
        }
    }
    Ok(true)
}
