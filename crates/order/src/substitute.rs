//! Substitutes of a sample that cannot be read.

use std::ops::Range;

use crate::prf::{Domain, key};

/// Number of substitutes to try before a bad sample is an error.
const CANDIDATES: u64 = 16;

/// Returns the positions to try, in turn, if the sample at position `q` of `len` is bad: (q + k·m) mod N for k = 1…16.
/// The stride m is never a multiple of N, so the first candidate is another position; the stride also skips a damaged
/// part of a file. Empty if `len` is 1.
pub fn substitutes(seed: u64, epoch: u64, q: u64, len: u64) -> impl Iterator<Item = u64> + use<> {
    substitutes_among(stride_key(seed, epoch, q), q, 0..len)
}

/// Returns the key that decides the stride of position `q`.
pub(crate) fn stride_key(seed: u64, epoch: u64, q: u64) -> u64 {
    key(Domain::Substitute, seed, epoch, q)
}

/// As [`substitutes`], from the positions `among`, of which `q` is one.
pub(crate) fn substitutes_among(stride_key: u64, q: u64, among: Range<u64>) -> impl Iterator<Item = u64> + use<> {
    let (start, len) = (among.start, among.end - among.start);
    let candidates = if len > 1 { CANDIDATES } else { 0 };
    let stride = 1 + stride_key % len.saturating_sub(1).max(1);
    let candidate = move |k| (u128::from(q - start) + u128::from(k) * u128::from(stride)) % u128::from(len);
    (1..=candidates).map(move |k: u64| start + candidate(k) as u64)
}
