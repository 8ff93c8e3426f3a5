//! Inverse transforms: from rows of coefficient blocks to rows of samples.
//!
//! | file | part |
//! |---|---|
//! | `portable` | the portable implementation, and the constants of all |
//! | `idct_simd` | the full-size transform for any width of vectors |
//! | `idct_sse41`, `idct_avx2`, `idct_avx512` | its three instances |
//! | `scaled_avx2` | the transforms for 1/2 and 1/4 |
//! | `idct_neon`, `scaled_neon` | all three with NEON |
//! | `idct` | the choice between the implementations |

pub(crate) mod idct;
#[cfg(target_arch = "x86_64")]
mod idct_avx2;
#[cfg(target_arch = "x86_64")]
mod idct_avx512;
#[cfg(target_arch = "aarch64")]
mod idct_neon;
#[cfg(target_arch = "x86_64")]
mod idct_simd;
#[cfg(target_arch = "x86_64")]
mod idct_sse41;
mod portable;
#[cfg(target_arch = "x86_64")]
mod scaled_avx2;
#[cfg(target_arch = "aarch64")]
mod scaled_neon;
