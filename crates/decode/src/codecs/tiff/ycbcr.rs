//! Converts YCbCr samples that are not in a JPEG to RGB (TIFF 6.0, section 21), as libtiff does: with tables of integers, and each
//! chroma sample for all pixels of its block.

use super::error::unsupported;
use super::layout::Layout;
use crate::error::Error;

/// Fraction bits of the factors.
const SHIFT: u32 = 16;

/// What each value of a sample adds to red, green and blue.
pub(super) struct Ycbcr {
    luma: [i32; 256],
    red_of_cr: [i32; 256],
    /// Of green, with fraction bits.
    green_of_cr: [i32; 256],
    green_of_cb: [i32; 256],
    blue_of_cb: [i32; 256],
}

impl Ycbcr {
    /// Makes the tables from YCbCrCoefficients and ReferenceBlackWhite. The arithmetic is that of libtiff's
    /// `TIFFYCbCrToRGBInit`, in `f32`.
    pub(super) fn new(layout: &Layout<'_>) -> Result<Self, Error> {
        let [red, green, blue] = layout.ycbcr_coefficients;
        let reference = layout.reference_black_white;
        if green == 0.0 || reference.iter().any(|value| value.abs() >= i32::MAX as f32) {
            return Err(unsupported("YCbCr with coefficients that are not defined"));
        }
        let fixed = |factor: f32| {
            // Not `clamp`: NaN becomes 0.
            let factor = if factor >= 0.0 { factor.min(2.0) } else { 0.0 };
            (f64::from(factor * (1 << SHIFT) as f32) + 0.5) as i32
        };
        let (red_cr, blue_cb) = (2.0 - 2.0 * red, 2.0 - 2.0 * blue);
        let green_cr = -fixed(red * red_cr / green);
        let green_cb = -fixed(blue * blue_cb / green);
        let (red_cr, blue_cb) = (fixed(red_cr), fixed(blue_cb));
        let scaled = |code: i32, black: f32, white: f32, range: f32| {
            let distance = if white - black != 0.0 { white - black } else { 1.0 };
            let value = code.wrapping_sub(black as i32) as f32 * range / distance;
            value.clamp(-128.0 * 32.0, 128.0 * 32.0) as i32
        };
        let chroma = |value: usize, at: usize| {
            scaled(value as i32 - 128, reference[at] - 128.0, reference[at + 1] - 128.0, 127.0)
        };
        let half = 1 << (SHIFT - 1);
        Ok(Ycbcr {
            luma: std::array::from_fn(|value| scaled(value as i32, reference[0], reference[1], 255.0)),
            red_of_cr: std::array::from_fn(|value| (red_cr * chroma(value, 4) + half) >> SHIFT),
            green_of_cr: std::array::from_fn(|value| green_cr * chroma(value, 4)),
            green_of_cb: std::array::from_fn(|value| green_cb * chroma(value, 2) + half),
            blue_of_cb: std::array::from_fn(|value| (blue_cb * chroma(value, 2) + half) >> SHIFT),
        })
    }

    /// Converts a pixel.
    pub(super) fn rgb(&self, y: u8, cb: u8, cr: u8) -> [u8; 3] {
        let [y, cb, cr] = [y, cb, cr].map(usize::from);
        let luma = self.luma[y];
        [
            luma + self.red_of_cr[cr],
            luma + ((self.green_of_cb[cb] + self.green_of_cr[cr]) >> SHIFT),
            luma + self.blue_of_cb[cb],
        ]
        .map(|value| value.clamp(0, 255) as u8)
    }
}

/// Samples in blocks: those of luma in rows, then one of each chroma component.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    /// Width and height in pixels.
    pub(super) size: (u32, u32),
}

impl Blocks {
    /// Returns the blocks of an image in YCbCr whose chroma has fewer samples.
    pub(super) fn of(layout: &Layout<'_>) -> Result<Option<Self>, Error> {
        if !layout.is_ycbcr() || layout.ycbcr_subsampling == (1, 1) {
            return Ok(None);
        }
        if !matches!(layout.ycbcr_subsampling, (4, 1 | 2 | 4) | (2, 1 | 2) | (1, 2)) || layout.planar {
            return Err(unsupported("YCbCr of other than 4:4:4, 4:2:2, 4:2:0, 4:4:0, 4:1:1 and 4:1:0, or in planes"));
        }
        if layout.predictor != 1 && layout.has_predictor() {
            return Err(unsupported("a predictor of subsampled YCbCr"));
        }
        Ok(Some(Blocks { size: layout.ycbcr_subsampling }))
    }

    /// Returns the bytes of a block.
    pub(super) fn bytes(self) -> usize {
        (self.size.0 * self.size.1) as usize + 2
    }

    /// Returns the bytes of a row of blocks that covers `width` pixels.
    pub(super) fn row_bytes(self, width: u32) -> usize {
        width.div_ceil(self.size.0) as usize * self.bytes()
    }

    /// Converts row `y` of a row of blocks to RGB.
    pub(super) fn row(self, ycbcr: &Ycbcr, blocks: &[u8], y: usize, out: &mut [[u8; 3]]) {
        let across = self.size.0 as usize;
        for (block, out) in blocks.chunks_exact(self.bytes()).zip(out.chunks_mut(across)) {
            let &[ref luma @ .., cb, cr] = block else { continue };
            for (out, luma) in out.iter_mut().zip(&luma[y * across..]) {
                *out = ycbcr.rgb(*luma, cb, cr);
            }
        }
    }
}
