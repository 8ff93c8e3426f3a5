//! The weights of an antialiased resize along one axis: PIL's filters, and its fixed-point weights for 8-bit pixels.

use super::Filter;

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

impl AxisWeights {
    /// Computes the weights of `n` result pixels, in reverse order if `flipped`: PIL's `precompute_coeffs` and
    /// `normalize_coeffs_8bpc`, without the weights at either end that round to 0.
    pub(crate) fn compute(&mut self, axis: SourceAxis, n: u32, flipped: bool, filter: Filter) {
        let SourceAxis { start, length, limit, skipped } = axis;
        let scale = length / f64::from(n);
        let reduction = scale.max(1.0);
        let support = reduction * f64::from(filter.support());
        self.stride = support.ceil() as usize + 1;
        self.pairs = 1;
        self.starts.clear();
        self.weights.clear();
        self.weights.resize(self.stride * n as usize, WeightPair::default());
        for (i, weights) in self.weights.chunks_exact_mut(self.stride).enumerate() {
            let i = if flipped { n as usize - 1 - i } else { i };
            let centre = start + (i as f64 + 0.5) * scale;
            let first = ((centre - support + 0.5) as u32).min(limit - 1);
            let end = ((centre + support + 0.5) as u32).clamp(first + 1, limit);
            self.exact.clear();
            self.exact.extend((first..end).map(|x| {
                let distance = (f64::from(x) - centre + 0.5) * (1.0 / reduction);
                weight(filter, distance)
            }));
            let sum: f64 = self.exact.iter().sum();
            let one = f64::from(1 << PRECISION);
            // Rounded away from 0.
            let rounded = |w: f64| if w < 0.0 { (w - 0.5) as i32 } else { (w + 0.5) as i32 };
            let fixed = |w: &f64| if sum == 0.0 { 0 } else { rounded(w / sum * one) };
            let zeros = self.exact.iter().take_while(|w| fixed(w) == 0).count();
            let kept = &self.exact[zeros.min(self.exact.len() - 1)..];
            let count = kept.iter().rposition(|w| fixed(w) != 0).map_or(1, |last| last + 1);
            self.starts.push((end - kept.len() as u32).saturating_sub(skipped));
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
