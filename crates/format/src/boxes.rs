//! How the boxes of objects are written.

use serde::{Deserialize, Serialize};

/// What the four numbers of a box are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoxFormat {
    /// Left, top, right, bottom, as in Pascal VOC.
    Xyxy,
    /// Left, top, width, height, as in COCO.
    Xywh,
    /// Centre, width, height, as in YOLO.
    Cxcywh,
}

impl BoxFormat {
    /// All formats, in the order in which they are listed.
    pub const ALL: [BoxFormat; 3] = [BoxFormat::Xyxy, BoxFormat::Xywh, BoxFormat::Cxcywh];

    /// Returns the name used in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BoxFormat::Xyxy => "xyxy",
            BoxFormat::Xywh => "xywh",
            BoxFormat::Cxcywh => "cxcywh",
        }
    }

    /// Returns left, top, right and bottom of a box of this format.
    #[must_use]
    pub fn corners(self, [a, b, c, d]: [f64; 4]) -> [f64; 4] {
        match self {
            BoxFormat::Xyxy => [a, b, c, d],
            BoxFormat::Xywh => [a, b, a + c, b + d],
            BoxFormat::Cxcywh => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
        }
    }
}

/// The unit of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoxUnit {
    /// Fractions of the width and height of the image.
    Fraction,
    /// Pixels of the image.
    Pixel,
}

impl BoxUnit {
    /// Both units, in the order in which they are listed.
    pub const ALL: [BoxUnit; 2] = [BoxUnit::Pixel, BoxUnit::Fraction];

    /// Returns the name used in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BoxUnit::Fraction => "fraction",
            BoxUnit::Pixel => "pixel",
        }
    }
}

/// The largest number that a fraction of the image may be: boxes reach beyond the image, but not by its size.
pub const LARGEST_FRACTION: f32 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_of_one_box_in_every_format() {
        let boxes = [[10.0, 20.0, 16.0, 30.0], [10.0, 20.0, 6.0, 10.0], [13.0, 25.0, 6.0, 10.0]];
        for (format, given) in BoxFormat::ALL.into_iter().zip(boxes) {
            assert_eq!(format.corners(given), [10.0, 20.0, 16.0, 30.0], "{}", format.name());
        }
    }
}
