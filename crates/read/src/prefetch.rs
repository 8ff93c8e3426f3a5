//! A hint to the processor, for records that are read soon: each read waits several times for memory otherwise.

/// Bytes that the processor loads at once.
const CACHE_LINE: usize = 64;

/// Asks the processor to load bytes into its cache, and does not wait. Without effect on bytes that are not in memory.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    for byte in bytes.iter().step_by(CACHE_LINE).chain(bytes.last()) {
        prefetch_line(std::ptr::from_ref(byte));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_line(byte: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program could see, and faults at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(byte.cast()) }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn prefetch_line(byte: *const u8) {
    // SAFETY: as above. The function of `std::arch` is not yet stable.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{byte}]", byte = in(reg) byte, options(nostack, preserves_flags, readonly));
    }
}
