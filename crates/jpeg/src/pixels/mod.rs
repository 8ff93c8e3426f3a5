#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
pub(crate) mod color;
pub(crate) mod upsample;
pub(crate) mod writer;
