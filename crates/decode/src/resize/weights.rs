//! PIL's fixed-point weights of an antialiased resize of 8-bit pixels along one axis, in groups for a kernel.

use super::Filter;
use super::axis_filter::{AT_ONCE, AxisFilter, SourceAxis, WeightBlocks};

/// Bits of the lower part of a weight. Both parts fit a signed 16-bit number.
#[cfg(target_arch = "x86_64")]
pub(crate) const LOW_BITS: u32 = 11;

/// Two neighbouring weights, each `high * 2^LOW_BITS + low`. The parts of the first weight are in the lower 16 bits and
/// those of the second in the upper 16 bits: the operand layout of `pmaddwd`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WeightPair {
    pub(crate) high: i32,
    pub(crate) low: i32,
}

/// Neighbouring weights in the layout of a kernel's multiplication.
pub(crate) trait WeightGroup: Copy + Default {
    /// The number of weights.
    const TAPS: usize;

    /// Groups the first [`WeightGroup::TAPS`] weights.
    ///
    /// # Panics
    /// If there are fewer.
    fn new(weights: &[i32]) -> Self;
}

#[cfg(target_arch = "x86_64")]
impl WeightGroup for WeightPair {
    const TAPS: usize = 2;

    fn new(weights: &[i32]) -> Self {
        let low = (1 << LOW_BITS) - 1;
        let both = |a: i32, b: i32| a & 0xFFFF | b << 16;
        let (a, b) = (weights[0], weights[1]);
        WeightPair { high: both(a >> LOW_BITS, b >> LOW_BITS), low: both(a & low, b & low) }
    }
}

impl WeightGroup for [i32; 2] {
    const TAPS: usize = 2;

    fn new(weights: &[i32]) -> Self {
        [weights[0], weights[1]]
    }
}

/// Four neighbouring weights, each `high * 2^16 + middle * 2^8 + low` with signed digits. Byte `i` of each member belongs to
/// weight `i`: the operand layout of `vpdpbusd`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WeightQuad {
    pub(crate) high: i32,
    pub(crate) middle: i32,
    pub(crate) low: i32,
}

#[cfg(target_arch = "x86_64")]
impl WeightGroup for WeightQuad {
    const TAPS: usize = 4;

    fn new(weights: &[i32]) -> Self {
        // Digits from -128 to 127 are bytes of the sum, less 128.
        let digits = |weight: i32| {
            debug_assert!((0..1 << 24).contains(&(weight + HALVES)), "a weight below 2");
            ((weight + HALVES) ^ HALVES).to_le_bytes()
        };
        let [a, b, c, d] = weights.first_chunk::<{ Self::TAPS }>().expect("four weights").map(digits);
        let digit = |k: usize| i32::from_le_bytes([a[k], b[k], c[k], d[k]]);
        WeightQuad { high: digit(2), middle: digit(1), low: digit(0) }
    }
}

/// 128 for each of three digits.
#[cfg(target_arch = "x86_64")]
const HALVES: i32 = 0x80_80_80;

/// For each result pixel along an axis, the first source pixel with a weight and the weights from that pixel on.
#[derive(Debug, Default)]
pub(crate) struct AxisWeights<G> {
    ungrouped: WeightBlocks,
    /// `groups` for each start; of 0 for those beyond the last result pixel.
    weights: Vec<G>,
    groups: usize,
    /// The number of result pixels.
    len: usize,
    /// The largest start.
    last_start: u32,
}

impl<G: WeightGroup> AxisWeights<G> {
    /// Computes the weights of `n` result pixels, in reverse order if `flipped`: PIL's `precompute_coeffs` and
    /// `normalize_coeffs_8bpc`, without the weights at either end that round to 0. `write_weights` does what
    /// [`AxisFilter::write_weights`] does.
    pub(crate) fn compute(
        &mut self,
        axis: SourceAxis,
        n: u32,
        flipped: bool,
        filter: Filter,
        write_weights: impl FnOnce(&AxisFilter, bool, &mut WeightBlocks),
    ) {
        let axis_filter = AxisFilter::new(axis, n, filter);
        self.len = n as usize;
        let blocks = axis_filter.blocks();
        self.ungrouped.reset(&axis_filter, self.len);
        write_weights(&axis_filter, flipped, &mut self.ungrouped);
        let ungrouped = &mut self.ungrouped;
        self.last_start = 0;
        // The last weight that is not 0 for any result pixel.
        let mut last = 0;
        for (i, (start, weights)) in
            ungrouped.starts.iter_mut().zip(ungrouped.blocks.chunks_exact_mut(blocks)).enumerate()
        {
            let weights = weights.as_flattened_mut();
            if weights[0] == 0 {
                let i = if flipped { self.len - 1 - i } else { i };
                *start += axis_filter.trim(i, *start, weights);
            }
            *start = start.saturating_sub(axis.skipped);
            self.last_start = self.last_start.max(*start);
            if let Some(further) = weights[last + 1..].iter().rposition(|w| *w != 0) {
                last += 1 + further;
            }
        }
        self.groups = (last + 1).div_ceil(G::TAPS);
        let padded = self.len.next_multiple_of(AT_ONCE);
        ungrouped.starts.resize(padded, self.last_start);
        self.weights.clear();
        self.weights.resize(self.groups * padded, G::default());
        for (groups, weights) in self.weights.chunks_exact_mut(self.groups).zip(ungrouped.blocks.chunks_exact(blocks)) {
            for (group, weights) in groups.iter_mut().zip(weights.as_flattened().chunks_exact(G::TAPS)) {
                *group = G::new(weights);
            }
        }
    }

    /// Returns the number of result pixels.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns [`AxisWeights::start`] of each result pixel, and of further ones up to a multiple of [`AT_ONCE`].
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(crate) fn starts(&self) -> &[u32] {
        &self.ungrouped.starts
    }

    /// Returns the weights of all [`AxisWeights::starts`], one after the other: [`AxisWeights::groups`] for each.
    #[cfg(target_arch = "x86_64")]
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
        self.ungrouped.starts[i] as usize
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
    #[cfg(target_arch = "x86_64")]
    use crate::resize::axis_filter::PRECISION;

    /// Among them 83 to 97, where the centre of a result pixel is two source pixels from another: Lanczos weighs that with 0. From
    /// 7 to 25, bicubic weighs the first source pixel with 0 before it weighs it with less.
    #[test]
    fn starts_never_decrease() {
        let mut weights = AxisWeights::<[i32; 2]>::default();
        for filter in [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
            for limit in 1..100 {
                for n in 1..120 {
                    let axis = SourceAxis { start: 0.0, length: limit.into(), limit, skipped: 0 };
                    weights.compute(axis, n, false, filter, AxisFilter::write_weights);
                    assert!(weights.starts()[..n as usize].is_sorted(), "{limit} to {n} pixels, {filter:?}");
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
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
