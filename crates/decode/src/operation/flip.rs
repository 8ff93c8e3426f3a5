//! Moves pixels and channels without computing: flips and channel permutations. Also for label maps, whose pixels have one or
//! two bytes.

/// Reverses each row of `width` pixels of `C` bytes.
pub(super) fn flip_horizontally<const C: usize>(data: &mut [u8], width: usize) {
    let pixels = data.as_chunks_mut::<C>().0;
    pixels.chunks_exact_mut(width).for_each(<[[u8; C]]>::reverse);
}

/// Reverses the order of the rows of `stride` bytes.
pub(super) fn flip_vertically(data: &mut [u8], stride: usize) {
    let (upper, lower) = data.split_at_mut(data.len() / stride / 2 * stride);
    let rows = upper.chunks_exact_mut(stride).zip(lower.chunks_exact_mut(stride).rev());
    rows.for_each(|(a, b)| a.swap_with_slice(b));
}

/// Replaces channel c of each pixel by channel `order[c]` (`permute_channels`). Each number is at most 2.
pub(super) fn permute_channels(data: &mut [u8], order: [u8; 3]) {
    let order = order.map(usize::from);
    data.as_chunks_mut::<3>().0.iter_mut().for_each(|pixel| *pixel = order.map(|c| pixel[c]));
}
