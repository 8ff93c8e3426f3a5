//! Detection of the instruction sets that the fast paths are compiled for, among those that the process may use.
//!
//! A token can only be obtained by detection, so safe code that holds one may call functions compiled with its `#[target_feature]`.
//! The calls are in the modules of those functions.

use shardtool_host::simd::{Simd, allowed_simd};

/// Proof that the processor has SSE4.1.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sse41(());

#[cfg(target_arch = "x86_64")]
impl Sse41 {
    pub(crate) fn detect() -> Option<Self> {
        (allowed_simd() >= Simd::Sse41 && is_x86_feature_detected!("sse4.1")).then_some(Sse41(()))
    }
}

/// Proof that the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        (allowed_simd() >= Simd::Avx2 && is_x86_feature_detected!("avx2")).then_some(Avx2(()))
    }
}

/// Proof that the processor has AVX2, FMA and F16C.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2FmaF16c(());

#[cfg(target_arch = "x86_64")]
impl Avx2FmaF16c {
    pub(crate) fn detect() -> Option<Self> {
        let more = is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        (Avx2::detect().is_some() && more).then_some(Avx2FmaF16c(()))
    }
}

/// Proof that the processor has AVX-512F, AVX-512BW and AVX-512VNNI.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let vectors = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let vectors = vectors && is_x86_feature_detected!("avx512vnni");
        (allowed_simd() >= Simd::Avx512 && vectors).then_some(Avx512(()))
    }
}

/// Proof that the process may use NEON, which every aarch64 processor has.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon(());

#[cfg(target_arch = "aarch64")]
impl Neon {
    pub(crate) fn detect() -> Option<Self> {
        (allowed_simd() >= Simd::Neon).then_some(Neon(()))
    }
}
