//! Padding: part of an image on a canvas of one colour, or surrounded by its own pixels.

use crate::transform::rect::Rect;
use crate::transform::step::PaddingMode;

/// Writes the pixels of `wanted` to `out`, which has as many: those of the image where it covers them, else `fill`. Pixels have `C`
/// bytes; both rectangles are in coordinates of the canvas, and `pixels` are those of `image`.
pub(crate) fn compose<const C: usize>(wanted: Rect, (image, pixels): (Rect, &[u8]), fill: [u8; C], out: &mut [u8]) {
    let left = image.left.clamp(wanted.left, wanted.left + wanted.width);
    let right = (image.left + image.width).clamp(left, wanted.left + wanted.width);
    let (before, covered) = ((left - wanted.left) as usize, (right - left) as usize);
    let pixels = pixels.as_chunks::<C>().0;
    let rows = out.as_chunks_mut::<C>().0.chunks_exact_mut((wanted.width as usize).max(1));
    for (y, line) in (wanted.top..).zip(rows) {
        let Some(row) = y.checked_sub(image.top).filter(|row| *row < image.height && left < right) else {
            write(line, fill);
            continue;
        };
        let first = row as usize * image.width as usize + (left - image.left) as usize;
        write(&mut line[..before], fill);
        line[before..before + covered].copy_from_slice(&pixels[first..first + covered]);
        write(&mut line[before + covered..], fill);
    }
}

/// Writes one colour: a few pixels, which are then copied.
fn write<const C: usize>(line: &mut [[u8; C]], fill: [u8; C]) {
    let mut written = line.len().min(16);
    line[..written].fill(fill);
    while written < line.len() {
        let more = written.min(line.len() - written);
        line.copy_within(..more, written);
        written += more;
    }
}

/// Writes an image of `size` (width, height) with padding from its own pixels to `out`, so that it begins at `offset` in a result of
/// size `padded`. Pixels have `C` bytes.
pub(crate) fn mirror<const C: usize>(
    size: (u32, u32),
    pixels: &[u8],
    offset: (u32, u32),
    padded: (u32, u32),
    mode: PaddingMode,
    out: &mut [u8],
) {
    let columns: Vec<usize> = (0..padded.0).map(|x| source(x, offset.0, size.0, mode)).collect();
    let pixels = pixels.as_chunks::<C>().0;
    for (y, line) in (0..).zip(out.as_chunks_mut::<C>().0.chunks_exact_mut(columns.len().max(1))) {
        let row = &pixels[source(y, offset.1, size.1, mode) * size.0 as usize..][..size.0 as usize];
        line.iter_mut().zip(&columns).for_each(|(pixel, x)| *pixel = row[*x]);
    }
}

/// Returns which of `length` pixels lies at `position` of the padded line.
fn source(position: u32, offset: u32, length: u32, mode: PaddingMode) -> usize {
    let at = i64::from(position) - i64::from(offset);
    let length = i64::from(length);
    let at = match mode {
        PaddingMode::Constant | PaddingMode::Edge => at.clamp(0, length - 1),
        // The period of the mirrored line; the edge is repeated by one of the modes.
        PaddingMode::Reflect => fold(at, 2 * (length - 1).max(1), 0),
        PaddingMode::Symmetric => fold(at, 2 * length, 1),
    };
    at as usize
}

/// Folds a position into the first half of its period; `repeated` edges belong to each half.
fn fold(at: i64, period: i64, repeated: i64) -> i64 {
    let at = at.rem_euclid(period);
    at.min(period - repeated - at)
}
