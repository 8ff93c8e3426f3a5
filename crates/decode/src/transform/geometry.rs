//! Which pixels of the stored image become which pixels of the result. Computed before anything is decoded.
//!
//! Steps are defined on the oriented image; a geometry uses coordinates of the stored image, so that a decoder can decode
//! only the pixels needed, and so that a mask of the sample can use the geometry of its image.

use crate::error::Error;
use crate::transform::orientation::Orientation;
use crate::transform::rect::{Area, Rect};

/// Where each pixel of a result comes from, in coordinates of the stored image. Made by
/// [`Pipeline::plan`](crate::Pipeline::plan).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Width and height of the stored image.
    pub(crate) stored: (u32, u32),
    /// The crop before the resize. The filter reads no pixel outside it, because torchvision crops first and resizes the
    /// crop.
    pub(crate) crop: Rect,
    /// The area that is resized. Smaller than the crop if another crop follows the resize.
    pub(crate) area: Area,
    /// The orientation applied after the resize, including flips.
    pub(crate) orientation: Orientation,
    /// Width and height of the result.
    pub(crate) size: (u32, u32),
}

impl Geometry {
    /// Returns the width and height of the result in pixels.
    pub fn output_size(&self) -> (u32, u32) {
        self.size
    }

    /// Returns the pixels of the stored image that the result depends on: what a decoder has to deliver. The antialiasing
    /// filter reads beyond the area by the reduction factor, and one pixel is added for rounding.
    pub fn needed(&self) -> Rect {
        let (width, height) = self.orientation.size(self.size);
        let (left, right) = source_span(self.area.left, self.area.width, width, self.crop.left, self.crop.width);
        let (top, bottom) = source_span(self.area.top, self.area.height, height, self.crop.top, self.crop.height);
        Rect { left, top, width: right - left, height: bottom - top }
    }

    /// Returns by how much a decoder may reduce the image before it is resized: the largest of 1, 2, 4 and 8 that leaves the
    /// area at least `gap` times as large as the result in both directions (PIL's `reducing_gap`). 1 without a gap.
    pub(crate) fn reduction(&self, gap: Option<f64>) -> u32 {
        let Some(gap) = gap else { return 1 };
        let (width, height) = self.orientation.size(self.size);
        let times = (self.area.width / f64::from(width)).min(self.area.height / f64::from(height)) / gap.max(1.0);
        [8, 4, 2].into_iter().find(|&n| f64::from(n) <= times).unwrap_or(1)
    }

    /// Returns the same geometry for the image reduced by `n` in width and height. The area keeps its fractional position;
    /// the crop grows to whole pixels.
    pub(crate) fn reduced(&self, n: u32) -> Geometry {
        let Rect { left, top, width, height } = self.crop;
        let (right, bottom) = ((left + width).div_ceil(n), (top + height).div_ceil(n));
        let (left, top) = (left / n, top / n);
        let by = f64::from(n);
        let Area { left: x, top: y, width: w, height: h } = self.area;
        Geometry {
            stored: (self.stored.0.div_ceil(n), self.stored.1.div_ceil(n)),
            crop: Rect { left, top, width: right - left, height: bottom - top },
            area: Area { left: x / by, top: y / by, width: w / by, height: h / by },
            ..*self
        }
    }

    /// Checks that an image has the size (width, height) that this geometry was planned for.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if it has another size.
    pub fn check_stored(&self, found: (u32, u32)) -> Result<(), Error> {
        if found == self.stored { Ok(()) } else { Err(Error::SizeMismatch { expected: self.stored, found }) }
    }
}

/// Returns the half-open range of source pixels that `n` result pixels, resized from `length` pixels at `start`, depend on.
fn source_span(start: f64, length: f64, n: u32, crop_start: u32, crop_length: u32) -> (u32, u32) {
    let margin = (length / f64::from(n)).max(1.0).ceil() + 1.0;
    let (lo, hi) = (f64::from(crop_start), f64::from(crop_start + crop_length));
    ((start - margin).floor().clamp(lo, hi - 1.0) as u32, (start + length + margin).ceil().clamp(lo + 1.0, hi) as u32)
}

/// Composes steps into a geometry, in coordinates of the oriented image.
pub(crate) struct GeometryBuilder {
    crop: Rect,
    area: Area,
    resized: Option<(u32, u32)>,
    flipped: bool,
}

impl GeometryBuilder {
    /// Starts with the whole oriented image of the given size.
    pub(crate) fn new((width, height): (u32, u32)) -> Self {
        let crop = Rect { left: 0, top: 0, width, height };
        GeometryBuilder { crop, area: crop.area(), resized: None, flipped: false }
    }

    /// Returns the width and height after the steps so far.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.resized.unwrap_or((self.crop.width, self.crop.height))
    }

    /// Crops to `rect`.
    pub(crate) fn crop(&mut self, mut rect: Rect) {
        let (width, height) = self.size();
        if self.flipped {
            rect.left = width - rect.left - rect.width;
        }
        if self.resized.is_none() {
            self.crop = Rect { left: self.crop.left + rect.left, top: self.crop.top + rect.top, ..rect };
            self.area = self.crop.area();
            return;
        }
        let (sx, sy) = (self.area.width / f64::from(width), self.area.height / f64::from(height));
        self.area = Area {
            left: self.area.left + f64::from(rect.left) * sx,
            top: self.area.top + f64::from(rect.top) * sy,
            width: f64::from(rect.width) * sx,
            height: f64::from(rect.height) * sy,
        };
        self.resized = Some((rect.width, rect.height));
    }

    /// Resizes to `size` (width, height). May be called once.
    pub(crate) fn resize(&mut self, size: (u32, u32)) {
        self.resized = Some(size);
    }

    /// Flips left to right.
    pub(crate) fn flip(&mut self) {
        self.flipped = !self.flipped;
    }

    /// Returns the geometry in coordinates of the stored image of size `stored`.
    pub(crate) fn finish(self, stored: (u32, u32), orientation: Orientation) -> Geometry {
        let size = self.size();
        Geometry {
            stored,
            crop: orientation.to_stored(self.crop, stored),
            area: orientation.area_to_stored(self.area, stored),
            orientation: if self.flipped { orientation.then_flip() } else { orientation },
            size,
        }
    }
}
