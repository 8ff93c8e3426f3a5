//! Gaussian blur as torchvision's `gaussian_blur`: the kernel has unit sum, and edges reflect without repeating the outermost
//! pixel. Two passes in f32, of which only the last one rounds.

use super::sample::rounded;
use super::scratch::{BlurScratch, copy_to, make_room};
use super::vectorised::vectorised;

/// Samples that are summed at a time, so that their sums stay in registers.
const BLOCK: usize = 32;

vectorised!(blur_columns = blur_columns_kernel(source: Source<'_>, y: usize, weights: &[f32], out: &mut [f32]));

vectorised!(blur_row = blur_row_kernel(row: &[f32], channels: usize, weights: &[f32], out: &mut [u8]));

/// The image before the blur.
#[derive(Clone, Copy)]
struct Source<'a> {
    pixels: &'a [u8],
    /// Bytes of a row.
    stride: usize,
    height: usize,
}

/// Blurs with a kernel of `kernel` pixels (width, height), each odd and smaller than twice the side of the image, and a
/// standard deviation of `sigma` pixels (horizontally, vertically). Pixels have `C` samples; `copy` is a buffer for the image.
pub(super) fn gaussian_blur<const C: usize>(
    data: &mut [u8],
    (width, height): (usize, usize),
    kernel: [u32; 2],
    sigma: [f64; 2],
    copy: &mut Vec<u8>,
    scratch: &mut BlurScratch,
) {
    copy_to(copy, data);
    let BlurScratch { row, weights: [across, down] } = scratch;
    weigh(kernel[0], sigma[0], across);
    weigh(kernel[1], sigma[1], down);
    let stride = width * C;
    let margin = (across.len() - 1) * C;
    make_room(row, stride + 2 * margin);
    row.resize(stride + 2 * margin, 0.0);
    let source = Source { pixels: copy, stride, height };
    for (y, out) in data.chunks_exact_mut(stride).enumerate() {
        blur_columns(source, y, down, &mut row[margin..margin + stride]);
        reflect::<C>(row.as_chunks_mut().0, across.len() - 1);
        blur_row(row, C, across, out);
    }
}

/// Computes the weights of the centre and of the pixels at distance 1 and more.
fn weigh(kernel: u32, sigma: f64, weights: &mut Vec<f32>) {
    let weight = |distance: u32| libm::exp(-0.5 * (f64::from(distance) / sigma) * (f64::from(distance) / sigma));
    let radius = kernel / 2;
    let sum = weight(0) + 2.0 * (1..=radius).map(weight).sum::<f64>();
    make_room(weights, radius as usize + 1);
    weights.extend((0..=radius).map(|distance| (weight(distance) / sum) as f32));
}

/// Reflects `margin` pixels at both ends of a row into the space before and after them.
fn reflect<const C: usize>(row: &mut [[f32; C]], margin: usize) {
    let last = row.len() - 1 - margin;
    for distance in 1..=margin {
        row[margin - distance] = row[margin + distance];
        row[last + distance] = row[last - distance];
    }
}

/// Blurs the columns at row `y`.
#[inline(always)]
fn blur_columns_kernel(source: Source<'_>, y: usize, weights: &[f32], out: &mut [f32]) {
    let Source { pixels, stride, height } = source;
    let row = |y: usize| &pixels[y * stride..][..stride];
    let center = row(y);
    for (start, out) in (0..).step_by(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let mut sums = [0.0; BLOCK];
        let len = out.len();
        let add = |sums: &mut [f32; BLOCK], weight: f32, a: &[u8], b: &[u8]| {
            let add = |sum: &mut f32, a: u8, b: u8| *sum += weight * f32::from(u16::from(a) + u16::from(b));
            match (<&[u8; BLOCK]>::try_from(a), <&[u8; BLOCK]>::try_from(b)) {
                (Ok(a), Ok(b)) => sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| add(sum, *a, *b)),
                _ => sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| add(sum, *a, *b)),
            }
        };
        sums.iter_mut().zip(&center[start..]).for_each(|(sum, sample)| *sum = weights[0] * f32::from(*sample));
        for (distance, weight) in weights.iter().enumerate().skip(1) {
            let above = y.abs_diff(distance);
            let below = if y + distance < height { y + distance } else { 2 * (height - 1) - y - distance };
            add(&mut sums, *weight, &row(above)[start..start + len], &row(below)[start..start + len]);
        }
        out.copy_from_slice(&sums[..len]);
    }
}

/// Blurs a row with margins on both sides.
#[inline(always)]
fn blur_row_kernel(row: &[f32], channels: usize, weights: &[f32], out: &mut [u8]) {
    let margin = (weights.len() - 1) * channels;
    for (start, out) in (0..).step_by(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let mut sums = [0.0; BLOCK];
        let len = out.len();
        let at = |offset: usize| &row[start + offset..][..len];
        sums.iter_mut().zip(at(margin)).for_each(|(sum, value)| *sum = weights[0] * value);
        for (distance, weight) in weights.iter().enumerate().skip(1) {
            let (left, right) = (at(margin - channels * distance), at(margin + channels * distance));
            let add = |sum: &mut f32, left: f32, right: f32| *sum += weight * (left + right);
            match (<&[f32; BLOCK]>::try_from(left), <&[f32; BLOCK]>::try_from(right)) {
                (Ok(a), Ok(b)) => sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| add(sum, *a, *b)),
                _ => sums.iter_mut().zip(left.iter().zip(right)).for_each(|(sum, (a, b))| add(sum, *a, *b)),
            }
        }
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = rounded(sum));
    }
}
