//! Growing the decoder's reusable buffers.

/// Resizes `buffer` to `len` elements of unspecified content. If it has to grow, the old allocation is freed before the new
/// one is made, so that both never exist at once.
pub(crate) fn resize_unspecified<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.capacity() < len {
        *buffer = Vec::new();
        *buffer = vec![T::default(); len];
    }
    buffer.resize(len, T::default());
}

/// Empties `buffer` and makes sure that it has room for `len` elements, never holding two allocations at once.
pub(crate) fn clear_with_capacity<T>(buffer: &mut Vec<T>, len: usize) {
    buffer.clear();
    if buffer.capacity() < len {
        *buffer = Vec::new();
        buffer.reserve_exact(len);
    }
}
