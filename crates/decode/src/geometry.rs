//! Which pixels of the stored image become which pixels of the result: numbers only, computed before anything is decoded.
//!
//! Steps speak of the oriented image; a geometry speaks of the stored one, so that a decoder can be asked for just those
//! pixels, and a second image of the sample (a mask) can go through the same one.

use crate::error::Error;
use crate::orientation::Orientation;

/// A rectangle of whole pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Columns to its left.
    pub left: u32,
    /// Rows above it.
    pub top: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl Rect {
    /// The same rectangle in fractions of pixels.
    pub(crate) fn area(self) -> Area {
        Area { left: self.left.into(), top: self.top.into(), width: self.width.into(), height: self.height.into() }
    }

    /// Whether every pixel of `other` lies in it.
    pub fn contains(self, other: Rect) -> bool {
        let inside = |at: u32, len: u32, o_at: u32, o_len: u32| {
            at <= o_at && u64::from(o_at) + u64::from(o_len) <= u64::from(at) + u64::from(len)
        };
        inside(self.left, self.width, other.left, other.width) && inside(self.top, self.height, other.top, other.height)
    }

    /// The part that lies in both. They must meet.
    pub(crate) fn meet(self, other: Rect) -> Rect {
        let (left, top) = (self.left.max(other.left), self.top.max(other.top));
        let right = (self.left + self.width).min(other.left + other.width);
        let bottom = (self.top + self.height).min(other.top + other.height);
        Rect { left, top, width: right - left, height: bottom - top }
    }
}

/// A rectangle in fractions of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Where each pixel of a result comes from, in the coordinates of the stored image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Width and height of the stored image.
    pub(crate) stored: (u32, u32),
    /// Pixels outside it do not exist for the filter: torchvision crops first and resizes the crop.
    pub(crate) view: Rect,
    /// What is resized; smaller than the view where a crop follows the resize.
    pub(crate) area: Area,
    /// How the resized pixels are turned.
    pub(crate) orientation: Orientation,
    /// Width and height of the result.
    pub(crate) size: (u32, u32),
}

impl Geometry {
    /// Width and height of the result in pixels.
    pub fn output_size(&self) -> (u32, u32) {
        self.size
    }

    /// The pixels of the stored image that can show in the result: all that a decoder has to deliver. The antialiasing
    /// filter reaches as far beyond the area as it reduces, and one pixel more for rounding.
    pub fn needed(&self) -> Rect {
        let (width, height) = self.orientation.size(self.size);
        let (left, right) = reach(self.area.left, self.area.width, width, self.view.left, self.view.width);
        let (top, bottom) = reach(self.area.top, self.area.height, height, self.view.top, self.view.height);
        Rect { left, top, width: right - left, height: bottom - top }
    }

    /// How far the image may be reduced before it is resized, in width and height: the largest of 1, 2, 4 and 8 that leaves
    /// the area at least `gap` times as large as the result in both directions (PIL's `Image.draft`). 1 without a gap.
    pub(crate) fn reduction(&self, gap: Option<f64>) -> u32 {
        let Some(gap) = gap else { return 1 };
        let (width, height) = self.orientation.size(self.size);
        let times = (self.area.width / f64::from(width)).min(self.area.height / f64::from(height)) / gap.max(1.0);
        [8, 4, 2].into_iter().find(|&n| f64::from(n) <= times).unwrap_or(1)
    }

    /// The same geometry on the image reduced by `n` in width and height. The area keeps its place between the pixels;
    /// pixels of which only a part lies in the view count as inside.
    pub(crate) fn reduced(&self, n: u32) -> Geometry {
        let Rect { left, top, width, height } = self.view;
        let (right, bottom) = ((left + width).div_ceil(n), (top + height).div_ceil(n));
        let (left, top) = (left / n, top / n);
        let by = f64::from(n);
        let Area { left: x, top: y, width: w, height: h } = self.area;
        Geometry {
            stored: (self.stored.0.div_ceil(n), self.stored.1.div_ceil(n)),
            view: Rect { left, top, width: right - left, height: bottom - top },
            area: Area { left: x / by, top: y / by, width: w / by, height: h / by },
            ..*self
        }
    }

    /// Refuses an image of another size than the one this geometry was planned for.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`].
    pub fn check_stored(&self, found: (u32, u32)) -> Result<(), Error> {
        if found == self.stored { Ok(()) } else { Err(Error::SizeMismatch { expected: self.stored, found }) }
    }
}

/// First and last (exclusive) source pixel that a result of `n` pixels from `start`, `length` can touch.
fn reach(start: f64, length: f64, n: u32, view_start: u32, view_length: u32) -> (u32, u32) {
    let margin = (length / f64::from(n)).max(1.0).ceil() + 1.0;
    let (lo, hi) = (f64::from(view_start), f64::from(view_start + view_length));
    ((start - margin).floor().clamp(lo, hi - 1.0) as u32, (start + length + margin).ceil().clamp(lo + 1.0, hi) as u32)
}

/// A geometry in the making: the steps so far, in the coordinates of the oriented image.
pub(crate) struct Draft {
    view: Rect,
    area: Area,
    resized: Option<(u32, u32)>,
    mirrored: bool,
}

impl Draft {
    /// The whole oriented image of that size.
    pub(crate) fn new((width, height): (u32, u32)) -> Self {
        let view = Rect { left: 0, top: 0, width, height };
        Draft { view, area: view.area(), resized: None, mirrored: false }
    }

    /// Width and height of the image that the next step sees.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.resized.unwrap_or((self.view.width, self.view.height))
    }

    /// Keeps a rectangle of it.
    pub(crate) fn crop(&mut self, mut rect: Rect) {
        let (width, height) = self.size();
        if self.mirrored {
            rect.left = width - rect.left - rect.width;
        }
        if self.resized.is_none() {
            self.view = Rect { left: self.view.left + rect.left, top: self.view.top + rect.top, ..rect };
            self.area = self.view.area();
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

    /// Resizes it. May happen once.
    pub(crate) fn resize(&mut self, size: (u32, u32)) {
        self.resized = Some(size);
    }

    /// Mirrors it left to right.
    pub(crate) fn mirror(&mut self) {
        self.mirrored = !self.mirrored;
    }

    /// The geometry, in the coordinates of the stored image.
    pub(crate) fn finish(self, stored: (u32, u32), orientation: Orientation) -> Geometry {
        let size = self.size();
        Geometry {
            stored,
            view: orientation.to_stored(self.view, stored),
            area: orientation.area_to_stored(self.area, stored),
            orientation: if self.mirrored { orientation.then_mirror() } else { orientation },
            size,
        }
    }
}
