//! Detection of the instruction sets that the fast paths are compiled for.
//!
//! A token such as [`Avx2`] can only be obtained by detection, so safe code that holds one may call functions compiled with
//! that `#[target_feature]`. The calls are in the modules of those functions, as methods of the tokens.

/// Proof that the processor has AVX2. On other architectures there are no values of this type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(Proof);

/// Proof that the processor has AVX-512F and AVX-512BW.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(Proof);

/// Proof that the processor has BMI1, BMI2, LZCNT and MOVBE, which the entropy decoders are compiled for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bmi2(Proof);

#[cfg(target_arch = "x86_64")]
type Proof = ();
#[cfg(not(target_arch = "x86_64"))]
type Proof = std::convert::Infallible;

/// The instruction sets that a decoder uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuFeatures {
    avx2: Option<Avx2>,
    avx512: Option<Avx512>,
    bmi2: Option<Bmi2>,
}

impl CpuFeatures {
    /// No instruction set beyond the compilation target's.
    pub(crate) const PORTABLE: CpuFeatures = CpuFeatures { avx2: None, avx512: None, bmi2: None };

    /// All instruction sets of this processor that this crate has code for.
    pub(crate) fn detect() -> CpuFeatures {
        #[cfg(target_arch = "x86_64")]
        {
            let bmi2 = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
            let bmi2 = bmi2 && is_x86_feature_detected!("lzcnt") && is_x86_feature_detected!("movbe");
            let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            CpuFeatures {
                avx2: is_x86_feature_detected!("avx2").then_some(Avx2(())),
                avx512: avx512.then_some(Avx512(())),
                bmi2: bmi2.then_some(Bmi2(())),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        CpuFeatures::PORTABLE
    }

    /// For inverse transforms and pixels.
    pub(crate) fn avx2(&self) -> Option<Avx2> {
        self.avx2
    }

    /// For the full-size inverse transform and pixels.
    pub(crate) fn avx512(&self) -> Option<Avx512> {
        self.avx512
    }

    /// For entropy decoding.
    pub(crate) fn bmi2(&self) -> Option<Bmi2> {
        self.bmi2
    }

    /// The same features without AVX-512.
    #[cfg(test)]
    pub(crate) fn without_avx512(self) -> CpuFeatures {
        CpuFeatures { avx512: None, ..self }
    }
}
