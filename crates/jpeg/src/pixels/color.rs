//! From samples to RGB or grey: the conversion of JFIF (ITU-R BT.601, full range) with libjpeg's rounding.

use crate::cpu::CpuFeatures;
use crate::markers::header::Color;

/// Factors of chroma with 16 fraction bits, rounded.
pub(crate) const RED_CR: i32 = 91881; // 1.40200
pub(crate) const GREEN_CB: i32 = -22554; // 0.34414
pub(crate) const GREEN_CR: i32 = -46802; // 0.71414
pub(crate) const BLUE_CB: i32 = 116130; // 1.77200
const HALF: i32 = 1 << 15;

/// Fills `out` with pixels of three bytes each, from rows of samples: one row (grey) or three. At least 64 bytes must follow
/// the samples used in each row.
pub(crate) fn convert(cpu: &CpuFeatures, color: Color, rows: [&[u8]; 3], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    match (cpu.avx2(), cpu.avx512()) {
        (_, Some(avx512)) => return avx512.convert_to_rgb(color, rows, out),
        (Some(avx2), None) => return avx2.convert_to_rgb(color, rows, out),
        (None, None) => {}
    }
    let _ = cpu;
    let [a, b, c] = rows;
    let pixels = out.chunks_exact_mut(3);
    match color {
        Color::Grey => pixels.zip(a).for_each(|(o, &a)| o.fill(a)),
        Color::Rgb => pixels.zip(a).zip(b).zip(c).for_each(|(((o, &a), &b), &c)| o.copy_from_slice(&[a, b, c])),
        Color::YCbCr => pixels.zip(a).zip(b).zip(c).for_each(|(((o, &a), &b), &c)| o.copy_from_slice(&ycbcr(a, b, c))),
    }
}

/// Fills `out` with pixels of one byte each, from rows of samples: one row (luma), or three of red, green and blue.
pub(crate) fn convert_to_gray(color: Color, [a, b, c]: [&[u8]; 3], out: &mut [u8]) {
    match color {
        Color::Grey | Color::YCbCr => out.copy_from_slice(&a[..out.len()]),
        // libjpeg's `rgb_gray_convert`.
        Color::Rgb => out.iter_mut().zip(a).zip(b).zip(c).for_each(|(((o, &r), &g), &b)| {
            let sum = 19595 * u32::from(r) + 38470 * u32::from(g) + 7471 * u32::from(b);
            *o = ((sum + HALF as u32) >> 16) as u8;
        }),
    }
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
