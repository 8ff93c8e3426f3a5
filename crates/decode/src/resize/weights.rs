//! The weights of an antialiased resize along one axis: PIL's filters, and its fixed-point weights for 8-bit pixels.

use super::Filter;
use std::ops::Range;

/// Fractional bits of a weight: PIL's `PRECISION_BITS`, which is 32 minus 8 bits of the pixel minus 2 bits for sums of
/// weights above 1.
pub(crate) const PRECISION: u32 = 32 - 8 - 2;

/// Bits of the lower part of a weight. Both parts fit a signed 16-bit number.
pub(crate) const LOW_BITS: u32 = 11;

/// Two neighbouring weights, each `high * 2^LOW_BITS + low`. The parts of the first weight are in the lower 16 bits and
/// those of the second in the upper 16 bits: the operand layout of `pmaddwd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WeightPair {
    pub(crate) high: i32,
    pub(crate) low: i32,
}

/// Neighbouring weights in the layout of a kernel's multiplication.
pub(crate) trait WeightGroup: Copy + Default {
    /// The number of weights.
    const TAPS: usize;

    /// Groups up to [`WeightGroup::TAPS`] weights. Those that are missing are 0.
    fn new(weights: &[i32]) -> Self;
}

impl WeightGroup for WeightPair {
    const TAPS: usize = 2;

    fn new(weights: &[i32]) -> Self {
        let low = (1 << LOW_BITS) - 1;
        let both = |a: i32, b: i32| a & 0xFFFF | b << 16;
        let (a, b) = (weights[0], weights.get(1).copied().unwrap_or(0));
        WeightPair { high: both(a >> LOW_BITS, b >> LOW_BITS), low: both(a & low, b & low) }
    }
}

impl WeightPair {
    /// Returns the two weights.
    pub(crate) fn weights(self) -> [i32; 2] {
        let join = |high: i32, low: i32| (high << LOW_BITS) + low;
        // The first weight's parts are signed as well.
        let first = |both: i32| both << 16 >> 16;
        [join(first(self.high), first(self.low)), join(self.high >> 16, self.low >> 16)]
    }
}

/// Four neighbouring weights, each `high * 2^16 + middle * 2^8 + low` with signed digits. Byte `i` of each member belongs to
/// weight `i`: the operand layout of `vpdpbusd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WeightQuad {
    pub(crate) high: i32,
    pub(crate) middle: i32,
    pub(crate) low: i32,
}

impl WeightGroup for WeightQuad {
    const TAPS: usize = 4;

    fn new(weights: &[i32]) -> Self {
        let mut rest = [0; Self::TAPS];
        rest[..weights.len()].copy_from_slice(weights);
        let mut lowest_digits = || {
            let digits = rest.map(|weight| weight as i8);
            rest = std::array::from_fn(|i| (rest[i] - i32::from(digits[i])) >> 8);
            i32::from_le_bytes(digits.map(|digit| digit as u8))
        };
        let (low, middle, high) = (lowest_digits(), lowest_digits(), lowest_digits());
        debug_assert_eq!(rest, [0; Self::TAPS], "weights are below 2");
        WeightQuad { high, middle, low }
    }
}

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
    /// Pixels at the start of the crop that were not decoded. [`AxisWeights::start`] counts from the first decoded one.
    pub(crate) skipped: u32,
}

/// A filter along an axis: PIL's `precompute_coeffs`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisFilter {
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
        let (centre, limit) = (self.centre(i), self.axis.limit);
        let first = ((centre - self.support + 0.5) as u32).min(limit - 1);
        let end = ((centre + self.support + 0.5) as u32).clamp(first + 1, limit);
        exact.clear();
        exact.extend((first..end).map(|x| weight(self.distance(x, centre).abs())));
        first..end
    }

    fn centre(&self, i: usize) -> f64 {
        self.axis.start + (i as f64 + 0.5) * self.scale
    }

    /// Returns the distance of source pixel `x` from the centre of a result pixel, in pixels of the reduced image.
    fn distance(&self, x: u32, centre: f64) -> f64 {
        (f64::from(x) - centre + 0.5) * self.inverse
    }

    /// Returns whether a source pixel is in the outer half of the outermost lobe in front of the centre of result pixel `i`.
    fn is_at_edge(&self, x: u32, i: usize) -> bool {
        self.distance(x, self.centre(i)) < 0.5 - f64::from(self.filter.support())
    }
}

/// For each result pixel along an axis, the first source pixel with a weight and the weights from that pixel on.
#[derive(Debug, Default)]
pub(crate) struct AxisWeights<G> {
    /// Of [`AT_ONCE`] times as many result pixels as needed; those beyond `len` have weights of 0.
    starts: Vec<u32>,
    /// `groups` for each start.
    weights: Vec<G>,
    groups: usize,
    /// The number of result pixels.
    len: usize,
    /// The largest start.
    last_start: u32,
    /// Weights of the result pixel being computed: not yet normalised, and as they are used.
    exact: Vec<f64>,
    fixed: Vec<i32>,
}

/// Result pixels that a kernel computes at once.
pub(crate) const AT_ONCE: usize = 4;

impl<G: WeightGroup> AxisWeights<G> {
    /// Computes the weights of `n` result pixels, in reverse order if `flipped`: PIL's `precompute_coeffs` and
    /// `normalize_coeffs_8bpc`, without the weights at either end that round to 0.
    pub(crate) fn compute(&mut self, axis: SourceAxis, n: u32, flipped: bool, filter: Filter) {
        let axis_filter = AxisFilter::new(axis, n, filter);
        let stride = axis_filter.taps().div_ceil(G::TAPS);
        (self.len, self.groups, self.last_start) = (n as usize, 1, 0);
        let padded = self.len.next_multiple_of(AT_ONCE);
        self.starts.clear();
        self.starts.reserve_exact(padded);
        self.weights.clear();
        self.weights.resize(stride * padded, G::default());
        for (i, groups) in self.weights.chunks_exact_mut(stride).take(self.len).enumerate() {
            let i = if flipped { self.len - 1 - i } else { i };
            let Range { start: first, end } = axis_filter.weigh(i, &mut self.exact);
            let sum: f64 = self.exact.iter().sum();
            let one = f64::from(1 << PRECISION);
            // Rounded away from 0.
            let rounded = |w: f64| if w < 0.0 { (w - 0.5) as i32 } else { (w + 0.5) as i32 };
            self.fixed.clear();
            self.fixed.extend(self.exact.iter().map(|w| if sum == 0.0 { 0 } else { rounded(w / sum * one) }));
            // Only at the edge, where the weights of the following result pixels are nearer to 0. Where the filter crosses 0 further
            // in, the next result pixel may need this source pixel, and starts must not decrease.
            let zeros = self.fixed.iter().zip(first..).take_while(|(w, x)| **w == 0 && axis_filter.is_at_edge(*x, i));
            let kept = &self.fixed[zeros.count().min(self.fixed.len() - 1)..];
            let count = kept.iter().rposition(|w| *w != 0).map_or(1, |last| last + 1);
            let start = (end - kept.len() as u32).saturating_sub(axis.skipped);
            self.starts.push(start);
            self.last_start = self.last_start.max(start);
            self.groups = self.groups.max(count.div_ceil(G::TAPS));
            for (group, weights) in groups.iter_mut().zip(kept[..count].chunks(G::TAPS)) {
                *group = G::new(weights);
            }
        }
        self.starts.resize(padded, self.last_start);
        if self.groups < stride {
            for i in 1..self.len {
                self.weights.copy_within(i * stride..i * stride + self.groups, i * self.groups);
            }
            self.weights.truncate(self.groups * self.len);
            self.weights.resize(self.groups * padded, G::default());
        }
    }

    /// Returns the number of result pixels.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns [`AxisWeights::start`] of each result pixel, and of further ones up to a multiple of [`AT_ONCE`].
    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Returns the weights of all [`AxisWeights::starts`], one after the other: [`AxisWeights::groups`] for each.
    pub(crate) fn all_weights(&self) -> &[G] {
        &self.weights
    }

    /// Returns the groups of weights of a result pixel.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the largest of [`AxisWeights::starts`].
    pub(crate) fn last_start(&self) -> usize {
        self.last_start as usize
    }

    /// Returns the number of weights, the same for each result pixel. Some may be 0.
    pub(crate) fn taps(&self) -> usize {
        self.groups * G::TAPS
    }

    /// Returns the first source pixel of result pixel `i`, counted from the first decoded pixel of the crop.
    pub(crate) fn start(&self, i: usize) -> usize {
        self.starts[i] as usize
    }

    /// Returns the weights of result pixel `i`.
    pub(crate) fn weights(&self, i: usize) -> &[G] {
        &self.weights[i * self.groups..][..self.groups]
    }

    /// Returns the length of a source row in pixels: the end of the last pixel that has a weight, including weights of 0
    /// that fill up a group.
    pub(crate) fn source_len(&self) -> usize {
        self.last_start() + self.taps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Among them 83 to 97, where the centre of a result pixel is two source pixels from another: Lanczos weighs that with 0. From
    /// 7 to 25, bicubic weighs the first source pixel with 0 before it weighs it with less.
    #[test]
    fn starts_never_decrease() {
        let mut weights = AxisWeights::<WeightPair>::default();
        for filter in [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
            for limit in 1..100 {
                for n in 1..120 {
                    let axis = SourceAxis { start: 0.0, length: limit.into(), limit, skipped: 0 };
                    weights.compute(axis, n, false, filter);
                    assert!(weights.starts[..n as usize].is_sorted(), "{limit} to {n} pixels, {filter:?}");
                }
            }
        }
    }

    #[test]
    fn digits_of_four_weights_make_the_weights() {
        for weights in
            [[0, 1, -1, 127], [128, 255, -128, -129], [1 << PRECISION, (1 << 23) - 32_897, -(1 << 22), 32_768]]
        {
            let WeightQuad { high, middle, low } = WeightQuad::new(&weights);
            let digit = |digits: i32, i: usize| i32::from(digits.to_le_bytes()[i] as i8);
            let joined = |i| (digit(high, i) << 16) + (digit(middle, i) << 8) + digit(low, i);
            assert_eq!(std::array::from_fn(joined), weights);
        }
    }
}
