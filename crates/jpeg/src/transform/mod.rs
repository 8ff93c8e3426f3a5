pub(crate) mod idct;
#[cfg(target_arch = "x86_64")]
pub(crate) mod idct_avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod idct_avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod scaled_avx2;
