//! Converts pixels of one byte per sample to RGB.

use super::error::unsupported;
use super::layout::Layout;
use super::tags::photometric;
use super::ycbcr::Ycbcr;
use crate::codecs::to_rgb::cmyk_to_rgb;
use crate::error::Error;

/// The conversion for one image.
pub(super) struct Color {
    kind: ColorKind,
    /// Samples per pixel within a chunk. Only the first ones are used.
    stride: usize,
    planar: bool,
    /// Whether red, green and blue are multiplied by alpha, the fourth sample.
    premultiplied: bool,
}

enum ColorKind {
    /// One sample, an index into a table of colours.
    Table(Box<[[u8; 3]; 256]>),
    Rgb,
    Cmyk,
    Ycbcr(Box<Ycbcr>),
}

impl Color {
    pub(super) fn new(layout: &Layout<'_>) -> Result<Self, Error> {
        let kind = match layout.photometric {
            photometric::WHITE_IS_ZERO | photometric::BLACK_IS_ZERO => ColorKind::Table(grey(layout)),
            photometric::PALETTE => ColorKind::Table(palette(layout)?),
            photometric::RGB if layout.samples >= 3 && (layout.is_float() || matches!(layout.bits, 8 | 16)) => {
                ColorKind::Rgb
            }
            photometric::RGB => return Err(unsupported("RGB of other than 8 or 16 bits, or of fewer than 3 samples")),
            photometric::CMYK if layout.samples >= 4 && matches!(layout.bits, 8 | 16) && !layout.is_float() => {
                ColorKind::Cmyk
            }
            photometric::CMYK => {
                return Err(unsupported("CMYK of other than 8 or 16 bits, or of fewer than 4 samples"));
            }
            photometric::YCBCR if layout.samples != 3 || layout.bits != 8 => {
                return Err(unsupported("YCbCr of other than 3 samples of 8 bits"));
            }
            photometric::YCBCR if layout.is_ycbcr() => ColorKind::Ycbcr(Box::new(Ycbcr::new(layout)?)),
            // The JPEG decoder converts to RGB.
            photometric::YCBCR if !layout.planar => ColorKind::Rgb,
            photometric::YCBCR => return Err(unsupported("YCbCr in planes of JPEG")),
            photometric::CIE_LAB | photometric::ICC_LAB | photometric::ITU_LAB => {
                return Err(unsupported("CIELab colours"));
            }
            photometric::MASK => return Err(unsupported("a transparency mask instead of an image")),
            _ => return Err(unsupported("colours other than grey, palette, RGB, CMYK and YCbCr")),
        };
        let premultiplied = matches!(kind, ColorKind::Rgb) && layout.samples > 3 && layout.extra.first() == Some(&1);
        Ok(Color { kind, stride: layout.chunk_samples(), planar: layout.planar, premultiplied })
    }

    /// Returns the conversion of YCbCr.
    pub(super) fn ycbcr(&self) -> Option<&Ycbcr> {
        match &self.kind {
            ColorKind::Ycbcr(ycbcr) => Some(ycbcr),
            _ => None,
        }
    }

    /// Returns the number of planes that are needed.
    pub(super) fn planes(&self) -> usize {
        match self.kind {
            ColorKind::Rgb if self.planar => 3 + usize::from(self.premultiplied),
            ColorKind::Cmyk if self.planar => 4,
            ColorKind::Ycbcr(_) if self.planar => 3,
            _ => 1,
        }
    }

    /// Writes the RGB pixels of a row, or the contribution of one plane to them.
    pub(super) fn write(&self, plane: usize, samples: &[u8], out: &mut [u8]) {
        let out = out.as_chunks_mut::<3>().0.iter_mut();
        match &self.kind {
            ColorKind::Table(table) => {
                samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| *out = table[usize::from(pixel[0])]);
            }
            ColorKind::Rgb if self.planar && plane == 3 => {
                samples.iter().zip(out).for_each(|(alpha, out)| *out = out.map(|v| divided(v, *alpha)));
            }
            ColorKind::Cmyk if self.planar && plane == 3 => {
                samples.iter().zip(out).for_each(|(k, out)| *out = cmyk_to_rgb([out[0], out[1], out[2], *k]));
            }
            ColorKind::Ycbcr(ycbcr) if self.planar && plane == 2 => {
                samples.iter().zip(out).for_each(|(cr, out)| *out = ycbcr.rgb(out[0], out[1], *cr));
            }
            ColorKind::Rgb | ColorKind::Cmyk | ColorKind::Ycbcr(_) if self.planar => {
                samples.iter().zip(out).for_each(|(sample, out)| out[plane] = *sample);
            }
            ColorKind::Cmyk => samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| {
                *out = cmyk_to_rgb([pixel[0], pixel[1], pixel[2], pixel[3]]);
            }),
            ColorKind::Ycbcr(ycbcr) => {
                samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| {
                    *out = ycbcr.rgb(pixel[0], pixel[1], pixel[2]);
                });
            }
            ColorKind::Rgb if self.premultiplied => {
                samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| {
                    *out = [0, 1, 2].map(|i| divided(pixel[i], pixel[3]));
                })
            }
            ColorKind::Rgb => {
                samples.chunks_exact(self.stride).zip(out).for_each(|(pixel, out)| out.copy_from_slice(&pixel[..3]));
            }
        }
    }
}

/// Divides a colour value by the alpha it was multiplied by, with Pillow's rounding.
fn divided(value: u8, alpha: u8) -> u8 {
    match alpha {
        0 => 0,
        _ => (u32::from(value) * 255 / u32::from(alpha)).min(255) as u8,
    }
}

fn grey(layout: &Layout<'_>) -> Box<[[u8; 3]; 256]> {
    let max_value = if layout.bits < 8 { (1usize << layout.bits) - 1 } else { 255 };
    let white_is_zero = layout.photometric == photometric::WHITE_IS_ZERO;
    Box::new(std::array::from_fn(|value| {
        let value = (value.min(max_value) * 255 / max_value) as u8;
        [if white_is_zero { 255 - value } else { value }; 3]
    }))
}

/// Makes the colours from the high bytes of the colour map, as Pillow does.
fn palette(layout: &Layout<'_>) -> Result<Box<[[u8; 3]; 256]>, Error> {
    let colors = 1usize << layout.bits.min(8);
    if layout.bits > 8 || layout.palette.len() < 3 * colors {
        return Err(unsupported("a palette of more than 256 colours, or an incomplete one"));
    }
    let color = |index: usize, channel: usize| (layout.palette[channel * colors + index.min(colors - 1)] >> 8) as u8;
    Ok(Box::new(std::array::from_fn(|index| [color(index, 0), color(index, 1), color(index, 2)])))
}
