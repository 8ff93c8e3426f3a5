//! The bytes of a pixel's samples to RGB.

use super::layout::{Layout, photometric, unsupported};
use crate::error::Error;

/// How the samples of one image become RGB.
pub(super) struct Color {
    kind: Kind,
    /// Samples of a pixel within a chunk; all except the first ones are skipped.
    stride: usize,
    planar: bool,
    /// Red, green and blue are multiplied by alpha, the fourth sample.
    premultiplied: bool,
}

enum Kind {
    /// One sample, looked up.
    Table(Box<[[u8; 3]; 256]>),
    Rgb,
}

impl Color {
    pub(super) fn new(layout: &Layout<'_>) -> Result<Self, Error> {
        let kind = match layout.photometric {
            photometric::WHITE_IS_ZERO | photometric::BLACK_IS_ZERO => Kind::Table(grey(layout)),
            photometric::PALETTE => Kind::Table(palette(layout)?),
            photometric::RGB if layout.samples >= 3 && matches!(layout.bits, 8 | 16) => Kind::Rgb,
            photometric::RGB => return Err(unsupported("RGB of other than 8 or 16 bits, or of fewer than 3 samples")),
            // The JPEG decoder converts.
            photometric::YCBCR if layout.compression == 7 && layout.samples == 3 => Kind::Rgb,
            photometric::YCBCR => return Err(unsupported("YCbCr in other than (new-style) JPEG compression")),
            8..=10 => return Err(unsupported("CIELab colours")),
            4 => return Err(unsupported("a transparency mask in place of an image")),
            _ => return Err(unsupported("colours other than grey, palette, RGB, CMYK and YCbCr")),
        };
        let premultiplied = matches!(kind, Kind::Rgb) && layout.samples > 3 && layout.extra.first() == Some(&1);
        Ok(Color { kind, stride: layout.chunk_samples(), planar: layout.planar, premultiplied })
    }

    /// How many planes are needed.
    pub(super) fn planes(&self) -> usize {
        match self.kind {
            Kind::Rgb if self.planar => 3 + usize::from(self.premultiplied),
            _ => 1,
        }
    }

    /// Writes the RGB pixels of a row, or what one plane contributes to them.
    pub(super) fn write(&self, plane: usize, samples: &[u8], out: &mut [u8]) {
        let out = out.as_chunks_mut::<3>().0.iter_mut();
        match &self.kind {
            Kind::Table(table) => {
                samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| *out = table[usize::from(pixel[0])]);
            }
            Kind::Rgb if self.planar && plane == 3 => {
                samples.iter().zip(out).for_each(|(alpha, out)| *out = out.map(|v| divided(v, *alpha)));
            }
            Kind::Rgb if self.planar => samples.iter().zip(out).for_each(|(sample, out)| out[plane] = *sample),
            Kind::Rgb if self.premultiplied => samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| {
                *out = [0, 1, 2].map(|i| divided(pixel[i], pixel[3]));
            }),
            Kind::Rgb => {
                samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| out.copy_from_slice(&pixel[..3]));
            }
        }
    }
}

/// A colour without the alpha that it was multiplied by: Pillow's rounding.
fn divided(value: u8, alpha: u8) -> u8 {
    match alpha {
        0 => 0,
        _ => (u32::from(value) * 255 / u32::from(alpha)).min(255) as u8,
    }
}

fn grey(layout: &Layout<'_>) -> Box<[[u8; 3]; 256]> {
    let highest = if layout.bits < 8 { (1usize << layout.bits) - 1 } else { 255 };
    let white_is_zero = layout.photometric == photometric::WHITE_IS_ZERO;
    Box::new(std::array::from_fn(|value| {
        let value = (value.min(highest) * 255 / highest) as u8;
        [if white_is_zero { 255 - value } else { value }; 3]
    }))
}

/// The high bytes of the colour map, as Pillow takes them.
fn palette(layout: &Layout<'_>) -> Result<Box<[[u8; 3]; 256]>, Error> {
    let colors = 1usize << layout.bits.min(8);
    if layout.bits > 8 || layout.palette.len() < 3 * colors {
        return Err(unsupported("a palette of more than 256 colours, or an incomplete one"));
    }
    let color = |index: usize, channel: usize| (layout.palette[channel * colors + index.min(colors - 1)] >> 8) as u8;
    Ok(Box::new(std::array::from_fn(|index| [color(index, 0), color(index, 1), color(index, 2)])))
}
