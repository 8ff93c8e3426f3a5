//! The filter along one axis of an antialiased resize: which source pixels a result pixel reads, and with which weights.

use super::Filter;
use std::ops::Range;

/// Fractional bits of a weight: PIL's `PRECISION_BITS`, which is 32 minus 8 bits of the pixel minus 2 bits for sums of
/// weights above 1.
pub(crate) const PRECISION: u32 = 32 - 8 - 2;

/// Result pixels that a kernel computes at once.
pub(crate) const AT_ONCE: usize = 4;

/// Keys, "Cubic convolution interpolation", 1981, with a = −1/2.
fn cubic(x: f64) -> f64 {
    if x < 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
    } else {
        0.0
    }
}

fn lanczos(x: f64) -> f64 {
    if x < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    let x = x * std::f64::consts::PI;
    libm::sin(x) / x
}

/// One axis of the source, in pixels from the start of the crop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceAxis {
    /// Start of the area that fills the result.
    pub(crate) start: f64,
    /// Length of that area.
    pub(crate) length: f64,
    /// Length of the crop. The filter reads no pixel from here on.
    pub(crate) limit: u32,
    /// Pixels at the start of the crop that were not decoded. [`super::weights::AxisWeights::start`] counts from the first decoded one.
    pub(crate) skipped: u32,
}

/// A filter along an axis: PIL's `precompute_coeffs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisFilter {
    axis: SourceAxis,
    filter: Filter,
    /// Source pixels per result pixel.
    scale: f64,
    /// The factor by which the filter is widened, and its inverse.
    reduction: f64,
    inverse: f64,
    /// Half of its width in source pixels.
    support: f64,
}

impl AxisFilter {
    /// Makes the filter of an axis with `n` result pixels.
    pub(super) fn new(axis: SourceAxis, n: u32, filter: Filter) -> Self {
        let scale = axis.length / f64::from(n);
        let reduction = scale.max(1.0);
        let support = reduction * f64::from(filter.support());
        AxisFilter { axis, filter, scale, reduction, inverse: 1.0 / reduction, support }
    }

    /// Returns the most source pixels that a result pixel reads.
    pub(super) fn taps(&self) -> usize {
        2 * (self.reduction * f64::from(self.filter.support())).ceil() as usize + 1
    }

    /// Returns the source pixels that result pixel `i` reads, in pixels from the start of the crop, and leaves their weights in
    /// `exact`, not normalised.
    pub(super) fn weigh(&self, i: usize, exact: &mut Vec<f64>) -> Range<u32> {
        match self.filter {
            Filter::Bilinear | Filter::Nearest => self.weigh_by(i, exact, |x| (1.0 - x).max(0.0)),
            Filter::Bicubic => self.weigh_by(i, exact, cubic),
            Filter::Lanczos => self.weigh_by(i, exact, lanczos),
        }
    }

    /// As [`AxisFilter::weigh`]. `weight` is that of a source pixel at a distance from the centre of the result pixel, in pixels of
    /// the reduced image.
    fn weigh_by(&self, i: usize, exact: &mut Vec<f64>, weight: impl Fn(f64) -> f64) -> Range<u32> {
        let centre = self.centre(i);
        let span = self.span(centre);
        exact.clear();
        exact.extend(span.clone().map(|x| weight(self.distance(x, centre).abs())));
        span
    }

    /// Returns the source pixels that a result pixel reads.
    #[inline]
    pub(super) fn span(&self, centre: f64) -> Range<u32> {
        let limit = self.axis.limit;
        let first = ((centre - self.support + 0.5) as u32).min(limit - 1);
        first..((centre + self.support + 0.5) as u32).clamp(first + 1, limit)
    }

    /// Returns the centre of result pixel `i`, in pixels from the start of the crop.
    #[inline]
    pub(super) fn centre(&self, i: usize) -> f64 {
        self.axis.start + (i as f64 + 0.5) * self.scale
    }

    /// Returns the distance of source pixel `x` from the centre of a result pixel, in pixels of the reduced image.
    fn distance(&self, x: u32, centre: f64) -> f64 {
        (f64::from(x) - centre + 0.5) * self.inverse
    }

    /// Computes the weights of all result pixels, in reverse order if `flipped`: PIL's `normalize_coeffs_8bpc`.
    pub(super) fn write_weights(&self, flipped: bool, out: &mut WeightBlocks) {
        let WeightBlocks { starts, blocks, exact } = out;
        let n = starts.len();
        for (i, (start, weights)) in starts.iter_mut().zip(blocks.chunks_exact_mut(self.blocks())).enumerate() {
            let i = if flipped { n - 1 - i } else { i };
            *start = self.weigh(i, exact).start;
            let sum: f64 = exact.iter().sum();
            let one = f64::from(1 << PRECISION);
            // Rounded away from 0.
            let rounded = |w: f64| if w < 0.0 { (w - 0.5) as i32 } else { (w + 0.5) as i32 };
            let weights = weights.as_flattened_mut().iter_mut();
            weights
                .zip(exact.iter())
                .for_each(|(weight, w)| *weight = if sum == 0.0 { 0 } else { rounded(w / sum * one) });
        }
    }

    /// Returns the inverse of the factor by which the filter is widened.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn inverse(&self) -> f64 {
        self.inverse
    }

    /// Returns whether the filter is bilinear.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn is_bilinear(&self) -> bool {
        self.filter == Filter::Bilinear
    }

    /// Returns the number of blocks that hold the weights of a result pixel.
    pub(super) fn blocks(&self) -> usize {
        self.taps().div_ceil(WEIGHTS)
    }

    /// Removes weights of 0 in front of the others of result pixel `i`, whose first source pixel is `start`. Returns how many.
    ///
    /// Only at the edge, where the weights of the following result pixels are nearer to 0. Where the filter crosses 0 further in,
    /// the next result pixel may need this source pixel, and starts must not decrease.
    #[cold]
    pub(super) fn trim(&self, i: usize, start: u32, weights: &mut [i32]) -> u32 {
        let others = start..self.axis.limit - 1;
        let zeros = weights.iter().zip(others).take_while(|(w, x)| **w == 0 && self.is_at_edge(*x, i)).count();
        weights.rotate_left(zeros);
        zeros as u32
    }

    /// Returns whether a source pixel is in the outer half of the outermost lobe in front of the centre of result pixel `i`.
    fn is_at_edge(&self, x: u32, i: usize) -> bool {
        self.distance(x, self.centre(i)) < 0.5 - f64::from(self.filter.support())
    }
}

/// The weights of an axis as numbers, which [`super::weights::AxisWeights`] groups.
#[derive(Debug, Default)]
pub(crate) struct WeightBlocks {
    /// For each result pixel, the first source pixel that it reads, at first in pixels from the start of the crop. Grouping moves
    /// it to the first weight that is not 0, counts from the first decoded pixel, and fills up [`AT_ONCE`].
    pub(super) starts: Vec<u32>,
    /// Weights from that source pixel on, [`AxisFilter::blocks`] for each result pixel, filled up with 0.
    pub(super) blocks: Vec<[i32; WEIGHTS]>,
    /// Weights of the result pixel being computed, not yet normalised.
    exact: Vec<f64>,
}

/// Weights of a block.
const WEIGHTS: usize = 8;

impl WeightBlocks {
    /// Makes room for the result pixels of an axis, with weights of 0.
    pub(super) fn reset(&mut self, axis: &AxisFilter, n: usize) {
        self.blocks.clear();
        self.blocks.resize(n * axis.blocks(), [0; WEIGHTS]);
        self.starts.clear();
        self.starts.reserve_exact(n.next_multiple_of(AT_ONCE));
        self.starts.resize(n, 0);
    }
}
