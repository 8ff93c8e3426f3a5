//! From samples to RGB or grey: the conversion of JFIF (ITU-R BT.601, full range) with libjpeg's rounding, and that of CMYK to RGB
//! with Pillow's.

use crate::cpu::{CpuFeatures, with_widest_vectors};
use crate::markers::header::Color;

/// Factors of chroma with 16 fraction bits, rounded.
pub(crate) const RED_CR: i32 = 91881; // 1.40200
pub(crate) const GREEN_CB: i32 = -22554; // 0.34414
pub(crate) const GREEN_CR: i32 = -46802; // 0.71414
pub(crate) const BLUE_CB: i32 = 116130; // 1.77200
const HALF: i32 = 1 << 15;

/// The conversion of the first three components.
#[derive(Clone, Copy)]
pub(crate) enum Conversion {
    Grey,
    YCbCr,
    Rgb,
}

impl From<Color> for Conversion {
    fn from(color: Color) -> Conversion {
        match color {
            Color::Grey => Conversion::Grey,
            Color::YCbCr | Color::Ycck => Conversion::YCbCr,
            Color::Rgb | Color::Cmyk | Color::Samples(_) => Conversion::Rgb,
        }
    }
}

/// Fills `out` with pixels of three bytes each, from rows of samples: one row (grey), three, or four. At least 64 bytes must follow
/// the samples used in each row.
pub(crate) fn convert(cpu: &CpuFeatures, color: Color, [a, b, c, k]: [&[u8]; 4], out: &mut [u8]) {
    convert_three(cpu, color.into(), [a, b, c], out);
    let pixels = out.as_chunks_mut().0.iter_mut().zip(k);
    match color {
        Color::Grey | Color::YCbCr | Color::Rgb | Color::Samples(_) => {}
        Color::Cmyk => pixels.for_each(|(o, &k)| *o = with_black(*o, k)),
        Color::Ycck => pixels.for_each(|(o, &k)| *o = with_black(o.map(|v| 255 - v), k)),
    }
}

/// Fills `out` with pixels of one byte for each row of samples.
pub(crate) fn interleave(rows: &[&[u8]], out: &mut [u8]) {
    for (i, row) in rows.iter().enumerate() {
        out[i..].iter_mut().step_by(rows.len()).zip(*row).for_each(|(out, &sample)| *out = sample);
    }
}

/// Converts inverted inks to RGB. Pillow inverts them back, and then computes (255 - K) - (255 - K) C / 255, rounded.
#[inline(always)]
fn with_black(inks: [u8; 3], k: u8) -> [u8; 3] {
    inks.map(|ink| {
        let product = u32::from(255 - ink) * u32::from(k) + 128;
        k - (((product >> 8) + product) >> 8) as u8
    })
}

/// As [`convert`], of the first three components.
fn convert_three(cpu: &CpuFeatures, conversion: Conversion, rows: [&[u8]; 3], out: &mut [u8]) {
    with_widest_vectors!(cpu, vectors => vectors.convert_to_rgb(conversion, rows, out));
    let [a, b, c] = rows;
    let pixels = out.chunks_exact_mut(3);
    match conversion {
        Conversion::Grey => pixels.zip(a).for_each(|(o, &a)| o.fill(a)),
        Conversion::Rgb => pixels.zip(a).zip(b).zip(c).for_each(|(((o, &a), &b), &c)| o.copy_from_slice(&[a, b, c])),
        Conversion::YCbCr => {
            pixels.zip(a).zip(b).zip(c).for_each(|(((o, &a), &b), &c)| o.copy_from_slice(&ycbcr(a, b, c)))
        }
    }
}

/// Fills `out` with pixels of one byte each, from rows of samples: one row (luma), three of red, green and blue, or four.
pub(crate) fn convert_to_gray(color: Color, [a, b, c, k]: [&[u8]; 4], out: &mut [u8]) {
    let inks = || a.iter().zip(b).zip(c).zip(k).map(|(((&a, &b), &c), &k)| ([a, b, c], k));
    match color {
        Color::Grey | Color::YCbCr | Color::Samples(_) => out.copy_from_slice(&a[..out.len()]),
        Color::Rgb => out.iter_mut().zip(a).zip(b).zip(c).for_each(|(((o, &r), &g), &b)| *o = luma([r, g, b])),
        Color::Cmyk => out.iter_mut().zip(inks()).for_each(|(o, (inks, k))| *o = luma(with_black(inks, k))),
        Color::Ycck => out.iter_mut().zip(inks()).for_each(|(o, ([y, cb, cr], k))| {
            *o = luma(with_black(ycbcr(y, cb, cr).map(|v| 255 - v), k));
        }),
    }
}

/// libjpeg's `rgb_gray_convert`.
#[inline(always)]
fn luma([r, g, b]: [u8; 3]) -> u8 {
    let sum = 19595 * u32::from(r) + 38470 * u32::from(g) + 7471 * u32::from(b);
    ((sum + HALF as u32) >> 16) as u8
}

fn ycbcr(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    [
        y + ((RED_CR * cr + HALF) >> 16),
        y + ((GREEN_CB * cb + GREEN_CR * cr + HALF) >> 16),
        y + ((BLUE_CB * cb + HALF) >> 16),
    ]
    .map(|v| v.clamp(0, 255) as u8)
}
