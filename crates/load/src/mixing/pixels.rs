//! Mixes the pixels of a batch in place, on the host.

use super::pairs::Pairs;
use crate::planes::Planes;
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

    /// Returns how they lie in memory.
    pub(crate) fn planes(self) -> Planes {
        let value = self.dtype.map_or(self.depth.bytes(), Dtype::bytes);
        if self.planes { Planes { count: self.channels, pixel: value } } else { Planes::one(value * self.channels) }
    }
}

/// Mixes pairs of images of a batch in place.
pub(super) fn mix_pairs(images: &mut [u8], size: (usize, usize), kind: Pixels, mix: &Pairs) {
    if mix.rectangle.is_some() {
        return replace_rectangles(images, size, kind.planes(), mix);
    }
    let blend: fn(&mut [u8], &[u8], f32) = match (kind.dtype, kind.depth) {
        (None, Depth::Eight) => blend_u8,
        (None, Depth::Sixteen) => blend_u16,
        (Some(Dtype::F32), _) => |a, b, w| blend::<4>(a, b, w, f32::from_le_bytes, f32::to_le_bytes),
        (Some(Dtype::F16), _) => {
            |a, b, w| blend::<2>(a, b, w, |v| f16::from_le_bytes(v).to_f32(), |v| f16::from_f32(v).to_le_bytes())
        }
        (Some(Dtype::Bf16), _) => {
            |a, b, w| blend::<2>(a, b, w, |v| bf16::from_le_bytes(v).to_f32(), |v| bf16::from_f32(v).to_le_bytes())
        }
    };
    let share = mix.share as f32;
    each_pair(images, kind.planes().row_bytes(size), &mix.partners, |own, other| blend(own, other, share));
}

/// Replaces the rectangle of each row by that of the row that it is mixed with, in place. Changes nothing if every value is mixed.
pub(super) fn replace_rectangles(rows: &mut [u8], size: (usize, usize), planes: Planes, mix: &Pairs) {
    let Some((columns, lines)) = &mix.rectangle else { return };
    let (width, height) = size;
    each_pair(rows, planes.row_bytes(size), &mix.partners, |own, other| {
        for y in (0..planes.count).flat_map(|plane| lines.clone().map(move |y| plane * height + y)) {
            let part = (y * width + columns.start) * planes.pixel..(y * width + columns.end) * planes.pixel;
            own[part.clone()].copy_from_slice(&other[part]);
        }
    });
}

/// Calls `change` with each row that is mixed with another, and that one as it was before. Rows ascend, so that only the first of them
/// is needed after it has changed.
fn each_pair(rows: &mut [u8], row_bytes: usize, partners: &[usize], mut change: impl FnMut(&mut [u8], &[u8])) {
    let Some(first) = (0..partners.len()).find(|row| partners[*row] != *row) else { return };
    let copy = rows[first * row_bytes..][..row_bytes].to_vec();
    for (row, &partner) in partners.iter().enumerate().filter(|(row, partner)| **partner != *row) {
        if partner > row {
            let (before, after) = rows.split_at_mut(partner * row_bytes);
            change(&mut before[row * row_bytes..][..row_bytes], &after[..row_bytes]);
        } else {
            change(&mut rows[row * row_bytes..][..row_bytes], &copy);
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
