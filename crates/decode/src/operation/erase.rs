//! Overwrites a rectangle with one colour or with noise, as `RandomErasing` does.

use super::noise::Noise;
use crate::transform::rect::Rect;

/// Overwrites the part of `rect` that is inside the image with one colour.
pub(super) fn erase<const B: usize>(data: &mut [u8], size: (usize, usize), rect: Rect, value: [u8; B]) {
    rows(data, size, rect).for_each(|row| row.fill(value));
}

/// Overwrites the part of `rect` that is inside the image with the noise of `key`, in the order of memory.
pub(super) fn erase_with_noise(data: &mut [u8], size: (usize, usize), rect: Rect, key: u64) {
    let mut noise = Noise::new(key);
    rows(data, size, rect).flatten().for_each(|pixel| *pixel = noise.next_pixel());
}

/// Returns the rows of the part of `rect` that is inside the image.
fn rows<const B: usize>(
    data: &mut [u8],
    (width, height): (usize, usize),
    rect: Rect,
) -> impl Iterator<Item = &mut [[u8; B]]> {
    let span = |start: u32, len: u32, limit: usize| {
        let start = (start as usize).min(limit);
        start..start + (len as usize).min(limit - start)
    };
    let (columns, rows) = (span(rect.left, rect.width, width), span(rect.top, rect.height, height));
    let pixels = &mut data.as_chunks_mut().0[rows.start * width..rows.end * width];
    pixels.chunks_exact_mut(width).map(move |row| &mut row[columns.clone()])
}
