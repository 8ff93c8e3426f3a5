//! Normalises images on the host to the values of an [`Output`].
//!
//! An 8-bit sample has 256 possible values, so each channel has a table of results, which makes them equal on every processor. On
//! processors with AVX2, FMA and F16C, `avx2` computes the same bits faster than a table look-up, as `neon` does with NEON. Of 16-bit
//! samples each value is computed (`deep`).

#[cfg(target_arch = "x86_64")]
mod avx2;
mod deep;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod output;
mod simd;

#[cfg(target_arch = "x86_64")]
use crate::cpu::Avx2FmaF16c as Vectors;
#[cfg(target_arch = "aarch64")]
use crate::cpu::Neon as Vectors;
use crate::pixel_format::PixelFormat;
use half::f16;
use output::{Dtype, Layout, Output};

/// Normalises images to the values of an [`Output`].
#[derive(Debug, Clone)]
pub struct Normalizer {
    output: Output,
    /// Bits of the result for each channel and 8-bit sample value. 2-byte types use the lower half.
    table: Box<[[u32; 256]; 3]>,
    /// The vector instructions, where the process may use some.
    simd: Option<Vectors>,
}

impl Normalizer {
    /// Computes the tables of an output.
    pub fn new(output: Output) -> Self {
        let (a, b) = output.coefficients();
        let value = |c: usize, x: usize| bits(output.dtype(), (x as f32).mul_add(a[c], b[c]));
        let table = std::array::from_fn(|c| std::array::from_fn(|x| value(c, x)));
        Normalizer { output, table: Box::new(table), simd: Vectors::detect() }
    }

    /// Returns the output.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Normalises one image: `pixels` is `[H, W, C]` in the output's pixel format, `out` as many little-endian values in the order
    /// of the layout, `[H, W, C]` or `[C, H, W]`.
    ///
    /// # Panics
    /// If the length of `pixels` is not that of whole pixels, or the length of `out` is not that of their values.
    pub fn write(&self, pixels: &[u8], out: &mut [u8]) {
        let bytes = self.output.dtype().bytes();
        let format = self.output.pixel_format();
        assert!(
            pixels.len().is_multiple_of(format.bytes()) && out.len() == pixels.len() / format.depth.bytes() * bytes,
            "`out` must hold one value per sample of `pixels`"
        );
        match format {
            PixelFormat::RGB8 => self.write_rgb(pixels, out),
            PixelFormat::GRAY8 => self.write_gray(pixels, out),
            PixelFormat::RGB16 => deep::write::<3>(&self.output, pixels, out),
            PixelFormat::GRAY16 => deep::write::<1>(&self.output, pixels, out),
        }
    }

    fn write_rgb(&self, pixels: &[u8], out: &mut [u8]) {
        let done = self.simd.map_or(0, |simd| simd.write(pixels, &self.output, out));
        self.look_up(pixels, done, out);
    }

    /// The order of the samples is that of the values in both layouts, so grey is read as RGB in which all channels have the same
    /// coefficients.
    fn write_gray(&self, samples: &[u8], out: &mut [u8]) {
        let bytes = self.output.dtype().bytes();
        let done = self.simd.map_or(0, |simd| 3 * simd.write_in_order(samples, &self.output, out));
        for (sample, out) in samples.iter().zip(out.chunks_exact_mut(bytes)).skip(done) {
            out.copy_from_slice(&self.table[0][usize::from(*sample)].to_le_bytes()[..bytes]);
        }
    }

    /// Writes one image whose samples are all 0, for rows of a batch without a sample. `out` has the length of its values.
    pub fn write_black(&self, out: &mut [u8]) {
        let bytes = self.output.dtype().bytes();
        let values = out.len() / bytes;
        for (i, out) in out.chunks_exact_mut(bytes).enumerate() {
            let channels = self.output.pixel_format().channels.count();
            let channel = match self.output.layout() {
                Layout::Nhwc => i % channels,
                Layout::Nchw => channels * i / values,
            };
            out.copy_from_slice(&self.table[channel][0].to_le_bytes()[..bytes]);
        }
    }

    /// Normalises the pixels from index `first` on with the tables.
    fn look_up(&self, pixels: &[u8], first: usize, out: &mut [u8]) {
        match self.output.dtype() {
            Dtype::F32 => self.look_up_as(pixels, first, out, u32::to_le_bytes),
            Dtype::F16 | Dtype::Bf16 => self.look_up_as(pixels, first, out, |bits| (bits as u16).to_le_bytes()),
        }
    }

    fn look_up_as<const B: usize>(&self, pixels: &[u8], first: usize, out: &mut [u8], value: fn(u32) -> [u8; B]) {
        let (out, _) = out.as_chunks_mut::<B>();
        let (pixels, _) = pixels.as_chunks::<3>();
        let [red, green, blue] = &*self.table;
        let values = |[r, g, b]: [u8; 3]| [red[r as usize], green[g as usize], blue[b as usize]].map(value);
        match self.output.layout() {
            Layout::Nhwc => {
                let out = out.as_chunks_mut::<3>().0;
                out.iter_mut().zip(pixels).skip(first).for_each(|(out, pixel)| *out = values(*pixel));
            }
            Layout::Nchw => {
                let (r, rest) = out.split_at_mut(pixels.len());
                let (g, b) = rest.split_at_mut(pixels.len());
                let planes = r.iter_mut().zip(g).zip(b);
                planes.zip(pixels).skip(first).for_each(|(((r, g), b), pixel)| [*r, *g, *b] = values(*pixel));
            }
        }
    }
}

/// Returns the bits of a value in a type, rounded to nearest even.
fn bits(dtype: Dtype, value: f32) -> u32 {
    match dtype {
        Dtype::F32 => value.to_bits(),
        Dtype::F16 => f16::from_f32(value).to_bits().into(),
        // The upper half of an f32, rounded. The coefficients are finite, so there are no NaNs.
        Dtype::Bf16 => {
            let bits = value.to_bits();
            (bits + 0x7fff + ((bits >> 16) & 1)) >> 16
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
    const STD: [f64; 3] = [0.229, 0.224, 0.225];

    fn outputs() -> impl Iterator<Item = Output> {
        let dtypes = [Dtype::F32, Dtype::F16, Dtype::Bf16];
        let layouts = [Layout::Nchw, Layout::Nhwc];
        // The last one gives subnormal f16 values.
        let numbers = [(MEAN, STD), ([0.0; 3], [1.0; 3]), ([-3.0, 1e3, 0.5], [1e5, 0.1, 7e4])];
        dtypes.into_iter().flat_map(move |dtype| {
            layouts.into_iter().flat_map(move |layout| {
                numbers.into_iter().map(move |(mean, std)| Output::new(dtype, layout, mean, std).unwrap())
            })
        })
    }

    /// Images of sizes that are not multiples of a vector, and one with every sample value in every channel.
    fn images() -> Vec<Vec<u8>> {
        let noise = |i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
        let mut images: Vec<Vec<u8>> = (0..40).map(|n| (0..3 * n).map(noise).collect()).collect();
        images.push((0..=255u8).flat_map(|x| [x, x.wrapping_add(85), x.wrapping_add(170)]).collect());
        images
    }

    #[test]
    fn values_equal_the_formula_in_double_precision_up_to_rounding() {
        for output in outputs() {
            let normalizer = Normalizer::new(output);
            let pixels = images().pop().unwrap();
            let mut out = vec![0; pixels.len() * output.dtype().bytes()];
            normalizer.write(&pixels, &mut out);
            let values: Vec<f64> = match output.dtype() {
                Dtype::F32 => out.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect(),
                Dtype::F16 => out.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).into()).collect(),
                Dtype::Bf16 => out.as_chunks().0.iter().map(|b| half::bf16::from_le_bytes(*b).into()).collect(),
            };
            let (a, b) = output.coefficients();
            for (i, &x) in pixels.iter().enumerate() {
                let at = match output.layout() {
                    Layout::Nhwc => i,
                    Layout::Nchw => i % 3 * (pixels.len() / 3) + i / 3,
                };
                let exact = f64::from(x) * f64::from(a[i % 3]) + f64::from(b[i % 3]);
                let (relative, smallest) = match output.dtype() {
                    Dtype::F32 => (1.2e-7, 0.0),
                    Dtype::F16 => (4.9e-4, 3e-8),
                    Dtype::Bf16 => (3.95e-3, 0.0),
                };
                let error = (values[at] - exact).abs();
                let bound = exact.abs() * relative + smallest + 1e-12;
                assert!(error <= bound, "{output:?}: {x} is {}, not {exact}", values[at]);
            }
        }
    }

    #[test]
    fn vectors_and_tables_give_equal_bits() {
        for output in outputs() {
            let normalizer = Normalizer::new(output);
            for pixels in images() {
                let mut expected = vec![1; pixels.len() * output.dtype().bytes()];
                normalizer.look_up(&pixels, 0, &mut expected);
                let mut found = vec![2; expected.len()];
                normalizer.write(&pixels, &mut found);
                assert_eq!(found, expected, "{output:?}, {} pixels", pixels.len() / 3);
            }
        }
    }

    /// Compares with the formula in f32 with one rounding, sample by sample.
    #[test]
    fn grey_and_16_bits_equal_the_formula() {
        for format in [PixelFormat::GRAY8, PixelFormat::RGB16, PixelFormat::GRAY16] {
            for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
                for layout in [Layout::Nchw, Layout::Nhwc] {
                    let output = Output::of(format, dtype, layout, MEAN, STD).unwrap();
                    let normalizer = Normalizer::new(output);
                    for count in [0, 1, 7, 24, 25, 255, 256, 257, 700] {
                        let noise = |i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
                        let pixels: Vec<u8> = (0..count * format.bytes()).map(noise).collect();
                        let channels = format.channels.count();
                        let mut found = vec![1; count * channels * dtype.bytes()];
                        normalizer.write(&pixels, &mut found);
                        for i in 0..count * channels {
                            let sample = match format.depth.bytes() {
                                1 => f32::from(pixels[i]),
                                _ => f32::from(u16::from_le_bytes([pixels[2 * i], pixels[2 * i + 1]])),
                            };
                            let c = i % channels;
                            let a = (1.0 / (f64::from(format.depth.max()) * STD[c])) as f32;
                            let value = bits(dtype, sample.mul_add(a, (-MEAN[c] / STD[c]) as f32)).to_le_bytes();
                            let at = if layout == Layout::Nchw { c * count + i / channels } else { i };
                            let at = at * dtype.bytes()..(at + 1) * dtype.bytes();
                            assert_eq!(found[at], value[..dtype.bytes()], "{output:?}, sample {i} of {count}");
                        }
                    }
                    let mut black = vec![1; 30 * channels_bytes(format, dtype)];
                    normalizer.write_black(&mut black);
                    let mut expected = vec![2; black.len()];
                    normalizer.write(&vec![0; 30 * format.bytes()], &mut expected);
                    assert_eq!(black, expected);
                }
            }
        }
    }

    fn channels_bytes(format: PixelFormat, dtype: Dtype) -> usize {
        format.channels.count() * dtype.bytes()
    }

    #[test]
    fn black_equals_an_image_of_zeros() {
        for output in outputs() {
            let normalizer = Normalizer::new(output);
            let mut expected = vec![1; 30 * output.dtype().bytes()];
            normalizer.write(&[0; 30], &mut expected);
            let mut found = vec![2; expected.len()];
            normalizer.write_black(&mut found);
            assert_eq!(found, expected);
        }
    }

    #[test]
    #[should_panic(expected = "one value per sample")]
    fn panics_if_the_output_has_another_length() {
        Normalizer::new(Output::default()).write(&[0; 6], &mut [0; 23]);
    }
}
