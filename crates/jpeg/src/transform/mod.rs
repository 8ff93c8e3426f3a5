//! Inverse transforms: from rows of coefficient blocks to rows of samples.
//!
//! | file | part |
//! |---|---|
//! | `idct` | the choice between the implementations, and the portable one |
//! | `idct_simd` | the full-size transform for any width of vectors |
//! | `idct_avx2`, `idct_avx512` | its two instances |
//! | `scaled_avx2` | the transforms for 1/2 and 1/4 |

pub(crate) mod idct;
#[cfg(target_arch = "x86_64")]
mod idct_avx2;
#[cfg(target_arch = "x86_64")]
mod idct_avx512;
#[cfg(target_arch = "x86_64")]
mod idct_simd;
#[cfg(target_arch = "x86_64")]
mod scaled_avx2;
