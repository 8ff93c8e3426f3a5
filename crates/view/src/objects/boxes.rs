//! Sizes of boxes, in pixels of the stored image and as shares of it.

use super::problems::Problem;

/// Areas that bound COCO's sizes, in square pixels: smaller boxes are small, boxes of this area and more are large.
const SMALL: f64 = 32.0 * 32.0;
const LARGE: f64 = 96.0 * 96.0;

/// Shares of the image that bound the ranges of [`BoxCounts::shares`]. A range has its lower bound.
pub(super) const SHARES: [f64; 4] = [0.001, 0.01, 0.1, 0.5];

/// Coordinates in pixels are rounded to this part of one: a fraction that is stored as 32 bits is not exact.
const PARTS: f64 = 1000.0;

/// A box, measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// Square pixels of the stored image; `None` if its size is not known, or the box has none.
    area: Option<f64>,
    /// Share of the image; `None` if the box has no area.
    share: Option<f64>,
    pub(super) problem: Option<Problem>,
}

impl Measured {
    /// Measures a box: left, top, right, bottom as fractions of an image of `size` (width, height in pixels), if that is known.
    pub(super) fn of(corners: [f32; 4], size: Option<(u32, u32)>) -> Self {
        if !corners.iter().all(|corner| corner.is_finite()) {
            return Measured { area: None, share: None, problem: Some(Problem::NotFinite) };
        }
        // Without a size, the image counts as one of 1,000 by 1,000 pixels, so that fractions are rounded to millionths.
        let (width, height) = size.map_or((PARTS, PARTS), |(width, height)| (width.into(), height.into()));
        let at = |fraction: f32, side: f64| (f64::from(fraction) * side * PARTS).round() / PARTS;
        let [left, top, right, bottom] =
            [at(corners[0], width), at(corners[1], height), at(corners[2], width), at(corners[3], height)];
        if left >= right || top >= bottom {
            return Measured { area: None, share: None, problem: Some(Problem::NoArea) };
        }
        let area = (right - left) * (bottom - top);
        let problem = if left >= width || top >= height || right <= 0.0 || bottom <= 0.0 {
            Some(Problem::Outside)
        } else {
            (left < 0.0 || top < 0.0 || right > width || bottom > height).then_some(Problem::PartlyOutside)
        };
        Measured { area: size.map(|_| area), share: Some(area / (width * height)), problem }
    }
}

/// Boxes by their size. Boxes without an area are in none of the counts but the first.
#[derive(Debug, Default)]
pub(super) struct BoxCounts {
    pub(super) boxes: u64,
    pub(super) small: u64,
    pub(super) medium: u64,
    pub(super) large: u64,
    /// Boxes in images whose size is not known.
    pub(super) unknown: u64,
    /// Boxes by their share of the image: below the first bound, from each bound to the next, and from the last one on.
    pub(super) shares: [u64; SHARES.len() + 1],
}

impl BoxCounts {
    pub(super) fn add(&mut self, measured: &Measured) {
        self.boxes += 1;
        let Some(share) = measured.share else { return };
        self.shares[SHARES.iter().take_while(|bound| share >= **bound).count()] += 1;
        match measured.area {
            None => self.unknown += 1,
            Some(area) if area < SMALL => self.small += 1,
            Some(area) if area < LARGE => self.medium += 1,
            Some(_) => self.large += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_of_whole_pixels_has_its_area() {
        // In sides up to 8,192, fractions of 32 bits are exact to a thousandth of a pixel.
        for side in [97u32, 640, 1_333, 8_191] {
            for left in [0, 3, side - 33] {
                let at = |pixel: u32| (f64::from(pixel) / f64::from(side)) as f32;
                let found = Measured::of([at(left), at(left), at(left + 32), at(left + 32)], Some((side, side)));
                assert_eq!((found.area, found.problem), (Some(SMALL), None), "{side}, {left}");
            }
        }
    }
}
