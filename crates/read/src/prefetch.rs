//! A hint to the processor, for records that are read soon: each read waits several times for memory otherwise.

/// Bytes that the processor loads at once.
const CACHE_LINE: usize = 64;

/// Asks the processor to load bytes into its cache, and does not wait. Without effect on bytes that are not in memory, and on
/// processors other than x86-64.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for byte in bytes.iter().step_by(CACHE_LINE).chain(bytes.last()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see, and faults at no address; this one lies in a slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
