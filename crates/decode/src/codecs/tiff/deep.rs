//! Converts pixels of one `u16` per sample to grey or RGB of 16 bits.

use super::layout::Layout;
use super::tags::photometric;
use crate::pixel_format::{Channels, Depth, PixelFormat};

/// The conversion for one image whose samples have more than 8 bits.
pub(super) struct DeepColor {
    channels: Channels,
    white_is_zero: bool,
    /// Samples per pixel within a chunk. Only the first ones are used.
    stride: usize,
    planar: bool,
    /// Whether red, green and blue are multiplied by alpha, the fourth sample.
    premultiplied: bool,
}

impl DeepColor {
    /// Returns the conversion; `None` if the image has no more than 8 bits, or colours that have no more.
    pub(super) fn new(layout: &Layout<'_>) -> Option<Self> {
        let channels = match layout.photometric {
            photometric::WHITE_IS_ZERO | photometric::BLACK_IS_ZERO => Channels::Gray,
            photometric::RGB if layout.samples >= 3 && (layout.is_float() || layout.bits == 16) => Channels::Rgb,
            _ => return None,
        };
        (layout.bits > 8).then(|| DeepColor {
            channels,
            white_is_zero: layout.photometric == photometric::WHITE_IS_ZERO,
            stride: layout.chunk_samples(),
            planar: layout.planar,
            premultiplied: channels == Channels::Rgb && layout.samples > 3 && layout.extra.first() == Some(&1),
        })
    }

    /// Returns the format of the pixels that it writes.
    pub(super) fn format(&self) -> PixelFormat {
        PixelFormat { channels: self.channels, depth: Depth::Sixteen }
    }

    /// Returns the number of planes that are needed.
    pub(super) fn planes(&self) -> usize {
        match self.channels {
            Channels::Rgb if self.planar => 3 + usize::from(self.premultiplied),
            _ => 1,
        }
    }

    /// Writes the pixels of a row, or the contribution of one plane to them.
    pub(super) fn write(&self, plane: usize, samples: &[u16], out: &mut [u8]) {
        let out = out.as_chunks_mut::<2>().0;
        let pixels = samples.chunks_exact(self.stride);
        match self.channels {
            Channels::Gray => pixels.zip(out).for_each(|(pixel, out)| {
                *out = if self.white_is_zero { !pixel[0] } else { pixel[0] }.to_le_bytes();
            }),
            Channels::Rgb => pixels.zip(out.as_chunks_mut::<3>().0).for_each(|(pixel, out)| match self.planar {
                true if plane == 3 => out.iter_mut().for_each(|v| *v = divided(u16::from_le_bytes(*v), pixel[0])),
                true => out[plane] = pixel[0].to_le_bytes(),
                false if self.premultiplied => *out = [0, 1, 2].map(|c| divided(pixel[c], pixel[3])),
                false => *out = [0, 1, 2].map(|c| pixel[c].to_le_bytes()),
            }),
        }
    }
}

/// Divides a colour value by the alpha that it was multiplied by.
fn divided(value: u16, alpha: u16) -> [u8; 2] {
    let value = match alpha {
        0 => 0,
        _ => (u64::from(value) * 65_535 / u64::from(alpha)).min(65_535) as u16,
    };
    value.to_le_bytes()
}
