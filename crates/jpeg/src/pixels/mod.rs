//! From samples to pixels.
//!
//! | file | part |
//! |---|---|
//! | `upsample` | subsampled components to one sample for each pixel |
//! | `color` | samples to RGB or grey |
//! | `sse41`, `avx2`, `avx512` | both with SSE4.1, AVX2 and AVX-512, by the operations of `simd` |
//! | `neon` | both with NEON |
//! | `writer` | the rows of samples that are still needed, and the rows of pixels that are complete |

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod color;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod simd;
#[cfg(target_arch = "x86_64")]
mod sse41;
mod upsample;
pub(crate) mod writer;

#[cfg(test)]
mod tests {
    use super::{color, upsample};
    use crate::cpu::CpuFeatures;
    use crate::markers::header::Color;

    /// Every implementation computes what the portable one does, for any width, and writes no byte after the pixels.
    #[test]
    fn vector_instructions_change_no_sample() {
        let mut state = 7u32;
        let mut random = || {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
            // Extreme samples often, which saturate.
            [0, 255, (state >> 16) as u8, (state >> 24) as u8][(state >> 14) as usize % 4]
        };
        for n in (2..200).chain([1000]) {
            let rows: [Vec<u8>; 4] = std::array::from_fn(|_| (0..n + 64).map(|_| random()).collect());
            let [a, b, c, k] = rows.each_ref().map(|row| &row[..]);
            let results = |cpu: &CpuFeatures| {
                let mut out = Vec::new();
                for color in [Color::Grey, Color::Rgb, Color::YCbCr, Color::Cmyk, Color::Ycck] {
                    let mut pixels = vec![77; 3 * n + 200];
                    color::convert(cpu, color, [a, b, c, k], &mut pixels[..3 * n]);
                    out.push(pixels);
                }
                let (mut across, mut both) = (vec![0; 2 * n + 64], vec![0; 2 * n + 64]);
                upsample::across(cpu, a, n, &mut across);
                upsample::both(cpu, a, b, n, &mut both);
                out.extend([across[..2 * n].to_vec(), both[..2 * n].to_vec()]);
                out
            };
            let expected = results(&CpuFeatures::PORTABLE);
            for cpu in CpuFeatures::all() {
                assert!(results(&cpu) == expected, "{n} samples, {cpu:?}");
            }
        }
    }

    /// The expected pixels are Pillow's `convert("RGB")` and `convert("L")` of these inks.
    #[test]
    fn converts_cmyk_as_pillow_does() {
        for (inks, rgb, gray) in [
            ([10, 200, 30, 40], [2, 31, 5], 19),
            ([255, 0, 128, 255], [255, 0, 128], 91),
            ([77, 77, 77, 0], [0, 0, 0], 0),
            ([1, 254, 127, 129], [1, 128, 64], 83),
            ([200, 100, 50, 254], [199, 100, 50], 124),
        ] {
            let rows = inks.map(|ink: u8| [ink; 1 + 64]);
            let (mut pixel, mut grey) = ([0; 3], [0]);
            color::convert(&CpuFeatures::detect(), Color::Cmyk, rows.each_ref().map(|row| &row[..]), &mut pixel);
            color::convert_to_gray(Color::Cmyk, rows.each_ref().map(|row| &row[..]), &mut grey);
            assert_eq!((pixel, grey), (rgb, [gray]));
        }
    }

    /// Rows without the bytes after them that vector code reads are an error of the caller, not zeros.
    #[test]
    fn short_rows_panic() {
        if !CpuFeatures::detect().has_vectors() {
            return;
        }
        let panics = |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
        let (row, long) = ([7u8; 20], [7u8; 20 + 64]);
        for cpu in CpuFeatures::all() {
            assert!(panics(&|| upsample::across(&cpu, &row, 20, &mut [0; 128])));
            assert!(panics(&|| upsample::both(&cpu, &long, &row, 20, &mut [0; 128])));
            assert!(panics(&|| upsample::across(&cpu, &long, 20, &mut [0; 40])));
            assert!(panics(&|| color::convert(&cpu, Color::YCbCr, [&long, &long, &row, &[]], &mut [0; 60])));
            upsample::across(&cpu, &long, 20, &mut [0; 128]);
            color::convert(&cpu, Color::YCbCr, [&long, &long, &long, &[]], &mut [0; 60]);
        }
    }
}
