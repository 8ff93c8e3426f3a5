//! Mixes the rows of a complete batch: MixUp, CutMix and mosaics, with soft labels.
//!
//! What a batch gets is a pure function of seed, epoch and the position of its first row. A row is mixed with the next row that
//! has a sample, the last one with the first. Rows without a sample stay as they are, and their soft labels are zero.

use crate::mosaic::Mosaics;
use half::{bf16, f16};
use shardtool_decode::{Depth, Dtype, Layout, Output, PixelFormat, Random, beta};
use shardtool_order::{Domain, Rng, key};
use std::ops::Range;

/// How the rows of a batch are mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    /// One of these is drawn for each batch, with equal probability. At least one.
    pub transforms: Vec<BatchTransform>,
    /// The number of classes: labels are 0 to `classes` − 1, and soft labels `[N, classes]`. 0 leaves labels as they are, for
    /// mosaics of images whose objects have labels.
    pub classes: u32,
}

/// One way of mixing images. MixUp and CutMix mix two, and draw the share of the first from the beta distribution with both
/// parameters `alpha`.
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
    /// The image shows parts of itself and of the next three around a point (Bochkovskiy et al., "YOLOv4", 2020). Boxes and
    /// points move along.
    Mosaic {
        /// Probability that a row becomes a mosaic, 0 to 1.
        p: f64,
        /// Where the point may lie, as fractions of width and height: smallest and largest, 0 to 1.
        centre: [f64; 2],
    },
}

impl BatchTransform {
    /// Checks the parameters.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        match self {
            BatchTransform::MixUp { alpha } | BatchTransform::CutMix { alpha } => {
                match alpha > 0.0 && alpha.is_finite() {
                    true => Ok(()),
                    false => Err("`alpha` must be above 0"),
                }
            }
            BatchTransform::Mosaic { p, centre: [low, high] } => {
                // Comparisons with NaN are false.
                match (0.0..=1.0).contains(&p) && 0.0 <= low && low <= high && high <= 1.0 {
                    true => Ok(()),
                    false => Err("`p` and `centre` of a mosaic must be from 0 to 1"),
                }
            }
        }
    }

    /// Returns whether boxes and points move with the pixels.
    pub(crate) fn moves_objects(self) -> bool {
        matches!(self, BatchTransform::Mosaic { .. })
    }
}

/// What was drawn for one batch, for images of one size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawn {
    /// Pairs of images.
    Mix(DrawnMix),
    /// Mosaics of four.
    Mosaics(Mosaics),
}

/// How pairs of images are mixed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DrawnMix {
    /// The share of each row's own image.
    share: f64,
    /// Columns and rows that are replaced; `None` mixes every value.
    rectangle: Option<(Range<usize>, Range<usize>)>,
    /// The row that each one is mixed with.
    partners: Vec<usize>,
}

impl Mixing {
    /// Returns whether boxes and points move with the pixels, whichever transform is drawn.
    pub(crate) fn moves_objects(&self) -> bool {
        self.transforms.iter().all(|transform| transform.moves_objects())
    }

    /// Returns how many images of a batch are copied while it is mixed, at most.
    pub(crate) fn copies(&self) -> u64 {
        if self.transforms.iter().any(|transform| transform.moves_objects()) { 3 } else { 1 }
    }

    /// Draws for the batch whose first row has position `first` in its replica's epoch, and images of size (width, height).
    /// `valid` says which rows have a sample.
    pub(crate) fn draw(&self, seed: u64, epoch: u64, first: u64, (width, height): (u32, u32), valid: &[bool]) -> Drawn {
        let mut random = Stream(Rng::new(key(Domain::Mix, seed, epoch, first)));
        let which = random.below(self.transforms.len() as u64) as usize;
        let mut share = |alpha| beta(alpha, &mut random);
        match self.transforms[which] {
            BatchTransform::Mosaic { p, centre } => {
                Drawn::Mosaics(Mosaics::draw(p, centre, (width, height), valid, &mut random))
            }
            BatchTransform::MixUp { alpha } => {
                Drawn::Mix(DrawnMix { share: share(alpha), rectangle: None, partners: partners(valid) })
            }
            BatchTransform::CutMix { alpha } => {
                let share = share(alpha);
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
                Drawn::Mix(DrawnMix { share, rectangle: Some((columns, rows)), partners: partners(valid) })
            }
        }
    }
}

impl Drawn {
    /// Returns the rows that a row shows, and the share of each.
    fn shares(&self, row: usize) -> Vec<(usize, f64)> {
        match self {
            Drawn::Mix(mix) => vec![(row, mix.share), (mix.partners[row], 1.0 - mix.share)],
            Drawn::Mosaics(mosaics) => mosaics.shares(row),
        }
    }

    /// Mixes the images of a batch in place.
    pub(crate) fn mix_images(&self, images: &mut [u8], size: (u32, u32), kind: Pixels) {
        match self {
            Drawn::Mix(mix) => mix_images(images, size, kind, mix),
            Drawn::Mosaics(mosaics) => mosaics.compose(images, kind.pixel_bytes(), kind.plane_count()),
        }
    }
}

/// Returns for each row the one that it is mixed with: the next valid one; itself if no other is valid, or it is not.
fn partners(valid: &[bool]) -> Vec<usize> {
    let n = valid.len();
    let next = |row: usize| (1..n).map(|step| (row + step) % n).find(|other| valid[*other]);
    (0..n).map(|row| if valid[row] { next(row).unwrap_or(row) } else { row }).collect()
}

/// Returns the soft labels of a batch, `[N, classes]`. The error is a label that is not one of the classes.
pub(crate) fn soft_labels(labels: &[i64], valid: &[bool], drawn: &Drawn, classes: u32) -> Result<Vec<f32>, i64> {
    let classes = classes as usize;
    let mut soft = vec![0.0; labels.len() * classes];
    let class = |row: usize| usize::try_from(labels[row]).ok().filter(|class| *class < classes).ok_or(labels[row]);
    for (row, weights) in soft.chunks_exact_mut(classes).enumerate().filter(|(row, _)| valid[*row]) {
        for (source, share) in drawn.shares(row) {
            weights[class(source)?] += share as f32;
        }
    }
    Ok(soft)
}

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
    fn pixel_bytes(self) -> usize {
        let value = self.dtype.map_or(self.depth.bytes(), Dtype::bytes);
        if self.planes { value } else { value * self.channels }
    }

    fn plane_count(self) -> usize {
        if self.planes { self.channels } else { 1 }
    }
}

/// Mixes pairs of images of a batch in place.
fn mix_images(images: &mut [u8], (width, height): (u32, u32), kind: Pixels, mix: &DrawnMix) {
    let size = (width as usize, height as usize);
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
    mix: &DrawnMix,
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

/// Blends u8 values: the weighted mean, rounded half up, with weights of 16 bits.
fn blend_u8(own: &mut [u8], other: &[u8], share: f32) {
    let share = (share * 65_536.0).round() as u32;
    let rest = 65_536 - share;
    for (a, b) in own.iter_mut().zip(other) {
        *a = ((u32::from(*a) * share + u32::from(*b) * rest + 32_768) >> 16) as u8;
    }
}

/// As [`blend_u8`], for u16 values.
fn blend_u16(own: &mut [u8], other: &[u8], share: f32) {
    let share = (share * 65_536.0).round() as u32;
    let rest = 65_536 - share;
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
        let pairs = |share, valid: &[bool]| Drawn::Mix(DrawnMix { share, rectangle: None, partners: partners(valid) });
        let all = [true, true];
        assert_eq!(soft_labels(&[0, 7], &all, &pairs(0.5, &all), 3), Err(7));
        let valid = [true, false, true];
        let soft = soft_labels(&[2, -100, 0], &valid, &pairs(0.75, &valid), 3).unwrap();
        assert_eq!(soft, [0.25, 0.0, 0.75, 0.0, 0.0, 0.0, 0.75, 0.0, 0.25]);
    }
}
