//! Buffers of operations.

/// Buffers reused from one image to the next. Use one per thread.
#[derive(Debug, Default)]
pub struct OperationScratch {
    /// A copy of the image, of rows of it, or of labels.
    pub(super) copy: Vec<u8>,
    pub(super) blur: BlurScratch,
    pub(super) mix: MixScratch,
}

/// Buffers of a blur.
#[derive(Debug, Default)]
pub(super) struct BlurScratch {
    /// One row after the vertical pass, with the reflected pixels on both sides.
    pub(super) row: Vec<f32>,
    /// Weights of the horizontal and the vertical pass.
    pub(super) weights: [Vec<f32>; 2],
}

impl BlurScratch {
    /// Returns the bytes of the buffers for an image of a width in pixels and a kernel.
    pub(super) fn bytes(width: u32, kernel: [u32; 2]) -> u64 {
        let values = 3 * (u64::from(width) + u64::from(kernel[0])) + u64::from(kernel[0]) + u64::from(kernel[1]);
        4 * values
    }
}

/// Buffers of AugMix.
#[derive(Debug, Default)]
pub(super) struct MixScratch {
    /// The image that a chain changes.
    pub(super) chain: Vec<u8>,
    pub(super) sum: Vec<f32>,
}

impl MixScratch {
    /// Bytes of the buffers for each sample of the image.
    pub(super) const BYTES: u64 = 1 + 4;
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
