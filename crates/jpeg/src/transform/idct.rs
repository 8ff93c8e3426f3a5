//! The inverse transform of a row of blocks, by the fastest implementation that the processor supports.

use super::portable::row_portable;
use crate::blocks::BlockRow;
use crate::cpu::{CpuFeatures, with_widest_vectors};
use crate::plan::Plane;

/// Transforms the blocks that `plane` needs of a row into `out`, whose first sample is that of the first needed block, with
/// `stride` bytes from row to row. Samples to the right of the last block may be overwritten, up to a number of blocks
/// divisible by 4.
pub(crate) fn transform_row(cpu: &CpuFeatures, plane: &Plane, blocks: &BlockRow<'_>, out: &mut [u8], stride: usize) {
    if plane.block == 8 {
        with_widest_vectors!(cpu, vectors => vectors.transform_full_row(plane, blocks, out, stride));
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = cpu.avx2
        && plane.block < 8
    {
        return avx2.transform_scaled_row(plane, blocks, out, stride);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(neon) = cpu.neon {
        return neon.transform_scaled_row(plane, blocks, out, stride);
    }
    row_portable(plane, blocks, out, stride);
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::blocks::{BlockSource, QUARTER};
    use crate::plan::Upsample;

    /// Every implementation computes what the portable one does, for any number of blocks and any sparsity.
    #[test]
    fn vector_instructions_change_no_sample() {
        let implementations = CpuFeatures::all();
        let mut state = 7u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % n
        };
        for round in 0..4000 {
            let (count, run) = (1 + random(9) as usize, 1 + random(3) as usize);
            let mut coefs = vec![0i16; count.next_multiple_of(run) * 64];
            let last: Vec<u8> = (0..coefs.len() / 64).map(|_| [0, 1, QUARTER, 63][random(4) as usize]).collect();
            for (block, &last) in coefs.as_chunks_mut::<64>().0.iter_mut().zip(&last) {
                // Damage makes coefficients of any size, often only in the first row.
                let (most, one_row) = ([200, 200, 3000, i16::MAX][random(4) as usize], random(4) == 0);
                for &natural in &crate::markers::standard::ZIGZAG[..=usize::from(last)] {
                    if !one_row || natural < 8 {
                        block[usize::from(natural)] = (random(2 * most as u64 + 1) as i32 - i32::from(most)) as i16;
                    }
                }
            }
            let block = [8, 4, 2, 1][round % 4];
            let first = random(count as u64) as u32;
            let plane = Plane {
                h: 1,
                v: 1,
                block,
                expand: (1, 1),
                upsample: Upsample::None,
                height: block,
                columns: first * block..count as u32 * block,
                rows: 0..block,
                first: 0,
                quant: std::array::from_fn(|_| 1 + random(60) as u16),
            };
            let blocks = BlockRow { source: BlockSource::Arrays(coefs.as_chunks().0, &last), first: 0, run, step: run };
            let width = (count - first as usize) * block as usize;
            let stride = width + 64;
            let samples = |cpu| {
                let mut out = vec![0; stride * block as usize];
                transform_row(&cpu, &plane, &blocks, &mut out, stride);
                out.chunks(stride).flat_map(|line| line[..width].to_vec()).collect::<Vec<u8>>()
            };
            let expected = samples(CpuFeatures::PORTABLE);
            for cpu in implementations.iter().copied() {
                assert!(samples(cpu) == expected, "round {round}: {count} blocks of {block} from {first}");
            }
        }
    }
}
