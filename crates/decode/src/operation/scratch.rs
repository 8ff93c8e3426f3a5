//! Buffers of operations.

use super::blur::BlurScratch;
use super::mix::MixScratch;

/// Buffers reused from one image to the next. Use one per thread.
#[derive(Debug, Default)]
pub struct OperationScratch {
    /// A copy of the image, of rows of it, or of labels.
    pub(super) copy: Vec<u8>,
    pub(super) blur: BlurScratch,
    pub(super) mix: MixScratch,
}

/// Empties a buffer and makes room for exactly `len` values. A buffer that is too small is freed first, so that the memory of
/// both is never held at the same time.
pub(super) fn make_room<T>(buffer: &mut Vec<T>, len: usize) {
    buffer.clear();
    if buffer.capacity() < len {
        *buffer = Vec::new();
        buffer.reserve_exact(len);
    }
}

/// Replaces the content of a buffer.
pub(super) fn copy_to(buffer: &mut Vec<u8>, data: &[u8]) {
    make_room(buffer, data.len());
    buffer.extend_from_slice(data);
}
