//! Upsampling to one sample for each pixel: libjpeg's triangle filters ("fancy upsampling") and repetition.

use crate::cpu::{CpuFeatures, with_widest_vectors};

/// Vertical triangle filter: three quarters of the nearer row and one quarter of the other. `below` says that the other row
/// is below, where libjpeg rounds differently.
pub(crate) fn down(near: &[u8], far: &[u8], below: bool, out: &mut [u8]) {
    let bias = if below { 2 } else { 1 };
    for ((o, &n), &f) in out.iter_mut().zip(near).zip(far) {
        *o = ((3 * u16::from(n) + u16::from(f) + bias) >> 2) as u8;
    }
}

/// Horizontal triangle filter: writes two samples to `out` for each of the first `n` of `row`; `n` is at least 2. With vector
/// instructions, both slices must have as many bytes more as `pixels/simd.rs` and `pixels/neon.rs` say, of which those of `out` may be overwritten.
pub(crate) fn across(cpu: &CpuFeatures, row: &[u8], n: usize, out: &mut [u8]) {
    with_widest_vectors!(cpu, vectors => vectors.upsample_across(row, n, out));
    let row = &row[..n];
    let v = |i: usize| u16::from(row[i]);
    out[0] = row[0];
    out[1] = ((3 * v(0) + v(1) + 2) >> 2) as u8;
    for (o, w) in out[2..2 * n - 2].chunks_exact_mut(2).zip(row.windows(3)) {
        let [before, here, after] = [w[0], w[1], w[2]].map(u16::from);
        o[0] = ((3 * here + before + 1) >> 2) as u8;
        o[1] = ((3 * here + after + 2) >> 2) as u8;
    }
    out[2 * n - 2] = ((3 * v(n - 1) + v(n - 2) + 1) >> 2) as u8;
    out[2 * n - 1] = row[n - 1];
}

/// Triangle filter in both directions, rounded once: writes two samples to `out` for each of the first `n` of `near` and
/// `far`. As for [`across`], the slices must be longer with vector instructions.
pub(crate) fn both(cpu: &CpuFeatures, near: &[u8], far: &[u8], n: usize, out: &mut [u8]) {
    with_widest_vectors!(cpu, vectors => vectors.upsample_both(near, far, n, out));
    let sum = |i: usize| 3 * u16::from(near[i]) + u16::from(far[i]);
    let (mut before, mut here) = (sum(0), sum(0));
    // At the edges the missing neighbour is the sample itself.
    for (i, o) in out[..2 * n].chunks_exact_mut(2).enumerate() {
        let after = if i + 1 < n { sum(i + 1) } else { here };
        o[0] = ((3 * here + before + 8) >> 4) as u8;
        o[1] = ((3 * here + after + 7) >> 4) as u8;
        (before, here) = (here, after);
    }
}

/// Repeats each sample `times` times.
pub(crate) fn repeat(row: &[u8], times: usize, out: &mut [u8]) {
    for (o, &v) in out.chunks_mut(times).zip(row) {
        o.fill(v);
    }
}
