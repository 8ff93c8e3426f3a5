//! TIFF and BigTIFF (TIFF 6.0; the first image counts) to RGB, as Pillow reads them.
//!
//! | module | its one job |
//! |---|---|
//! | `directory` | header and first directory (IFD): tags and their values |
//! | `layout` | what the tags say about the image, validated |
//! | `codec` | one compressed strip or tile to its bytes |
//! | `samples` | bit order, predictor, and samples of any depth to one byte each |
//! | `color` | bytes of one pixel to RGB |
//!
//! The codecs are well-kept crates; JPEG is our own decoder. CMYK is left to the `image` crate.

mod codec;
mod color;
mod directory;
mod layout;
mod samples;

use crate::error::{Error, LimitKind};
use crate::format::Format;
use crate::limits::Limits;
use crate::pixels::{Pixels, rgb_len};
use crate::probe::ImageInfo;
use codec::Codec;
use layout::Layout;

/// Reads the header; decodes no pixels.
pub(crate) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageInfo, Error> {
    let layout = Layout::read(bytes)?;
    limits.check(Format::Tiff, layout.width, layout.height, 3)?;
    let Layout { width, height, orientation, .. } = layout;
    Ok(ImageInfo { format: Format::Tiff, width, height, channels: layout.channels(), orientation })
}

/// Decodes the first image. Returns false, having decoded nothing, for the kinds left to the `image` crate.
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<bool, Error> {
    let layout = Layout::read(bytes)?;
    let (width, height) = (layout.width, layout.height);
    limits.check(Format::Tiff, width, height, 3)?;
    if layout.is_cmyk() {
        return Ok(false);
    }
    let mut codec = Codec::new(&layout)?;
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
