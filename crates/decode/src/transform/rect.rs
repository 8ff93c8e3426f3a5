//! Rectangles of an image, in whole pixels and in fractions of them.

use serde::{Deserialize, Serialize};

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rect {
    /// Columns of the image to its left.
    pub left: u32,
    /// Rows of the image above it.
    pub top: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl Rect {
    /// Returns the same rectangle in fractions of pixels.
    pub(crate) fn area(self) -> Area {
        Area { left: self.left.into(), top: self.top.into(), width: self.width.into(), height: self.height.into() }
    }

    /// Returns whether every pixel of `other` lies inside.
    pub fn contains(self, other: Rect) -> bool {
        let inside = |at: u32, len: u32, o_at: u32, o_len: u32| {
            at <= o_at && u64::from(o_at) + u64::from(o_len) <= u64::from(at) + u64::from(len)
        };
        inside(self.left, self.width, other.left, other.width) && inside(self.top, self.height, other.top, other.height)
    }

    /// Returns the intersection, which must not be empty.
    pub(crate) fn intersect(self, other: Rect) -> Rect {
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
