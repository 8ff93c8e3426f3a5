//! Normalises 16-bit samples.

use super::bits;
use super::output::{Dtype, Layout, Output};
use crate::operation::vectorised::vectorised;

vectorised!(scale = scale_kernel(samples: &[[u8; 2]], a: f32, b: f32, out: &mut [f32; BLOCK]));

/// Samples that are computed at a time.
const BLOCK: usize = 256;

/// Normalises an image of `C` channels.
pub(super) fn write<const C: usize>(output: &Output, pixels: &[u8], out: &mut [u8]) {
    match output.dtype() {
        Dtype::F32 => write_as::<C, 4>(output, pixels, out, u32::to_le_bytes),
        Dtype::F16 | Dtype::Bf16 => write_as::<C, 2>(output, pixels, out, |bits| (bits as u16).to_le_bytes()),
    }
}

fn write_as<const C: usize, const B: usize>(output: &Output, pixels: &[u8], out: &mut [u8], value: fn(u32) -> [u8; B]) {
    let samples = pixels.as_chunks::<2>().0;
    let out = out.as_chunks_mut::<B>().0;
    let (a, b) = output.coefficients();
    let dtype = output.dtype();
    let pixels = samples.as_chunks::<C>().0;
    let mut values = [0.0; BLOCK];
    let mut channel = [[0; 2]; BLOCK];
    for (first, block) in (0..).step_by(BLOCK).zip(pixels.chunks(BLOCK)) {
        for c in 0..C {
            channel.iter_mut().zip(block).for_each(|(sample, pixel)| *sample = pixel[c]);
            scale(&channel[..block.len()], a[c], b[c], &mut values);
            let at = |i: usize| match output.layout() {
                Layout::Nhwc => (first + i) * C + c,
                Layout::Nchw => c * pixels.len() + first + i,
            };
            for (i, v) in values[..block.len()].iter().enumerate() {
                out[at(i)] = value(bits(dtype, *v));
            }
        }
    }
}

#[inline(always)]
fn scale_kernel(samples: &[[u8; 2]], a: f32, b: f32, out: &mut [f32; BLOCK]) {
    for (out, sample) in out.iter_mut().zip(samples) {
        *out = f32::from(u16::from_le_bytes(*sample)).mul_add(a, b);
    }
}
