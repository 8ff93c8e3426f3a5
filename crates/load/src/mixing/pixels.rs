//! Mixes the pixels of a batch in place, on the host.

use super::pairs::Pairs;
use half::{bf16, f16};
use shardtool_decode::{Depth, Dtype, Layout, Output, PixelFormat};

/// What the pixels of a batch are.
#[derive(Clone, Copy)]
pub(crate) struct Pixels {
    /// `None` are samples of the depth.
    dtype: Option<Dtype>,
    depth: Depth,
    channels: usize,
    /// Whether each channel is a plane.
    planes: bool,
}

impl Pixels {
    /// Returns what the pixels are after `output`; `None` leaves them `[N, H, W, C]` samples of the format.
    pub(crate) fn new(output: Option<&Output>, format: PixelFormat) -> Self {
        Pixels {
            dtype: output.map(Output::dtype),
            depth: format.depth,
            channels: format.channels.count(),
            planes: output.is_some_and(|output| output.layout() == Layout::Nchw),
        }
    }

    /// Returns the bytes of a pixel; of planes, those of one channel.
    pub(crate) fn pixel_bytes(self) -> usize {
        let value = self.dtype.map_or(self.depth.bytes(), Dtype::bytes);
        if self.planes { value } else { value * self.channels }
    }

    /// Returns the number of planes of an image.
    pub(crate) fn plane_count(self) -> usize {
        if self.planes { self.channels } else { 1 }
    }
}

/// Mixes pairs of images of a batch in place.
pub(super) fn mix_pairs(images: &mut [u8], size: (usize, usize), kind: Pixels, mix: &Pairs) {
    match (kind.dtype, kind.depth) {
        (None, Depth::Eight) => mix_rows::<1>(images, size, kind, mix, blend_u8),
        (None, Depth::Sixteen) => mix_rows::<2>(images, size, kind, mix, blend_u16),
        (Some(Dtype::F32), _) => mix_rows::<4>(images, size, kind, mix, |a, b, w| {
            blend::<4>(a, b, w, f32::from_le_bytes, f32::to_le_bytes);
        }),
        (Some(Dtype::F16), _) => mix_rows::<2>(images, size, kind, mix, |a, b, w| {
            blend::<2>(a, b, w, |v| f16::from_le_bytes(v).to_f32(), |v| f16::from_f32(v).to_le_bytes());
        }),
        (Some(Dtype::Bf16), _) => mix_rows::<2>(images, size, kind, mix, |a, b, w| {
            blend::<2>(a, b, w, |v| bf16::from_le_bytes(v).to_f32(), |v| bf16::from_f32(v).to_le_bytes());
        }),
    }
}

/// Mixes rows of values of `C` bytes. Every row is read before it is written: rows ascend, so that only the first valid one is
/// needed after it has changed.
fn mix_rows<const C: usize>(
    images: &mut [u8],
    (width, height): (usize, usize),
    kind: Pixels,
    mix: &Pairs,
    blend: impl Fn(&mut [u8], &[u8], f32),
) {
    let row_bytes = width * height * kind.channels * C;
    let partners = &mix.partners;
    let Some(first) = (0..partners.len()).find(|row| partners[*row] != *row) else { return };
    let copy = images[first * row_bytes..][..row_bytes].to_vec();
    for (row, &partner) in partners.iter().enumerate().filter(|(row, partner)| **partner != *row) {
        let (own, other) = if partner > row {
            let (before, after) = images.split_at_mut(partner * row_bytes);
            (&mut before[row * row_bytes..][..row_bytes], &after[..row_bytes])
        } else {
            (&mut images[row * row_bytes..][..row_bytes], &copy[..])
        };
        match &mix.rectangle {
            None => blend(own, other, mix.share as f32),
            Some((columns, rows)) => {
                let (count, pixel) = (kind.plane_count(), kind.pixel_bytes());
                for plane in 0..count {
                    for y in rows.clone() {
                        let line = (plane * height + y) * width;
                        let part = (line + columns.start) * pixel..(line + columns.end) * pixel;
                        own[part.clone()].copy_from_slice(&other[part]);
                    }
                }
            }
        }
    }
}

/// The weight of an image that is shown alone, in [`fixed_point`].
pub(super) const WHOLE: u32 = 65_536;

/// Returns the weight of 16 bits of an image that has this share.
pub(super) fn fixed_point(share: f32) -> u32 {
    (share * WHOLE as f32).round() as u32
}

/// Blends u8 values: the weighted mean, rounded half up, with weights of 16 bits. `crates/cuda/src/kernel.cu` does the same.
fn blend_u8(own: &mut [u8], other: &[u8], share: f32) {
    let share = fixed_point(share);
    let rest = WHOLE - share;
    for (a, b) in own.iter_mut().zip(other) {
        *a = ((u32::from(*a) * share + u32::from(*b) * rest + 32_768) >> 16) as u8;
    }
}

/// As [`blend_u8`], for u16 values.
fn blend_u16(own: &mut [u8], other: &[u8], share: f32) {
    let share = fixed_point(share);
    let rest = WHOLE - share;
    let value = |bytes: [u8; 2]| u32::from(u16::from_le_bytes(bytes));
    for (a, b) in own.as_chunks_mut::<2>().0.iter_mut().zip(other.as_chunks::<2>().0) {
        // At most 65,535 · 65,536 + 32,768, which fits.
        *a = (((value(*a) * share + value(*b) * rest + 32_768) >> 16) as u16).to_le_bytes();
    }
}

/// Blends values of `C` bytes in f32.
fn blend<const C: usize>(
    own: &mut [u8],
    other: &[u8],
    share: f32,
    read: impl Fn([u8; C]) -> f32,
    write: impl Fn(f32) -> [u8; C],
) {
    let rest = 1.0 - share;
    for (a, b) in own.as_chunks_mut::<C>().0.iter_mut().zip(other.as_chunks::<C>().0) {
        *a = write(read(*a) * share + read(*b) * rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u8_values_are_rounded_means() {
        for (a, b, share) in [(0u8, 255u8, 0.25f32), (255, 255, 0.3), (10, 11, 0.5), (200, 3, 1.0), (200, 3, 0.0)] {
            let mut own = [a];
            blend_u8(&mut own, &[b], share);
            let exact = f64::from(a) * f64::from(share) + f64::from(b) * (1.0 - f64::from(share));
            assert!((f64::from(own[0]) - exact).abs() <= 0.51, "{a} {b} {share}: {}", own[0]);
        }
    }
}
