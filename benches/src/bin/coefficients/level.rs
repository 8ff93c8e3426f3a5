//! The instructions that are used.

use shardtool_host::simd::{Simd, allowed_simd};

/// What the environment variable `SHARDTOOL_SIMD` allows, and the processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Portable,
    Avx2,
    Avx512,
}

impl Level {
    /// Returns the highest level.
    pub(crate) fn of_process() -> Self {
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2");
        let has_avx2 =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt");
        match allowed_simd() {
            Simd::Avx512 if has_avx512 => Level::Avx512,
            most if most >= Simd::Avx2 && has_avx2 => Level::Avx2,
            _ => Level::Portable,
        }
    }
}
