//! Which pixels of the stored image become which pixels of the result. Computed before anything is decoded.
//!
//! Steps are defined on the oriented image; a geometry uses coordinates of the stored image, so that a decoder can decode
//! only the pixels needed, and so that a mask of the sample can use the geometry of its image.

use crate::error::Error;
use crate::resize::Filter;
use crate::transform::orientation::Orientation;
use crate::transform::rect::{Area, Rect};
use serde::Serialize;

/// Where each pixel of a result comes from, in coordinates of the stored image. Made by
/// [`Pipeline::plan`](crate::Pipeline::plan).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Geometry {
    /// Width and height of the stored image.
    pub(crate) stored: (u32, u32),
    /// The stored image with its padding. `crop` and `area` are in its coordinates.
    pub(crate) canvas: Canvas,
    /// The crop before the resize. The filter reads no pixel outside it, because torchvision crops first and resizes the
    /// crop.
    pub(crate) crop: Rect,
    /// The area that is resized. Smaller than the crop if another crop follows the resize.
    pub(crate) area: Area,
    /// The orientation applied after the resize, including flips.
    pub(crate) orientation: Orientation,
    /// Width and height of the result.
    pub(crate) size: (u32, u32),
    /// The filter of the resize.
    pub(crate) filter: Filter,
}

/// The stored image with padding of one colour around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Canvas {
    /// Width and height, padding included.
    pub(crate) size: (u32, u32),
    /// Columns and rows before the stored image.
    pub(crate) offset: (u32, u32),
    /// The colour of the padding.
    pub(crate) fill: [u8; 3],
}

impl Canvas {
    /// Returns the part of a rectangle of the canvas that lies on the image, which has the size `stored`, in coordinates of
    /// the image: the nearest pixel if none does.
    fn on_image(&self, rect: Rect, stored: (u32, u32)) -> Rect {
        let span = |start: u32, length: u32, offset: u32, side: u32| {
            let low = start.saturating_sub(offset).min(side - 1);
            let high = (start + length).saturating_sub(offset).min(side);
            (low, high.max(low + 1) - low)
        };
        let (left, width) = span(rect.left, rect.width, self.offset.0, stored.0);
        let (top, height) = span(rect.top, rect.height, self.offset.1, stored.1);
        Rect { left, top, width, height }
    }
}

impl Geometry {
    /// Returns the width and height of the result in pixels.
    pub fn output_size(&self) -> (u32, u32) {
        self.size
    }

    /// Returns the pixels of the stored image that the result depends on: what a decoder has to deliver.
    pub fn needed(&self) -> Rect {
        self.canvas.on_image(self.needed_canvas(), self.stored)
    }

    /// Returns the pixels of the canvas that the result depends on. The antialiasing filter reads beyond the area by the
    /// reduction factor, and one pixel is added for rounding.
    pub(crate) fn needed_canvas(&self) -> Rect {
        let (width, height) = self.orientation.size(self.size);
        let (left, right) =
            source_span((self.area.left, self.area.width), width, (self.crop.left, self.crop.width), self.filter);
        let (top, bottom) =
            source_span((self.area.top, self.area.height), height, (self.crop.top, self.crop.height), self.filter);
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
        let by = f64::from(n);
        let Area { left: x, top: y, width: w, height: h } = self.area;
        // Reduced pixels begin where the image does, not where its padding does.
        let offset = (self.canvas.offset.0.div_ceil(n), self.canvas.offset.1.div_ceil(n));
        let shift = (offset.0 * n - self.canvas.offset.0, offset.1 * n - self.canvas.offset.1);
        let stored = (self.stored.0.div_ceil(n), self.stored.1.div_ceil(n));
        let after = |size: u32, offset: u32, stored: u32| (size - offset - stored).div_ceil(n);
        let canvas = Canvas {
            size: (
                offset.0 + stored.0 + after(self.canvas.size.0, self.canvas.offset.0, self.stored.0),
                offset.1 + stored.1 + after(self.canvas.size.1, self.canvas.offset.1, self.stored.1),
            ),
            offset,
            ..self.canvas
        };
        let (left, right) = ((self.crop.left + shift.0) / n, (self.crop.left + self.crop.width + shift.0).div_ceil(n));
        let (top, bottom) = ((self.crop.top + shift.1) / n, (self.crop.top + self.crop.height + shift.1).div_ceil(n));
        let (right, bottom) = (right.min(canvas.size.0), bottom.min(canvas.size.1));
        Geometry {
            stored,
            canvas,
            crop: Rect { left, top, width: right - left, height: bottom - top },
            area: Area {
                left: (x + f64::from(shift.0)) / by,
                top: (y + f64::from(shift.1)) / by,
                width: w / by,
                height: h / by,
            },
            ..*self
        }
    }

    /// Returns whether the result depends on padding.
    pub(crate) fn shows_padding(&self) -> bool {
        let Rect { left, top, width, height } = self.needed_canvas();
        let ((x, y), (w, h)) = (self.canvas.offset, self.stored);
        !Rect { left: x, top: y, width: w, height: h }.contains(Rect { left, top, width, height })
    }

    /// Returns where a point of the stored image lies in the result: x and y in pixels, each 0 at the image's left or upper
    /// edge. Points outside the crop lie outside the result.
    pub(crate) fn map(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let (x, y) = (x + f64::from(self.canvas.offset.0), y + f64::from(self.canvas.offset.1));
        let (u, v) = ((x - self.area.left) / self.area.width, (y - self.area.top) / self.area.height);
        let [u, v] = self.orientation.map([u, v]);
        [u * f64::from(self.size.0), v * f64::from(self.size.1)]
    }

    /// Checks that an image has the size (width, height) that this geometry was planned for.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if it has another size.
    pub(crate) fn check_stored(&self, found: (u32, u32)) -> Result<(), Error> {
        if found == self.stored { Ok(()) } else { Err(Error::SizeMismatch { expected: self.stored, found }) }
    }
}

/// Returns the smallest rectangle of the stored image that contains what each geometry needs, in pixels of the reduced image,
/// and the reduction: the smallest of those that the geometries allow, 1, 2, 4 or 8.
pub(crate) fn needed(geometries: &[Geometry], gap: Option<f64>) -> (Rect, u32) {
    let reduction = geometries.iter().map(|geometry| geometry.reduction(gap)).min().unwrap_or(1);
    let parts = geometries.iter().map(|geometry| geometry.reduced(reduction).needed());
    let rect = parts.reduce(Rect::union).unwrap_or(Rect { left: 0, top: 0, width: 1, height: 1 });
    (rect, reduction)
}

/// Returns the half-open range of source pixels that `n` result pixels, resized from `length` pixels at `start`, depend on.
fn source_span(
    (start, length): (f64, f64),
    n: u32,
    (crop_start, crop_length): (u32, u32),
    filter: Filter,
) -> (u32, u32) {
    let margin = (length / f64::from(n)).max(1.0).ceil() * f64::from(filter.support()) + 1.0;
    let (lo, hi) = (f64::from(crop_start), f64::from(crop_start + crop_length));
    ((start - margin).floor().clamp(lo, hi - 1.0) as u32, (start + length + margin).ceil().clamp(lo + 1.0, hi) as u32)
}
