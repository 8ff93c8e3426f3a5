//! Overwrites a rectangle with one colour or with noise, as `RandomErasing` does.

use std::f64::consts::TAU;

use crate::transform::rect::Rect;

/// Mean of the noise, by channel: ImageNet's.
const MEAN: [f64; 3] = [123.675, 116.28, 103.53];

/// Standard deviation of the noise, by channel: ImageNet's.
const DEVIATION: [f64; 3] = [58.395, 57.12, 57.375];

/// Overwrites the part of `rect` that is inside the image with one colour.
pub(super) fn erase(data: &mut [u8], size: (usize, usize), rect: Rect, value: [u8; 3]) {
    rows(data, size, rect).for_each(|row| row.fill(value));
}

/// Overwrites the part of `rect` that is inside the image with normal noise around ImageNet's mean, rounded and clamped to 0
/// to 255. The samples of that part, in the order of memory, take one normal number each from the stream of `key`.
pub(super) fn erase_with_noise(data: &mut [u8], size: (usize, usize), rect: Rect, key: u64) {
    let mut normal = Normal { state: key, second: None };
    for pixel in rows(data, size, rect).flatten() {
        *pixel = std::array::from_fn(|c| (MEAN[c] + DEVIATION[c] * normal.next() + 0.5) as u8);
    }
}

/// Returns the rows of the part of `rect` that is inside the image.
fn rows(data: &mut [u8], (width, height): (usize, usize), rect: Rect) -> impl Iterator<Item = &mut [[u8; 3]]> {
    let span = |start: u32, len: u32, limit: usize| {
        let start = (start as usize).min(limit);
        start..start + (len as usize).min(limit - start)
    };
    let (columns, rows) = (span(rect.left, rect.width, width), span(rect.top, rect.height, height));
    let pixels = &mut data.as_chunks_mut().0[rows.start * width..rows.end * width];
    pixels.chunks_exact_mut(width).map(move |row| &mut row[columns.clone()])
}

/// Normal numbers of mean 0 and deviation 1: those of Box and Muller from SplitMix64. `libm` gives the same bits on every
/// machine.
struct Normal {
    state: u64,
    /// The second number of a pair.
    second: Option<f64>,
}

impl Normal {
    fn next(&mut self) -> f64 {
        if let Some(second) = self.second.take() {
            return second;
        }
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        let (sine, cosine) = libm::sincos(TAU * self.unit());
        self.second = Some(radius * sine);
        radius * cosine
    }

    /// Returns the next number in [0, 1), a multiple of 2⁻⁵³, from SplitMix64 (Steele, Lea, Flood 2014; variant 13 of
    /// Stafford's mixers).
    fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}
