//! From samples to pixels.
//!
//! | file | part |
//! |---|---|
//! | `upsample` | subsampled components to one sample for each pixel |
//! | `color` | samples to RGB or grey |
//! | `avx2` | both with AVX2 |
//! | `writer` | the rows of samples that are still needed, and the rows of pixels that are complete |

#[cfg(target_arch = "x86_64")]
mod avx2;
mod color;
mod upsample;
pub(crate) mod writer;
