//! What normalisation is with every kind of vectors: the choice of type and layout. AVX2 and NEON are expanded from one macro.

/// [`super::output::Dtype`] as const generic parameters.
pub(super) const F32: u8 = 0;
pub(super) const F16: u8 = 1;
pub(super) const BF16: u8 = 2;

/// Defines normalisation as methods of a token. The caller has two functions, generic over the type and its bytes, which take
/// pixels, the output and the bytes of the values: `interleaved` writes values in the order of the samples, and `planar` one plane for
/// each channel. Both return the number of pixels whose values they wrote.
///
/// - `$token`: the token that proves that the processor has the features.
/// - `$features`: the `target_feature` string.
macro_rules! define_normalization {
    ($token:ty, $features:tt) => {
        impl $token {
            /// Normalises the first pixels of an image and returns how many: all except those of less than a step.
            ///
            /// # Panics
            /// If `out` is shorter than the values of `pixels`.
            pub(crate) fn write(self, pixels: &[u8], output: &Output, out: &mut [u8]) -> usize {
                // SAFETY: the token exists only if the processor has the features (`cpu.rs`).
                unsafe {
                    match (output.layout(), output.dtype()) {
                        (Layout::Nhwc, _) => self.write_in_order(pixels, output, out),
                        (Layout::Nchw, Dtype::F32) => planar::<F32, 4>(pixels, output, out),
                        (Layout::Nchw, Dtype::F16) => planar::<F16, 2>(pixels, output, out),
                        (Layout::Nchw, Dtype::Bf16) => planar::<BF16, 2>(pixels, output, out),
                    }
                }
            }

            /// Normalises the first samples of an image in their order, as if it were `[H, W, 3]`, and returns a third of how many.
            ///
            /// # Panics
            /// If `out` is shorter than the values of `samples`.
            pub(crate) fn write_in_order(self, samples: &[u8], output: &Output, out: &mut [u8]) -> usize {
                // SAFETY: as in `write`.
                unsafe {
                    match output.dtype() {
                        Dtype::F32 => interleaved::<F32, 4>(samples, output, out),
                        Dtype::F16 => interleaved::<F16, 2>(samples, output, out),
                        Dtype::Bf16 => interleaved::<BF16, 2>(samples, output, out),
                    }
                }
            }
        }
    };
}

pub(super) use define_normalization;
