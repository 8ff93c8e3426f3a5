//! Detection of the instruction sets that the fast paths are compiled for.
//!
//! A token such as [`Avx2`] can only be obtained by detection, so safe code that holds one may call functions compiled with
//! that `#[target_feature]`. The calls are in the modules of those functions, as methods of the tokens.

use shardtool_host::simd::{Simd, allowed_simd};

/// Proof that the processor has SSE4.1.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sse41(());

/// Proof that the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// Proof that the processor has AVX-512F and AVX-512BW.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

/// Proof that the processor has BMI1, BMI2, LZCNT and MOVBE, which the entropy decoders are compiled for. On other architectures
/// there are no values of this type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bmi2(#[cfg(not(target_arch = "x86_64"))] std::convert::Infallible);

/// Proof that the process may use NEON, which every aarch64 processor has.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon(());

/// The instruction sets that a decoder uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuFeatures {
    /// For the full-size inverse transform and pixels.
    #[cfg(target_arch = "x86_64")]
    pub(crate) sse41: Option<Sse41>,
    /// For inverse transforms and pixels.
    #[cfg(target_arch = "x86_64")]
    pub(crate) avx2: Option<Avx2>,
    /// For the full-size inverse transform and pixels.
    #[cfg(target_arch = "x86_64")]
    pub(crate) avx512: Option<Avx512>,
    /// For inverse transforms and pixels.
    #[cfg(target_arch = "aarch64")]
    pub(crate) neon: Option<Neon>,
    /// For entropy decoding.
    pub(crate) bmi2: Option<Bmi2>,
}

impl CpuFeatures {
    /// No instruction set beyond the compilation target's.
    pub(crate) const PORTABLE: CpuFeatures = CpuFeatures {
        #[cfg(target_arch = "x86_64")]
        sse41: None,
        #[cfg(target_arch = "x86_64")]
        avx2: None,
        #[cfg(target_arch = "x86_64")]
        avx512: None,
        #[cfg(target_arch = "aarch64")]
        neon: None,
        bmi2: None,
    };

    /// All instruction sets of this processor that this crate has code for and this process may use.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> CpuFeatures {
        let most = allowed_simd();
        let bmi2 = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
        let bmi2 = bmi2 && is_x86_feature_detected!("lzcnt") && is_x86_feature_detected!("movbe");
        let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        CpuFeatures {
            sse41: (most >= Simd::Sse41 && is_x86_feature_detected!("sse4.1")).then_some(Sse41(())),
            avx2: (most >= Simd::Avx2 && is_x86_feature_detected!("avx2")).then_some(Avx2(())),
            avx512: (most >= Simd::Avx512 && avx512).then_some(Avx512(())),
            bmi2: (most >= Simd::Avx2 && bmi2).then_some(Bmi2()),
        }
    }

    /// All instruction sets that this crate has code for and this process may use.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn detect() -> CpuFeatures {
        CpuFeatures { neon: (allowed_simd() >= Simd::Neon).then_some(Neon(())), ..CpuFeatures::PORTABLE }
    }

    /// All combinations of vector instructions that may be used here.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<CpuFeatures> {
        let all = CpuFeatures::detect();
        vec![
            all,
            #[cfg(target_arch = "x86_64")]
            CpuFeatures { avx512: None, ..all },
            #[cfg(target_arch = "x86_64")]
            CpuFeatures { avx512: None, avx2: None, ..all },
        ]
    }

    /// Whether any vector instructions are used.
    #[cfg(test)]
    pub(crate) fn has_vectors(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.sse41.is_some();
        #[cfg(target_arch = "aarch64")]
        return self.neon.is_some();
    }
}

/// Returns `$call` with the token of the widest vector instructions that `$cpu` has; continues if it has none. Vector code is called by
/// this, except for reduced transforms, which not all have.
macro_rules! with_widest_vectors {
    ($cpu:expr, $token:ident => $call:expr) => {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some($token) = $cpu.avx512 {
                return $call;
            }
            if let Some($token) = $cpu.avx2 {
                return $call;
            }
            if let Some($token) = $cpu.sse41 {
                return $call;
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some($token) = $cpu.neon {
            return $call;
        }
    };
}

pub(crate) use with_widest_vectors;
