//! What is done to one image: a geometry, then stages on its pixels; and the same for its label maps, boxes and points.

use super::geometry::Geometry;
use super::orientation::Orientation;
use super::rect::Rect;
use super::step::PaddingMode;
use crate::operation::Operation;
use crate::resize::Filter;
use serde::Serialize;

/// What a pipeline does to one image, with all random numbers drawn. Made by [`Pipeline::plan`](crate::Pipeline::plan).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    geometry: Geometry,
    stages: Vec<Stage>,
    size: (u32, u32),
    /// Whether each box is kept; empty if all are.
    #[serde(skip)]
    kept: Vec<bool>,
}

/// A change of pixels after the geometry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Keeps a rectangle.
    Crop(Rect),
    /// Adds pixels to the left, top, right and bottom.
    Pad { padding: [u32; 4], fill: [u8; 3], mode: PaddingMode },
    /// Resizes, label maps by nearest neighbour.
    Resize { width: u32, height: u32, filter: Filter },
    /// Changes pixels and keeps the size.
    #[serde(untagged)]
    Operation(Operation),
}

impl Plan {
    pub(crate) fn new(geometry: Geometry, stages: Vec<Stage>, size: (u32, u32), kept: Vec<bool>) -> Self {
        Plan { geometry, stages, size, kept }
    }

    /// Returns this plan for an image whose values must not be mixed, such as depths or ids: resizes and warps take the nearest pixel,
    /// operations on colours are left out, and pixels outside the image are 0. Its values move as those of a label map do
    /// ([`apply_to_labels`](Self::apply_to_labels)).
    pub fn by_nearest(&self) -> Plan {
        let mut geometry = self.geometry;
        (geometry.filter, geometry.canvas.fill) = (Filter::Nearest, [0; 3]);
        let stages = self.stages.iter().filter_map(Stage::by_nearest).collect();
        Plan { geometry, stages, size: self.size, kept: self.kept.clone() }
    }

    /// Returns whether a pixel of the result may lie elsewhere than in the stored image.
    pub fn moves_pixels(&self) -> bool {
        let Geometry { stored, canvas, orientation, size, .. } = self.geometry;
        let whole = Rect { left: 0, top: 0, width: stored.0, height: stored.1 };
        let moved = |stage: &Stage| !matches!(stage, Stage::Operation(operation) if operation.by_nearest().is_none());
        let kept = orientation == Orientation::default() && canvas.size == stored && size == stored;
        !(kept && self.geometry.area == whole.area()) || self.stages.iter().any(moved)
    }

    /// Returns what is decoded: which stored pixels are needed, and how they are resized.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns what follows the geometry.
    pub(crate) fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Returns the width and height of the result in pixels.
    pub fn output_size(&self) -> (u32, u32) {
        self.size
    }

    /// Returns whether every stage keeps the size of the geometry's result.
    pub(crate) fn keeps_size(&self) -> bool {
        self.stages.iter().all(|stage| matches!(stage, Stage::Operation(_)))
    }

    /// Returns whether lines that are parallel stay so: every vector is then multiplied with the same matrix.
    pub fn is_affine(&self) -> bool {
        !self.stages.iter().any(|stage| matches!(stage, Stage::Operation(Operation::Perspective { .. })))
    }

    /// Returns where a box of the sample lies in the result, in pixels, clipped to it. `None` if it lies outside, or a step
    /// has dropped it.
    ///
    /// `number` is the index of the box in the list that the plan was made with; a box is left, top, right and bottom in
    /// pixels of the stored image. A rotated box becomes the smallest upright box around it.
    pub fn map_box(&self, number: usize, [left, top, right, bottom]: [f64; 4]) -> Option<[f64; 4]> {
        if self.kept.get(number) == Some(&false) {
            return None;
        }
        let mut size = self.geometry.output_size();
        let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
        let mut current = around(corners.map(|corner| self.geometry.map(corner)), size)?;
        for stage in &self.stages {
            let [left, top, right, bottom] = current;
            let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
            let mapped = corners.map(|corner| stage.map(size, corner));
            size = stage.size(size);
            current = around(mapped, size)?;
        }
        Some(current)
    }

    /// Returns where a point of the stored image lies in the result: x and y in pixels, 0 at the left or upper edge. Points
    /// that were cropped away lie outside the result.
    pub fn map_point(&self, point: [f64; 2]) -> [f64; 2] {
        let mut size = self.geometry.output_size();
        let mut point = self.geometry.map(point);
        for stage in &self.stages {
            point = stage.map(size, point);
            size = stage.size(size);
        }
        point
    }

    /// Returns where the result shows a point of the stored image, as [`map_point`](Self::map_point). `None` if it lies outside of the
    /// stored image or of the result, or a step has cropped it away, also where a later one adds a border there.
    pub fn shown_point(&self, point: [f64; 2]) -> Option<[f64; 2]> {
        let mut size = self.geometry.output_size();
        let mut shown = is_inside(point, self.geometry.stored).then(|| self.geometry.map(point))?;
        for stage in &self.stages {
            shown = is_inside(shown, size).then(|| stage.map(size, shown))?;
            size = stage.size(size);
        }
        is_inside(shown, size).then_some(shown)
    }
}

/// Returns whether a point lies in an image of a width and height, or on its edge, up to rounding.
fn is_inside([x, y]: [f64; 2], (width, height): (u32, u32)) -> bool {
    const ROUNDING: f64 = 1e-6;
    let within = |at: f64, side: u32| (-ROUNDING..=f64::from(side) + ROUNDING).contains(&at);
    within(x, width) && within(y, height)
}

impl Stage {
    /// Returns the width and height of the result for those of the image.
    pub(crate) fn size(&self, (width, height): (u32, u32)) -> (u32, u32) {
        match *self {
            Stage::Crop(rect) => (rect.width, rect.height),
            Stage::Pad { padding: [left, top, right, bottom], .. } => (width + left + right, height + top + bottom),
            Stage::Resize { width, height, .. } => (width, height),
            Stage::Operation(_) => (width, height),
        }
    }

    /// Returns the stage for values that must not be mixed; `None` if it moves none.
    fn by_nearest(&self) -> Option<Stage> {
        Some(match *self {
            Stage::Crop(rect) => Stage::Crop(rect),
            Stage::Pad { padding, mode, .. } => Stage::Pad { padding, fill: [0; 3], mode },
            Stage::Resize { width, height, .. } => Stage::Resize { width, height, filter: Filter::Nearest },
            Stage::Operation(ref operation) => Stage::Operation(operation.by_nearest()?),
        })
    }

    /// Returns where a point of an image of this size lies in the result.
    fn map(&self, size: (u32, u32), [x, y]: [f64; 2]) -> [f64; 2] {
        match self {
            Stage::Crop(rect) => [x - f64::from(rect.left), y - f64::from(rect.top)],
            Stage::Pad { padding: [left, top, ..], .. } => [x + f64::from(*left), y + f64::from(*top)],
            Stage::Resize { width, height, .. } => {
                [x * f64::from(*width) / f64::from(size.0), y * f64::from(*height) / f64::from(size.1)]
            }
            Stage::Operation(operation) => operation.map_point(size, [x, y]),
        }
    }
}

/// Returns the smallest upright box around four points, clipped to the image; `None` if its area becomes 0 or a coordinate
/// is not finite.
fn around(points: [[f64; 2]; 4], (width, height): (u32, u32)) -> Option<[f64; 4]> {
    if points.iter().flatten().any(|x| !x.is_finite()) {
        return None;
    }
    let span = |axis: usize, side: u32| {
        let values = points.map(|point| point[axis]);
        let low = values.into_iter().fold(f64::INFINITY, f64::min);
        let high = values.into_iter().fold(f64::NEG_INFINITY, f64::max);
        (low.clamp(0.0, side.into()), high.clamp(0.0, side.into()))
    };
    let ((left, right), (top, bottom)) = (span(0, width), span(1, height));
    (left < right && top < bottom).then_some([left, top, right, bottom])
}
