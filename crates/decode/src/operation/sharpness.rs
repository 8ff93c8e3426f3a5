//! Blends the image with a smoothed copy, as torchvision's `adjust_sharpness` does.

use super::sample::truncated;
use super::scratch::copy_to;
use super::vectorised::vectorised;

vectorised!(sharpen = sharpen_kernel(rows: [&[u8]; 3], channels: usize, out: &mut [u8], rest: f32));

/// Blends each pixel with the mean of its 3 × 3 neighbourhood, in which the pixel itself counts five times. The pixels at
/// the edges, and images with a side of at most two pixels, are left as they are. Pixels have `C` samples; `rows` is a buffer.
pub(super) fn adjust_sharpness<const C: usize>(
    data: &mut [u8],
    (width, height): (usize, usize),
    factor: f64,
    rows: &mut Vec<u8>,
) {
    if width <= 2 || height <= 2 {
        return;
    }
    let stride = width * C;
    // The rows above and at the current one, before they were changed.
    copy_to(rows, &data[..2 * stride]);
    let (mut above, mut current) = rows.split_at_mut(stride);
    for y in 1..height - 1 {
        let (out, below) = data[y * stride..][..2 * stride].split_at_mut(stride);
        current.copy_from_slice(out);
        sharpen([above, current, below], C, &mut out[C..stride - C], (1.0 - factor) as f32);
        std::mem::swap(&mut above, &mut current);
    }
}

/// Computes the row between `rows[0]` and `rows[2]` without its first and last pixel.
#[inline(always)]
fn sharpen_kernel(rows: [&[u8]; 3], channels: usize, out: &mut [u8], rest: f32) {
    let len = out.len();
    let [above, current, below] = rows.map(|row| [0, 1, 2].map(|k| &row[k * channels..][..len]));
    for (i, out) in out.iter_mut().enumerate() {
        let sum = |row: [&[u8]; 3]| u16::from(row[0][i]) + u16::from(row[1][i]) + u16::from(row[2][i]);
        let center = current[1][i];
        let sum = sum(above) + sum(current) + sum(below) + 4 * u16::from(center);
        // Rounded to nearest: sums of integers divided by 13 never fall between two integers.
        let smooth = (sum + 6) / 13;
        let difference = f32::from(smooth as i16 - i16::from(center));
        *out = truncated(difference.mul_add(rest, f32::from(center)));
    }
}
