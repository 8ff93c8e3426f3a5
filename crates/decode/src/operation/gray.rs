//! Operations that need the grey value of each pixel: grayscale, saturation and contrast.
//!
//! The grey value is torchvision's: 0.2989 R + 0.587 G + 0.114 B, each product after the first added with one rounding, as
//! torch's `add_` does, then rounded down. Blends are `sample * factor + other * (1 - factor)` with the same roundings.

use super::sample::truncated;
use super::vectorised::vectorised;

vectorised!(gray = gray_kernel(pixels: &mut [[u8; 3]]));

vectorised!(saturate = saturate_kernel(pixels: &mut [[u8; 3]], factor: f32, rest: f32));

vectorised!(gray_sum = gray_sum_kernel(pixels: &[[u8; 3]]) -> u64);

vectorised!(blend_with = blend_with_kernel(data: &mut [u8], other: f32, factor: f32, rest: f32));

/// Replaces each channel by the grey value (`rgb_to_grayscale` with three channels).
pub(super) fn grayscale(data: &mut [u8]) {
    gray(data.as_chunks_mut().0);
}

/// Blends each pixel with its grey value (`adjust_saturation`).
pub(super) fn adjust_saturation(data: &mut [u8], factor: f64) {
    saturate(data.as_chunks_mut().0, factor as f32, (1.0 - factor) as f32);
}

/// Blends each sample with the mean grey value of the image (`adjust_contrast`).
pub(super) fn adjust_contrast(data: &mut [u8], factor: f64) {
    let pixels = data.as_chunks().0;
    // torch sums in f32, which is exact up to 65,793 white pixels.
    let mean = gray_sum(pixels) as f32 / pixels.len() as f32;
    blend_with(data, mean, factor as f32, (1.0 - factor) as f32);
}

#[inline(always)]
fn gray_value([r, g, b]: [u8; 3]) -> f32 {
    let [r, g, b] = [r, g, b].map(f32::from);
    b.mul_add(0.114, g.mul_add(0.587, r * 0.2989)).floor()
}

#[inline(always)]
fn blend(sample: u8, other: f32, factor: f32, rest: f32) -> u8 {
    truncated(other.mul_add(rest, f32::from(sample) * factor))
}

#[inline(always)]
fn gray_kernel(pixels: &mut [[u8; 3]]) {
    pixels.iter_mut().for_each(|pixel| *pixel = [truncated(gray_value(*pixel)); 3]);
}

#[inline(always)]
fn saturate_kernel(pixels: &mut [[u8; 3]], factor: f32, rest: f32) {
    for pixel in pixels {
        let gray = gray_value(*pixel);
        *pixel = pixel.map(|sample| blend(sample, gray, factor, rest));
    }
}

#[inline(always)]
fn gray_sum_kernel(pixels: &[[u8; 3]]) -> u64 {
    // The sums of a block fit u32.
    let block = |pixels: &[[u8; 3]]| pixels.iter().map(|pixel| u32::from(truncated(gray_value(*pixel)))).sum::<u32>();
    pixels.chunks(1 << 16).map(|pixels| u64::from(block(pixels))).sum()
}

#[inline(always)]
fn blend_with_kernel(data: &mut [u8], other: f32, factor: f32, rest: f32) {
    data.iter_mut().for_each(|sample| *sample = blend(*sample, other, factor, rest));
}
