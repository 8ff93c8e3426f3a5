//! Mixes the rows of a complete batch: MixUp and CutMix, with soft labels.
//!
//! What a batch gets is a pure function of seed, epoch and the position of its first row. A row is mixed with the next row that
//! has a sample, the last one with the first. Rows without a sample stay as they are, and their soft labels are zero.

use half::{bf16, f16};
use shardtool_decode::{Dtype, Layout, Output, Random, beta};
use shardtool_order::{Domain, Rng, key};
use std::ops::Range;

/// How the rows of a batch are mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    /// One of these is drawn for each batch, with equal probability. At least one.
    pub transforms: Vec<BatchTransform>,
    /// The number of classes: labels are 0 to `classes` − 1, and soft labels `[N, classes]`.
    pub classes: u32,
}

/// One way of mixing two images. The share of the first is drawn from the beta distribution with both parameters `alpha`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BatchTransform {
    /// Each value is the weighted mean of both images (Zhang et al., "mixup: beyond empirical risk minimization", 2018).
    MixUp {
        /// Above 0.
        alpha: f64,
    },
    /// A rectangle is replaced by that of the other image (Yun et al., "CutMix", 2019).
    CutMix {
        /// Above 0.
        alpha: f64,
    },
}

impl BatchTransform {
    /// Returns the parameter of the beta distribution.
    pub fn alpha(self) -> f64 {
        match self {
            BatchTransform::MixUp { alpha } | BatchTransform::CutMix { alpha } => alpha,
        }
    }
}

/// What was drawn for one batch, for images of one size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DrawnMix {
    /// The share of each row's own image.
    pub(crate) share: f64,
    /// Columns and rows that are replaced; `None` mixes every value.
    rectangle: Option<(Range<usize>, Range<usize>)>,
}

impl Mixing {
    /// Draws for the batch whose first row has position `first` in its replica's epoch, and images of size (width, height).
    pub(crate) fn draw(&self, seed: u64, epoch: u64, first: u64, (width, height): (u32, u32)) -> DrawnMix {
        let mut random = Stream(Rng::new(key(Domain::Mix, seed, epoch, first)));
        let which = random.below(self.transforms.len() as u64) as usize;
        let transform = self.transforms[which];
        let share = beta(transform.alpha(), &mut random);
        match transform {
            BatchTransform::MixUp { .. } => DrawnMix { share, rectangle: None },
            BatchTransform::CutMix { .. } => {
                // torchvision's `CutMix.make_params`.
                let half = 0.5 * (1.0 - share).sqrt();
                let mut span = |side: u32| {
                    let centre = random.below(side.into());
                    let half = (half * f64::from(side)) as u64;
                    centre.saturating_sub(half) as usize..(centre + half).min(side.into()) as usize
                };
                let (columns, rows) = (span(width), span(height));
                let area = columns.len() as f64 * rows.len() as f64;
                let share = 1.0 - area / (f64::from(width) * f64::from(height));
                DrawnMix { share, rectangle: Some((columns, rows)) }
            }
        }
    }
}

/// Returns for each row the one that it is mixed with: the next valid one; itself if no other is valid, or it is not.
pub(crate) fn partners(valid: &[bool]) -> Vec<usize> {
    let n = valid.len();
    let next = |row: usize| (1..n).map(|step| (row + step) % n).find(|other| valid[*other]);
    (0..n).map(|row| if valid[row] { next(row).unwrap_or(row) } else { row }).collect()
}

/// Returns the soft labels of a batch, `[N, classes]`. `None` if a label is not one of the classes.
pub(crate) fn soft_labels(
    labels: &[i64],
    valid: &[bool],
    partners: &[usize],
    share: f64,
    classes: u32,
) -> Result<Vec<f32>, i64> {
    let classes = classes as usize;
    let mut soft = vec![0.0; labels.len() * classes];
    let class = |row: usize| usize::try_from(labels[row]).ok().filter(|class| *class < classes).ok_or(labels[row]);
    for (row, weights) in soft.chunks_exact_mut(classes).enumerate().filter(|(row, _)| valid[*row]) {
        weights[class(row)?] += share as f32;
        weights[class(partners[row])?] += (1.0 - share) as f32;
    }
    Ok(soft)
}

/// Mixes the images of a batch in place. `output` says what the values are; `None` is u8 `[N, H, W, 3]`.
pub(crate) fn mix_images(
    images: &mut [u8],
    (width, height): (u32, u32),
    output: Option<&Output>,
    mix: &DrawnMix,
    partners: &[usize],
) {
    let size = (width as usize, height as usize);
    let planes = output.is_some_and(|output| output.layout() == Layout::Nchw);
    match output.map(Output::dtype) {
        None => mix_rows::<1>(images, size, planes, mix, partners, blend_u8),
        Some(Dtype::F32) => mix_rows::<4>(images, size, planes, mix, partners, |a, b, w| {
            blend::<4>(a, b, w, f32::from_le_bytes, f32::to_le_bytes);
        }),
        Some(Dtype::F16) => mix_rows::<2>(images, size, planes, mix, partners, |a, b, w| {
            blend::<2>(a, b, w, |v| f16::from_le_bytes(v).to_f32(), |v| f16::from_f32(v).to_le_bytes());
        }),
        Some(Dtype::Bf16) => mix_rows::<2>(images, size, planes, mix, partners, |a, b, w| {
            blend::<2>(a, b, w, |v| bf16::from_le_bytes(v).to_f32(), |v| bf16::from_f32(v).to_le_bytes());
        }),
    }
}

/// Mixes rows of values of `C` bytes. Every row is read before it is written: rows ascend, so that only the first valid one is
/// needed after it has changed.
fn mix_rows<const C: usize>(
    images: &mut [u8],
    (width, height): (usize, usize),
    planes: bool,
    mix: &DrawnMix,
    partners: &[usize],
    blend: impl Fn(&mut [u8], &[u8], f32),
) {
    let row_bytes = width * height * 3 * C;
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
            // Planes of one channel, or one image of three channels.
            Some((columns, rows)) => {
                let (count, pixel) = if planes { (3, C) } else { (1, 3 * C) };
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

/// Blends u8 values: the weighted mean, rounded half up, with weights of 16 bits.
fn blend_u8(own: &mut [u8], other: &[u8], share: f32) {
    let share = (share * 65_536.0).round() as u32;
    let rest = 65_536 - share;
    for (a, b) in own.iter_mut().zip(other) {
        *a = ((u32::from(*a) * share + u32::from(*b) * rest + 32_768) >> 16) as u8;
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

/// The stream of a batch.
struct Stream(Rng);

impl Random for Stream {
    fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.0.below(n as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_the_next_valid_rows() {
        assert_eq!(partners(&[true, true, true]), [1, 2, 0]);
        assert_eq!(partners(&[false, true, false, true, true]), [0, 3, 2, 4, 1]);
        assert_eq!(partners(&[true, false]), [0, 1]);
        assert!(partners(&[]).is_empty());
    }

    #[test]
    fn u8_values_are_rounded_means() {
        for (a, b, share) in [(0u8, 255u8, 0.25f32), (255, 255, 0.3), (10, 11, 0.5), (200, 3, 1.0), (200, 3, 0.0)] {
            let mut own = [a];
            blend_u8(&mut own, &[b], share);
            let exact = f64::from(a) * f64::from(share) + f64::from(b) * (1.0 - f64::from(share));
            assert!((f64::from(own[0]) - exact).abs() <= 0.51, "{a} {b} {share}: {}", own[0]);
        }
    }

    #[test]
    fn labels_outside_the_classes_are_named() {
        assert_eq!(soft_labels(&[0, 7], &[true, true], &[1, 0], 0.5, 3), Err(7));
        let soft = soft_labels(&[2, -100, 0], &[true, false, true], &[2, 1, 0], 0.75, 3).unwrap();
        assert_eq!(soft, [0.25, 0.0, 0.75, 0.0, 0.0, 0.0, 0.75, 0.0, 0.25]);
    }
}
