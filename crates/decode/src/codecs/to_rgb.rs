//! Converts pixels within the buffer they were decoded into.

/// Replaces each pixel of `N` < 3 bytes by three copies of its byte `at`. Goes from the last pixel to the first, so that none
/// is overwritten before it is read.
pub(super) fn replicate<const N: usize>(data: &mut [u8], count: usize, at: usize) {
    for i in (0..count).rev() {
        let v = data[i * N + at];
        data[i * 3..i * 3 + 3].fill(v);
    }
}

/// Replaces each pixel of `N` bytes by its `M` ≤ `N` bytes `at`, from the first pixel to the last.
pub(super) fn select<const N: usize, const M: usize>(data: &mut [u8], count: usize, at: [usize; M]) {
    if N == M {
        // In its place, which the compiler does for many pixels at once.
        for pixel in data[..count * N].as_chunks_mut::<N>().0 {
            let chosen = at.map(|k| pixel[k]);
            pixel.copy_from_slice(&chosen);
        }
        return;
    }
    for i in 0..count {
        let chosen = at.map(|k| data[i * N + k]);
        data[i * M..i * M + M].copy_from_slice(&chosen);
    }
}

/// Converts inks, of which 255 covers, to RGB, as Pillow does.
pub(super) fn cmyk_to_rgb([c, m, y, k]: [u8; 4]) -> [u8; 3] {
    let rest = 255 - u32::from(k);
    [c, m, y].map(|ink| {
        // The product divided by 255, rounded.
        let product = u32::from(ink) * rest + 128;
        (rest - (((product >> 8) + product) >> 8)) as u8
    })
}
