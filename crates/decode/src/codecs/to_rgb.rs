//! Converts pixels to RGB within the buffer they were decoded into.

/// Replaces each pixel of `N` < 3 bytes by three copies of its byte `at`. Goes from the last pixel to the first, so that none
/// is overwritten before it is read.
pub(super) fn replicate<const N: usize>(data: &mut [u8], count: usize, at: usize) {
    for i in (0..count).rev() {
        let v = data[i * N + at];
        data[i * 3..i * 3 + 3].fill(v);
    }
}

/// Replaces each pixel of `N` > 3 bytes by its three bytes `at`, from the first pixel to the last.
pub(super) fn select<const N: usize>(data: &mut [u8], count: usize, at: [usize; 3]) {
    for i in 0..count {
        let rgb = at.map(|k| data[i * N + k]);
        data[i * 3..i * 3 + 3].copy_from_slice(&rgb);
    }
}
