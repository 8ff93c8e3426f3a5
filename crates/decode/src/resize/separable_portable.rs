//! The two passes of [`super::separable`] in portable arithmetic.

use super::axis_filter::PRECISION;
use super::kernel::Kernel;
use super::weights::AxisWeights;

/// The kernel for processors without the vector instructions of the others, and their reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl<const R: usize> Kernel<[i32; 2], R> for Portable {
    fn horizontal<const C: usize>(self, rows: [&[u8]; R], columns: &AxisWeights<[i32; 2]>, out: [&mut [u8]; R]) {
        rows.into_iter().zip(out).for_each(|(row, out)| horizontal::<C>(row, columns, out));
    }

    fn vertical(self, ring: &[u8], row_offsets: &[usize], weights: &[[i32; 2]], out: &mut [u8]) {
        vertical(ring, row_offsets, weights, out);
    }
}

/// Resizes one row horizontally.
fn horizontal<const C: usize>(row: &[u8], columns: &AxisWeights<[i32; 2]>, out: &mut [u8]) {
    for (i, out) in out.as_chunks_mut::<C>().0.iter_mut().take(columns.len()).enumerate() {
        let mut sums = [1 << (PRECISION - 1); C];
        let pixels = row[columns.start(i) * C..].as_chunks::<C>().0;
        for ([a, b], [first, second]) in columns.weights(i).iter().zip(pixels.as_chunks::<2>().0) {
            for (sum, (p, q)) in sums.iter_mut().zip(first.iter().zip(second)) {
                *sum += a * i32::from(*p) + b * i32::from(*q);
            }
        }
        *out = sums.map(rounded);
    }
}

/// Computes one result row from rows of the ring. Works on a few columns at a time, so that their
/// sums stay in registers.
fn vertical(ring: &[u8], row_offsets: &[usize], weights: &[[i32; 2]], out: &mut [u8]) {
    const COLUMNS: usize = 32;
    for (x, out) in (0..).step_by(COLUMNS).zip(out.chunks_mut(COLUMNS)) {
        let mut sums = [1 << (PRECISION - 1); COLUMNS];
        for ([a, b], offsets) in weights.iter().zip(row_offsets.as_chunks::<2>().0) {
            let [p, q] = offsets.map(|offset| &ring[offset + x..][..COLUMNS]);
            for (sum, (p, q)) in sums.iter_mut().zip(p.iter().zip(q)) {
                *sum += a * i32::from(*p) + b * i32::from(*q);
            }
        }
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = rounded(sum));
    }
}

fn rounded(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}
