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

impl WeightPair {
    fn new(a: i32, b: i32) -> Self {
        let low = (1 << LOW_BITS) - 1;
        let both = |a: i32, b: i32| a & 0xFFFF | b << 16;
        WeightPair { high: both(a >> LOW_BITS, b >> LOW_BITS), low: both(a & low, b & low) }
    }

    /// Returns the two weights.
    pub(crate) fn weights(self) -> [i32; 2] {
        let join = |high: i32, low: i32| (high << LOW_BITS) + low;
        // The first weight's parts are signed as well.
        let first = |both: i32| both << 16 >> 16;
        [join(first(self.high), first(self.low)), join(self.high >> 16, self.low >> 16)]
    }
}

/// Returns the weight of a source pixel at a distance from the centre of the result pixel, in pixels of the reduced image.
fn weight(filter: Filter, distance: f64) -> f64 {
    let x = distance.abs();
    match filter {
        Filter::Bilinear | Filter::Nearest => (1.0 - x).max(0.0),
        // Keys, "Cubic convolution interpolation", 1981, with a = −1/2.
        Filter::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        Filter::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5,
        Filter::Lanczos if x < 3.0 => sinc(x) * sinc(x / 3.0),
        Filter::Bicubic | Filter::Lanczos => 0.0,
    }
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

impl SourceAxis {
    /// Returns the centre of result pixel `i` of `n`, and the factor by which the filter is widened.
    fn centre(&self, n: u32, i: usize) -> (f64, f64) {
        let scale = self.length / f64::from(n);
        (self.start + (i as f64 + 0.5) * scale, scale.max(1.0))
    }
}

/// For each result pixel along an axis, the first source pixel with a weight and the weights from that pixel on.
#[derive(Debug, Default)]
pub(crate) struct AxisWeights {
    starts: Vec<u32>,
    weights: Vec<WeightPair>,
    /// Pairs allocated per result pixel.
    stride: usize,
    /// Pairs in use per result pixel.
    pairs: usize,
    /// Weights of the result pixel being computed, not yet normalised.
    exact: Vec<f64>,
}

/// Returns the source pixels that result pixel `i` of `n` reads, in pixels from the start of the crop, and leaves their weights in
/// `exact`, not normalised: PIL's `precompute_coeffs`.
pub(super) fn exact_weights(axis: SourceAxis, n: u32, i: usize, filter: Filter, exact: &mut Vec<f64>) -> Range<u32> {
    let (centre, reduction) = axis.centre(n, i);
    let support = reduction * f64::from(filter.support());
    let first = ((centre - support + 0.5) as u32).min(axis.limit - 1);
    let end = ((centre + support + 0.5) as u32).clamp(first + 1, axis.limit);
    exact.clear();
    exact.extend((first..end).map(|x| weight(filter, distance(x, centre, reduction))));
    first..end
}

/// Returns the distance of source pixel `x` from the centre of a result pixel, in pixels of the reduced image.
fn distance(x: u32, centre: f64, reduction: f64) -> f64 {
    (f64::from(x) - centre + 0.5) * (1.0 / reduction)
}

/// Returns the most source pixels that a result pixel reads.
pub(super) fn taps(axis: SourceAxis, n: u32, filter: Filter) -> usize {
    let support = (axis.length / f64::from(n)).max(1.0) * f64::from(filter.support());
    2 * support.ceil() as usize + 1
}

impl AxisWeights {
    /// Computes the weights of `n` result pixels, in reverse order if `flipped`: PIL's `precompute_coeffs` and
    /// `normalize_coeffs_8bpc`, without the weights at either end that round to 0.
    pub(crate) fn compute(&mut self, axis: SourceAxis, n: u32, flipped: bool, filter: Filter) {
        self.stride = taps(axis, n, filter).div_ceil(2);
        self.pairs = 1;
        self.starts.clear();
        self.weights.clear();
        self.weights.resize(self.stride * n as usize, WeightPair::default());
        for (i, weights) in self.weights.chunks_exact_mut(self.stride).enumerate() {
            let i = if flipped { n as usize - 1 - i } else { i };
            let Range { start: first, end } = exact_weights(axis, n, i, filter, &mut self.exact);
            let sum: f64 = self.exact.iter().sum();
            let one = f64::from(1 << PRECISION);
            // Rounded away from 0.
            let rounded = |w: f64| if w < 0.0 { (w - 0.5) as i32 } else { (w + 0.5) as i32 };
            let fixed = |w: &f64| if sum == 0.0 { 0 } else { rounded(w / sum * one) };
            // Only in the outer half of the outermost lobe, where the weights of the following result pixels are nearer to 0. Where
            // the filter crosses 0 further in, the next result pixel may need this source pixel, and starts must not decrease.
            let (centre, reduction) = axis.centre(n, i);
            let at_edge = |x: u32| distance(x, centre, reduction) < 0.5 - f64::from(filter.support());
            let zeros = self.exact.iter().zip(first..).take_while(|(w, x)| fixed(w) == 0 && at_edge(*x)).count();
            let kept = &self.exact[zeros.min(self.exact.len() - 1)..];
            let count = kept.iter().rposition(|w| fixed(w) != 0).map_or(1, |last| last + 1);
            self.starts.push((end - kept.len() as u32).saturating_sub(axis.skipped));
            self.pairs = self.pairs.max(count.div_ceil(2));
            for (pair, two) in weights.iter_mut().zip(kept[..count].chunks(2)) {
                *pair = WeightPair::new(fixed(&two[0]), two.get(1).map_or(0, fixed));
            }
        }
    }

    /// Returns the number of result pixels.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the number of weight pairs, the same for each result pixel.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs
    }

    /// Returns the first source pixel of result pixel `i`, counted from the first decoded pixel of the crop.
    pub(crate) fn start(&self, i: usize) -> usize {
        self.starts[i] as usize
    }

    /// Returns the weights of result pixel `i`.
    pub(crate) fn weights(&self, i: usize) -> &[WeightPair] {
        &self.weights[i * self.stride..][..self.pairs]
    }

    /// Returns the length of a source row in pixels: the end of the last pixel that has a weight, including weights of 0
    /// that fill up a pair.
    pub(crate) fn source_len(&self) -> usize {
        // Starts increase, or decrease if flipped, so one of the two ends has the largest.
        let ends = [self.starts.first(), self.starts.last()].map(|s| s.map_or(0, |s| *s as usize));
        ends[0].max(ends[1]) + 2 * self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Among them 83 to 97, where the centre of a result pixel is two source pixels from another: Lanczos weighs that with 0. From
    /// 7 to 25, bicubic weighs the first source pixel with 0 before it weighs it with less.
    #[test]
    fn starts_never_decrease() {
        let mut weights = AxisWeights::default();
        for filter in [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
            for limit in 1..100 {
                for n in 1..120 {
                    let axis = SourceAxis { start: 0.0, length: limit.into(), limit, skipped: 0 };
                    weights.compute(axis, n, false, filter);
                    assert!(weights.starts.is_sorted(), "{limit} to {n} pixels, {filter:?}");
                }
            }
        }
    }
}
