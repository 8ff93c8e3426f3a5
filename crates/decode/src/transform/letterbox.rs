//! The geometry of Ultralytics' `LetterBox`.

use super::step::Align;

/// Returns the width and height of an image of the size `image` that is resized to fit `canvas`, keeping its aspect ratio: as large as
/// fits, or its own size if that fits and `scaleup` is false. Sides are rounded half to even, as Python's `round` does.
pub(super) fn fitted(image: (u32, u32), canvas: (u32, u32), scaleup: bool) -> (u32, u32) {
    let ratio = (f64::from(canvas.0) / f64::from(image.0)).min(f64::from(canvas.1) / f64::from(image.1));
    let ratio = if scaleup { ratio } else { ratio.min(1.0) };
    let side = |n: u32, most: u32| ((f64::from(n) * ratio).round_ties_even() as u32).clamp(1, most);
    (side(image.0, canvas.0), side(image.1, canvas.1))
}

/// Returns the pixels to add to the left, top, right and bottom of an image of the size `image`, which fits `canvas`.
pub(super) fn padding(image: (u32, u32), canvas: (u32, u32), align: Align) -> [u32; 4] {
    let (x, y) = (canvas.0 - image.0, canvas.1 - image.1);
    // Ultralytics rounds half of the difference minus 0.1 on one side, plus 0.1 on the other: an odd pixel goes to the end.
    let (left, top) = match align {
        Align::Center => (x / 2, y / 2),
        Align::TopLeft => (0, 0),
    };
    [left, top, x - left, y - top]
}
