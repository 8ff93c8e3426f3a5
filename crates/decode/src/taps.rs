//! The weights of an antialiased bilinear resize along one axis, as PIL has them for 8-bit pixels.

/// Bits after the point of a weight: PIL's `PRECISION_BITS`, 32 less 8 of the pixel less 2 for sums of weights above 1.
pub(crate) const PRECISION: u32 = 32 - 8 - 2;

/// Bits of a weight in its lower part, so that both parts fit a signed 16-bit number.
pub(crate) const LOW_BITS: u32 = 11;

/// Two neighbouring weights, each `high * 2^LOW_BITS + low`: the first in the lower 16 bits, as one instruction multiplies
/// and adds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) high: i32,
    pub(crate) low: i32,
}

impl Pair {
    fn new(a: u32, b: u32) -> Self {
        let low = (1 << LOW_BITS) - 1;
        let both = |a: u32, b: u32| (a | b << 16).cast_signed();
        Pair { high: both(a >> LOW_BITS, b >> LOW_BITS), low: both(a & low, b & low) }
    }

    /// The two weights.
    pub(crate) fn weights(self) -> [i32; 2] {
        let join = |high: i32, low: i32| (high << LOW_BITS) + low;
        [join(self.high & 0xFFFF, self.low & 0xFFFF), join(self.high >> 16, self.low >> 16)]
    }
}

/// What fills a row or column of the result: `length` pixels from `start` on, of a view of `limit` pixels, all counted from
/// the view's first; but source pixels are counted after the first `skipped` of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) start: f64,
    pub(crate) length: f64,
    pub(crate) limit: u32,
    pub(crate) skipped: u32,
}

/// For every result pixel along an axis, the first source pixel that counts, and the weights from there on.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    starts: Vec<u32>,
    weights: Vec<Pair>,
    stride: usize,
    pairs: usize,
    exact: Vec<f64>,
}

impl Taps {
    /// Weights for `n` result pixels, in reverse order if `mirrored`: PIL's `precompute_coeffs` and
    /// `normalize_coeffs_8bpc`, without the weights that round to 0 at either end.
    pub(crate) fn fill(&mut self, axis: Axis, n: u32, mirrored: bool) {
        let Axis { start, length, limit, skipped } = axis;
        let scale = length / f64::from(n);
        let support = scale.max(1.0);
        self.stride = support.ceil() as usize + 1;
        self.pairs = 1;
        self.starts.clear();
        self.weights.clear();
        self.weights.resize(self.stride * n as usize, Pair::default());
        for (i, weights) in self.weights.chunks_exact_mut(self.stride).enumerate() {
            let i = if mirrored { n as usize - 1 - i } else { i };
            let centre = start + (i as f64 + 0.5) * scale;
            let first = ((centre - support + 0.5) as u32).min(limit - 1);
            let end = ((centre + support + 0.5) as u32).clamp(first + 1, limit);
            self.exact.clear();
            self.exact.extend((first..end).map(|x| {
                let distance = (f64::from(x) - centre + 0.5) * (1.0 / support);
                (1.0 - distance.abs()).max(0.0)
            }));
            let sum: f64 = self.exact.iter().sum();
            let whole = f64::from(1 << PRECISION);
            let fixed = |w: &f64| if sum == 0.0 { 0 } else { (0.5 + w / sum * whole) as u32 };
            let nothing = self.exact.iter().take_while(|w| fixed(w) == 0).count();
            let kept = &self.exact[nothing.min(self.exact.len() - 1)..];
            let count = kept.iter().rposition(|w| fixed(w) != 0).map_or(1, |last| last + 1);
            self.starts.push((end - kept.len() as u32).saturating_sub(skipped));
            self.pairs = self.pairs.max(count.div_ceil(2));
            for (pair, two) in weights.iter_mut().zip(kept[..count].chunks(2)) {
                *pair = Pair::new(fixed(&two[0]), two.get(1).map_or(0, fixed));
            }
        }
    }

    /// Number of result pixels.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Pairs of weights of each result pixel.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs
    }

    /// First source pixel of result pixel `i`.
    pub(crate) fn start(&self, i: usize) -> usize {
        self.starts[i] as usize
    }

    /// Weights of result pixel `i`.
    pub(crate) fn weights(&self, i: usize) -> &[Pair] {
        &self.weights[i * self.stride..][..self.pairs]
    }

    /// Source pixels from the axis' start on that any weight, of those that are 0 too, falls on.
    pub(crate) fn reach(&self) -> usize {
        let ends = [self.starts.first(), self.starts.last()].map(|s| s.map_or(0, |s| *s as usize));
        ends[0].max(ends[1]) + 2 * self.pairs
    }
}
