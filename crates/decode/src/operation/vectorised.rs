//! Compiles loops for AVX2 and FMA in addition to the baseline instructions.
//!
//! The loops are ordinary Rust that the compiler vectorises. They round every step of the arithmetic as written, and
//! `mul_add` once, so that both versions give the same bytes. On aarch64 the baseline has NEON and fused multiplications.

#[cfg(target_arch = "x86_64")]
use crate::cpu::Avx2FmaF16c;

/// Defines `$name`, which runs `$kernel` with AVX2 and FMA if the processor has both, and otherwise with the baseline
/// instructions. `$kernel` must be `#[inline(always)]`, so that it is compiled into each of the two.
macro_rules! vectorised {
    ($name:ident = $kernel:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?) => {
        // The call of a function that needs these instructions.
        #[allow(unsafe_code)]
        fn $name($($arg: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn with_avx2($($arg: $type),*) $(-> $result)? {
                    $kernel($($arg),*)
                }
                if $crate::operation::vectorised::has_avx2_and_fma() {
                    // SAFETY: the processor has AVX2 and FMA.
                    return unsafe { with_avx2($($arg),*) };
                }
            }
            $kernel($($arg),*)
        }
    };
}

pub(crate) use vectorised;

/// Returns whether the processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2_and_fma() -> bool {
    #[cfg(test)]
    if BASELINE.get() {
        return false;
    }
    Avx2FmaF16c::detect().is_some()
}

#[cfg(test)]
thread_local! {
    /// Whether this thread uses the baseline instructions, for tests that compare both.
    pub(super) static BASELINE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}
