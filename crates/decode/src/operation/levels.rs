//! Operations that change each sample on its own: brightness, posterize, solarize and invert.

use super::sample::truncated;
use super::vectorised::vectorised;

vectorised!(scale = scale_kernel(data: &mut [u8], factor: f32));

/// Multiplies each sample by `factor` and rounds down (`adjust_brightness`).
pub(super) fn adjust_brightness(data: &mut [u8], factor: f64) {
    scale(data, factor as f32);
}

#[inline(always)]
fn scale_kernel(data: &mut [u8], factor: f32) {
    data.iter_mut().for_each(|sample| *sample = truncated(f32::from(*sample) * factor));
}

/// Inverts the samples that are at least `threshold`, which is at most 255. torch compares in f32.
pub(super) fn solarize(data: &mut [u8], threshold: f64) {
    // An integer is at least a number if it is at least the next integer. Negative numbers become 0.
    let threshold = (threshold as f32).ceil() as u8;
    data.iter_mut().for_each(|sample| *sample = if *sample >= threshold { !*sample } else { *sample });
}

/// Keeps the upper `bits` bits of each sample, 0 to 8.
pub(super) fn posterize(data: &mut [u8], bits: u8) {
    let mask = !(0xff_u16 >> bits) as u8;
    data.iter_mut().for_each(|sample| *sample &= mask);
}

/// Replaces each sample x by 255 − x.
pub(super) fn invert(data: &mut [u8]) {
    data.iter_mut().for_each(|sample| *sample = !*sample);
}
