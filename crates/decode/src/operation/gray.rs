//! Operations that need the grey value of each pixel: grayscale, saturation and contrast.
//!
//! The grey value is torchvision's: 0.2989 R + 0.587 G + 0.114 B, each product after the first added with one rounding, as
//! torch's `add_` does, then rounded down. Blends are `sample * factor + other * (1 - factor)` with the same roundings.

use super::planes::{BLOCK, map_planes, read_planes};
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

/// Blends each sample of a grey image with their mean.
pub(super) fn adjust_contrast_of_gray(data: &mut [u8], factor: f64) {
    let sum: u64 = data.chunks(1 << 16).map(|part| u64::from(part.iter().map(|v| u32::from(*v)).sum::<u32>())).sum();
    let mean = sum as f32 / data.len() as f32;
    blend_with(data, mean, factor as f32, (1.0 - factor) as f32);
}

#[inline(always)]
fn gray_value(r: u8, g: u8, b: u8) -> f32 {
    f32::from(b).mul_add(0.114, f32::from(g).mul_add(0.587, f32::from(r) * 0.2989)).floor()
}

#[inline(always)]
fn blend(sample: u8, other: f32, factor: f32, rest: f32) -> u8 {
    truncated(other.mul_add(rest, f32::from(sample) * factor))
}

#[inline(always)]
fn gray_kernel(pixels: &mut [[u8; 3]]) {
    map_planes(pixels, |[red, green, blue]| {
        for i in 0..BLOCK {
            let gray = truncated(gray_value(red[i], green[i], blue[i]));
            [red[i], green[i], blue[i]] = [gray; 3];
        }
    });
}

#[inline(always)]
fn saturate_kernel(pixels: &mut [[u8; 3]], factor: f32, rest: f32) {
    map_planes(pixels, |[red, green, blue]| {
        for i in 0..BLOCK {
            let gray = gray_value(red[i], green[i], blue[i]);
            red[i] = blend(red[i], gray, factor, rest);
            green[i] = blend(green[i], gray, factor, rest);
            blue[i] = blend(blue[i], gray, factor, rest);
        }
    });
}

#[inline(always)]
fn gray_sum_kernel(pixels: &[[u8; 3]]) -> u64 {
    let mut sum = 0;
    read_planes(pixels, [0; 3], |[red, green, blue]| {
        let grays = (0..BLOCK).map(|i| u32::from(truncated(gray_value(red[i], green[i], blue[i]))));
        sum += u64::from(grays.sum::<u32>());
    });
    sum
}

#[inline(always)]
fn blend_with_kernel(data: &mut [u8], other: f32, factor: f32, rest: f32) {
    data.iter_mut().for_each(|sample| *sample = blend(*sample, other, factor, rest));
}
