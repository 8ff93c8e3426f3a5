//! Random rectangles.

use super::uniform;
use crate::transform::random::Random;
use crate::transform::rect::Rect;

/// torchvision's `RandomResizedCrop.get_params`: draws a rectangle of an image of `(width, height)`: up to ten tries with an area uniform in `scale` of the image's and a
/// ratio width ÷ height log-uniform in `ratio`. If none fits the image, returns the largest centred rectangle whose ratio
/// is in range.
pub(crate) fn random_resized_crop(
    (width, height): (u32, u32),
    scale: [f64; 2],
    ratio: [f64; 2],
    random: &mut dyn Random,
) -> Rect {
    let (w, h) = (f64::from(width), f64::from(height));
    let log_ratio = ratio.map(libm::log);
    for _ in 0..10 {
        let target = w * h * uniform(scale, random);
        let aspect = libm::exp(uniform(log_ratio, random));
        let crop_w = (target * aspect).sqrt().round_ties_even();
        let crop_h = (target / aspect).sqrt().round_ties_even();
        if (1.0..=w).contains(&crop_w) && (1.0..=h).contains(&crop_h) {
            let (crop_w, crop_h) = (crop_w as u32, crop_h as u32);
            let top = random.below(u64::from(height - crop_h) + 1) as u32;
            let left = random.below(u64::from(width - crop_w) + 1) as u32;
            return Rect { left, top, width: crop_w, height: crop_h };
        }
    }
    let (crop_w, crop_h) = match w / h {
        r if r < ratio[0] => (width, (w / ratio[0]).round_ties_even() as u32),
        r if r > ratio[1] => ((h * ratio[1]).round_ties_even() as u32, height),
        _ => (width, height),
    };
    let (crop_w, crop_h) = (crop_w.clamp(1, width), crop_h.clamp(1, height));
    Rect { left: (width - crop_w) / 2, top: (height - crop_h) / 2, width: crop_w, height: crop_h }
}

/// Draws the position of a rectangle of `size` (width, height) in an image that is at least as large. As torchvision's
/// `RandomCrop`, draws the row first, and only where there is a choice.
pub(crate) fn place(image: (u32, u32), size: (u32, u32), random: &mut dyn Random) -> Rect {
    let mut at =
        |image: u32, size: u32| if image > size { random.below(u64::from(image - size) + 1) as u32 } else { 0 };
    let top = at(image.1, size.1);
    let left = at(image.0, size.0);
    Rect { left, top, width: size.0, height: size.1 }
}

/// Draws the padding (left, top, right, bottom) of torchvision's `RandomZoomOut`.
pub(crate) fn zoom_out((width, height): (u32, u32), range: [f64; 2], random: &mut dyn Random) -> [u32; 4] {
    let factor = uniform(range, random);
    let canvas = |side: u32| (f64::from(side) * factor) as u32;
    let (extra_x, extra_y) = (canvas(width).saturating_sub(width), canvas(height).saturating_sub(height));
    let left = (f64::from(extra_x) * random.unit()) as u32;
    let top = (f64::from(extra_y) * random.unit()) as u32;
    [left, top, extra_x - left, extra_y - top]
}

/// Parameters of [`iou_crop`].
pub(crate) struct IouCrop<'a> {
    /// Side of the rectangle ÷ side of the image.
    pub(crate) scale: [f64; 2],
    /// Width ÷ height.
    pub(crate) ratio: [f64; 2],
    /// Overlaps, one of which is drawn.
    pub(crate) options: &'a [f64],
    pub(crate) trials: u32,
}

/// Overlaps that are drawn before the image is left as it is. torchvision draws without end.
const MAX_OPTIONS: usize = 50;

/// Draws the rectangle of torchvision's `RandomIoUCrop`: one that contains the centre of a box (left, top, right, bottom) and
/// overlaps such a box enough. `None` leaves the image as it is.
pub(crate) fn iou_crop(
    (width, height): (u32, u32),
    boxes: &[[f64; 4]],
    crop: &IouCrop<'_>,
    random: &mut dyn Random,
) -> Option<Rect> {
    if boxes.is_empty() {
        return None;
    }
    let (w, h) = (f64::from(width), f64::from(height));
    for _ in 0..MAX_OPTIONS {
        let overlap = crop.options[random.below(crop.options.len() as u64) as usize];
        if overlap >= 1.0 {
            return None;
        }
        for _ in 0..crop.trials {
            let (new_w, new_h) = ((w * uniform(crop.scale, random)).floor(), (h * uniform(crop.scale, random)).floor());
            let aspect = new_w / new_h;
            // Also refuses rectangles without area, whose ratio is 0, infinite or not a number.
            if !(crop.ratio[0] <= aspect && aspect <= crop.ratio[1]) {
                continue;
            }
            let (left, top) = (((w - new_w) * random.unit()).floor(), ((h - new_h) * random.unit()).floor());
            let rect = [left, top, left + new_w, top + new_h];
            let best = boxes.iter().filter(|b| has_centre_of(rect, b)).map(|b| iou(rect, b)).reduce(f64::max);
            if best.is_some_and(|best| best >= overlap) {
                return Some(Rect { left: left as u32, top: top as u32, width: new_w as u32, height: new_h as u32 });
            }
        }
    }
    None
}

/// Returns whether the centre of a box lies inside a rectangle, both as left, top, right, bottom.
pub(crate) fn has_centre_of([left, top, right, bottom]: [f64; 4], b: &[f64; 4]) -> bool {
    let (x, y) = (0.5 * (b[0] + b[2]), 0.5 * (b[1] + b[3]));
    left < x && x < right && top < y && y < bottom
}

/// Returns the area of the intersection of two rectangles ÷ that of their union.
fn iou(a: [f64; 4], b: &[f64; 4]) -> f64 {
    let side = |low: usize| (a[low + 2].min(b[low + 2]) - a[low].max(b[low])).max(0.0);
    let area = |r: &[f64; 4]| (r[2] - r[0]) * (r[3] - r[1]);
    let both = side(0) * side(1);
    both / (area(&a) + area(b) - both)
}
