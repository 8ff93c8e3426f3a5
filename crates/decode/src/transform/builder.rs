//! Composes crops, padding, one resize and flips into a geometry.

use super::geometry::{Canvas, Geometry};
use super::orientation::Orientation;
use super::rect::{Area, Rect};
use crate::resize::Filter;

/// Composes steps into a geometry, in coordinates of the oriented image. A step that does not compose is refused; it is then
/// applied to pixels, as are all steps after it.
#[derive(Clone, Debug)]
pub(crate) struct GeometryBuilder {
    /// Width and height of the oriented image.
    image: (u32, u32),
    /// The oriented image with its padding.
    canvas: Canvas,
    crop: Rect,
    area: Area,
    resized: Option<(u32, u32)>,
    filter: Filter,
    flip_x: bool,
    flip_y: bool,
}

impl GeometryBuilder {
    /// Starts with the whole oriented image of the given size.
    pub(crate) fn new((width, height): (u32, u32)) -> Self {
        let crop = Rect { left: 0, top: 0, width, height };
        GeometryBuilder {
            image: (width, height),
            canvas: Canvas { size: (width, height), offset: (0, 0), fill: [0; 3] },
            crop,
            area: crop.area(),
            resized: None,
            filter: Filter::default(),
            flip_x: false,
            flip_y: false,
        }
    }

    /// Returns the width and height after the steps so far.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.resized.unwrap_or((self.crop.width, self.crop.height))
    }

    /// Crops to `rect`, which must lie inside.
    pub(crate) fn crop(&mut self, mut rect: Rect) {
        let (width, height) = self.size();
        if self.flip_x {
            rect.left = width - rect.left - rect.width;
        }
        if self.flip_y {
            rect.top = height - rect.top - rect.height;
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

    /// Adds padding of one colour to the left, top, right and bottom. Returns whether it composes: before the resize, around
    /// the whole canvas, in one colour.
    pub(crate) fn pad(&mut self, [mut left, mut top, mut right, mut bottom]: [u32; 4], fill: [u8; 3]) -> bool {
        let Canvas { size, offset, fill: before } = self.canvas;
        let whole = Rect { left: 0, top: 0, width: size.0, height: size.1 };
        let same_colour = size == self.image || before == fill;
        if self.resized.is_some() || self.crop != whole || !same_colour {
            return false;
        }
        if self.flip_x {
            std::mem::swap(&mut left, &mut right);
        }
        if self.flip_y {
            std::mem::swap(&mut top, &mut bottom);
        }
        let size = (size.0 + left + right, size.1 + top + bottom);
        self.canvas = Canvas { size, offset: (offset.0 + left, offset.1 + top), fill };
        self.crop = Rect { left: 0, top: 0, width: size.0, height: size.1 };
        self.area = self.crop.area();
        true
    }

    /// Resizes to `size` (width, height). Returns whether it composes: the first resize does.
    pub(crate) fn resize(&mut self, size: (u32, u32), filter: Filter) -> bool {
        let first = self.resized.is_none();
        if first {
            (self.resized, self.filter) = (Some(size), filter);
        }
        first
    }

    /// Flips left to right.
    pub(crate) fn flip(&mut self) {
        self.flip_x = !self.flip_x;
    }

    /// Flips top to bottom.
    pub(crate) fn flip_vertical(&mut self) {
        self.flip_y = !self.flip_y;
    }

    /// Returns the geometry in coordinates of the stored image of size `stored`.
    pub(crate) fn finish(&self, stored: (u32, u32), orientation: Orientation) -> Geometry {
        let Canvas { size, offset, fill } = self.canvas;
        let image = Rect { left: offset.0, top: offset.1, width: self.image.0, height: self.image.1 };
        let size = orientation.size(size);
        let Rect { left, top, .. } = orientation.to_stored(image, size);
        let mut turned = orientation;
        if self.flip_x {
            turned = turned.then_flip();
        }
        if self.flip_y {
            turned = turned.then_flip_vertical();
        }
        Geometry {
            stored,
            canvas: Canvas { size, offset: (left, top), fill },
            crop: orientation.to_stored(self.crop, size),
            area: orientation.area_to_stored(self.area, size),
            orientation: turned,
            size: self.size(),
            filter: self.filter,
        }
    }
}
