//! Coordinates of objects: finds the image that they refer to, and converts them to the image as stored.
//!
//! A photograph with an EXIF orientation has two sizes, as coded and as shown, and annotations may refer to either, or to a copy of
//! another size. The annotated size, in the columns [`WIDTH`] and [`HEIGHT`] of a sample, tells which; without it, coordinates of
//! such an image are refused unless the user says what they refer to ([`Options::annotated`]).

use super::objects::{BBOX, KEYPOINTS};
use crate::options::{Annotated, BoxUnit};
use crate::sample::{SampleSchema, Values};
use crate::{Options, Reason};
use serde_json::Value;
use shardtool_decode::Orientation;
use std::borrow::Cow;

/// Columns with the width and height of the annotated image, in pixels.
pub(crate) const WIDTH: &str = "width";
pub(crate) const HEIGHT: &str = "height";
/// Columns in pixels of the image that stay so: they follow its size and orientation.
const SEGMENTATION: &str = "image/object/segmentation";
const AREA: &str = "image/object/area";

/// An image before and after its conversion for storage.
pub(crate) struct ImageSizes {
    /// Width and height as coded, and the EXIF orientation, 1 to 8.
    pub(crate) coded: (u32, u32),
    pub(crate) orientation: u32,
    /// Width and height as stored.
    pub(crate) stored: (u32, u32),
    /// Whether the stored image is upright, although the coded one was not.
    pub(crate) turned: bool,
}

/// Converts a sample's coordinates to the image as stored: boxes and keypoints in pixels become fractions; polygons and areas stay
/// in pixels.
///
/// # Errors
/// [`Reason::Objects`], [`Reason::AnnotatedSize`], [`Reason::AnnotatedFrame`], [`Reason::BoxUnit`], [`Reason::BoxOutside`].
pub(crate) fn stored<'v>(
    schema: &SampleSchema,
    values: &'v [Values],
    image: Option<&ImageSizes>,
    options: &Options,
) -> Result<Cow<'v, [Values]>, Reason> {
    let mut out = Cow::Borrowed(values);
    let columns = || schema.columns.iter().zip(values).map(|((name, _), values)| (name.as_str(), values));
    let refers = |name: &str, values: &Values| match values {
        Values::Pixels(numbers) => !numbers.is_empty(),
        Values::Floats(numbers) => {
            image.is_some_and(|image| image.turned) && [BBOX, KEYPOINTS].contains(&name) && !numbers.is_empty()
        }
        _ => false,
    };
    let Some((first, _)) = columns().find(|(name, values)| refers(name, values)) else {
        // Empty lists need no image.
        for (at, value) in values.iter().enumerate() {
            if let Values::Pixels(_) = value {
                out.to_mut()[at] = Values::Floats([].into());
            }
        }
        return Ok(out);
    };
    let Some(image) = image else {
        return Err(Reason::Objects {
            member: first.to_owned(),
            expected: "an image, whose size converts pixels to fractions",
        });
    };
    let size = |name| match columns().find(|(column, _)| *column == name)? {
        // A tool that does not know the size writes 0.
        (_, Values::Int64(size)) => u32::try_from(*size).ok().filter(|size| *size > 0),
        _ => None,
    };
    let in_pixels = columns().any(|(_, values)| matches!(values, Values::Pixels(numbers) if !numbers.is_empty()));
    let map = match in_pixels {
        true => Map::of_pixels(image, size(WIDTH).zip(size(HEIGHT)), options)?,
        // Stored fractions are those of the coded image (format-spec.md).
        false => Map::new(image, Annotated::Coded, (1.0, 1.0)),
    };
    for (at, (name, value)) in columns().enumerate() {
        let converted = match value {
            Values::Pixels(numbers) if name == BBOX => {
                check_boxes(numbers, &map, options)?;
                Some(Values::Floats(map.boxes(numbers)))
            }
            Values::Pixels(numbers) => Some(Values::Floats(map.points(numbers))),
            Values::Floats(numbers) if !in_pixels && name == BBOX && numbers.len() % 4 == 0 => {
                Some(Values::Floats(map.boxes(numbers)))
            }
            Values::Floats(numbers) if !in_pixels && name == KEYPOINTS && numbers.len() % 3 == 0 => {
                Some(Values::Floats(map.points(numbers)))
            }
            Values::BytesList(texts) if in_pixels && name == SEGMENTATION => map.polygons(texts)?,
            Values::Floats(areas) if in_pixels && name == AREA => {
                map.areas(areas).map(|list| Values::Floats(list.collect()))
            }
            Values::Int64s(areas) if in_pixels && name == AREA => {
                let areas: Vec<_> = areas.iter().map(|area| *area as f32).collect();
                map.areas(&areas).map(|list| Values::Int64s(list.map(|area| area.round() as i64).collect()))
            }
            _ => None,
        };
        if let Some(converted) = converted {
            out.to_mut()[at] = converted;
        }
    }
    Ok(out)
}

/// Refuses boxes that are not what the options say: fractions, inverted, or outside of the image.
fn check_boxes(numbers: &[f32], map: &Map, options: &Options) -> Result<(), Reason> {
    let in_fractions = options.box_unit == Some(BoxUnit::Fraction);
    if options.box_unit.is_none() && numbers.iter().all(|number| (0.0..=1.0).contains(number)) {
        return Err(Reason::BoxUnit { found: "at most 1, as fractions are" });
    }
    if in_fractions && numbers.iter().any(|number| *number > 2.0) {
        return Err(Reason::BoxUnit { found: "above 2, as pixels are" });
    }
    for (number, corners) in numbers.chunks_exact(4).enumerate() {
        let [left, top, right, bottom] = [corners[0], corners[1], corners[2], corners[3]];
        let (width, height) = map.size;
        let problem = if !corners.iter().all(|corner| corner.is_finite()) {
            "is not finite"
        } else if left > right || top > bottom {
            "has a right or bottom edge before its left or top one"
        } else if left == right || top == bottom {
            "has no width or no height"
        } else if f64::from(left) >= width || f64::from(top) >= height || right <= 0.0 || bottom <= 0.0 {
            "lies outside of the image"
        } else {
            continue;
        };
        let corners = [left, top, right, bottom];
        return Err(Reason::BoxOutside { number, corners, problem, width, height });
    }
    Ok(())
}

/// Maps points of the annotated image to the stored one.
struct Map {
    /// Size of the annotated image; 1 × 1 for fractions.
    size: (f64, f64),
    /// EXIF orientation that leads from the annotated image to the stored one, 1 to 8.
    orientation: u32,
    /// Size of the stored image.
    stored: (u32, u32),
}

impl Map {
    /// Finds the image to which pixels refer. `annotated` is its size, if the sample has it.
    fn of_pixels(image: &ImageSizes, annotated: Option<(u32, u32)>, options: &Options) -> Result<Self, Reason> {
        let shown = Orientation::from_exif(image.orientation as u8).size(image.coded);
        let both = [(Annotated::Coded, image.coded), (Annotated::Upright, shown)];
        // The same image, or a copy of another size.
        let fits = |found: (u32, u32)| {
            let exact: Vec<_> = both.iter().filter(|(_, size)| *size == found).map(|(which, _)| *which).collect();
            let scaled = both.iter().filter(|(_, size)| same_shape(*size, found)).map(|(which, _)| *which);
            if exact.is_empty() { scaled.collect() } else { exact }
        };
        let candidates = match annotated {
            Some(found) => fits(found),
            None => vec![Annotated::Coded, Annotated::Upright],
        };
        let which = match (options.annotated, image.orientation) {
            (Some(given), _) => given,
            (None, 0 | 1) if !candidates.is_empty() => Annotated::Coded,
            (None, orientation) => match candidates[..] {
                [one] => one,
                [] => {
                    let found = annotated.unwrap_or_default();
                    return Err(Reason::AnnotatedSize { found, coded: image.coded, shown });
                }
                _ => return Err(Reason::AnnotatedFrame { orientation }),
            },
        };
        let own = if which == Annotated::Coded { image.coded } else { shown };
        let (width, height) = annotated.filter(|found| same_shape(own, *found)).unwrap_or(own);
        let size = match options.box_unit {
            Some(BoxUnit::Fraction) => (1.0, 1.0),
            _ => (f64::from(width), f64::from(height)),
        };
        Ok(Self::new(image, which, size))
    }

    fn new(image: &ImageSizes, which: Annotated, size: (f64, f64)) -> Self {
        let orientation = match (which, image.turned) {
            (Annotated::Coded, true) => image.orientation,
            (Annotated::Upright, false) => inverse(image.orientation),
            _ => 1,
        };
        Map { size, orientation, stored: image.stored }
    }

    /// Returns a point as fractions of the stored image.
    fn point(&self, x: f64, y: f64) -> (f64, f64) {
        turn(self.orientation, x / self.size.0, y / self.size.1)
    }

    /// Returns whether pixels of the annotated image are those of the stored one.
    fn keeps_pixels(&self) -> bool {
        self.orientation <= 1 && self.size == (f64::from(self.stored.0), f64::from(self.stored.1))
    }

    fn boxes(&self, numbers: &[f32]) -> Box<[f32]> {
        let corners = numbers.chunks_exact(4).flat_map(|corners| {
            let [left, top, right, bottom] = [0, 1, 2, 3].map(|n| f64::from(corners[n]));
            let ((a, b), (c, d)) = (self.point(left, top), self.point(right, bottom));
            [a.min(c), b.min(d), a.max(c), b.max(d)].map(|corner| corner as f32)
        });
        corners.collect()
    }

    /// Converts keypoints: x, y and visibility of each. A point that is not labelled stays 0, 0, 0.
    fn points(&self, numbers: &[f32]) -> Box<[f32]> {
        let points = numbers.chunks_exact(3).flat_map(|point| {
            if point == [0.0; 3] {
                return [0.0; 3];
            }
            let (x, y) = self.point(point[0].into(), point[1].into());
            [x as f32, y as f32, point[2]]
        });
        points.collect()
    }

    /// Converts areas, in square pixels.
    fn areas<'a>(&self, areas: &'a [f32]) -> Option<impl Iterator<Item = f32> + use<'a>> {
        if self.keeps_pixels() || self.size == (1.0, 1.0) {
            return None;
        }
        let factor = f64::from(self.stored.0) * f64::from(self.stored.1) / (self.size.0 * self.size.1);
        Some(areas.iter().map(move |area| (f64::from(*area) * factor) as f32))
    }

    /// Converts polygons, as JSON text for each object. Run-length masks cannot follow.
    fn polygons(&self, texts: &[Box<[u8]>]) -> Result<Option<Values>, Reason> {
        if self.keeps_pixels() {
            return Ok(None);
        }
        let wrong = || Reason::Objects {
            member: "segmentation".to_owned(),
            expected: "polygons in pixels, since the stored image has another size or orientation than the annotated one",
        };
        let texts = texts.iter().map(|text| {
            let value: Value = serde_json::from_slice(text).map_err(|_| wrong())?;
            let polygons = match &value {
                Value::Null => return Ok(text.clone()),
                Value::Array(polygons) => polygons,
                _ => return Err(wrong()),
            };
            let converted = polygons
                .iter()
                .map(|polygon| self.polygon(polygon).ok_or_else(wrong))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Value::from(converted).to_string().into_bytes().into())
        });
        Ok(Some(Values::BytesList(texts.collect::<Result<_, Reason>>()?)))
    }

    fn polygon(&self, polygon: &Value) -> Option<Value> {
        let numbers = polygon.as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<_>>>()?;
        if numbers.len() % 2 != 0 {
            return None;
        }
        let (width, height) = (f64::from(self.stored.0), f64::from(self.stored.1));
        let points = numbers.chunks_exact(2).flat_map(|point| {
            let (x, y) = self.point(point[0], point[1]);
            // Thousandths of a pixel.
            [x * width, y * height].map(|pixels| Value::from((pixels * 1000.0).round() / 1000.0))
        });
        Some(points.collect())
    }
}

/// Returns whether two images have the same proportions, within the rounding of the smaller one's sides.
fn same_shape(a: (u32, u32), b: (u32, u32)) -> bool {
    let [a, b] = [a, b].map(|(width, height)| (f64::from(width), f64::from(height)));
    let (large, small) = if a.0 * a.1 >= b.0 * b.1 { (a, b) } else { (b, a) };
    if small.0 < 1.0 || small.1 < 1.0 {
        return false;
    }
    // Each side of the smaller one is a multiple of the larger one, rounded in either direction.
    let least = ((small.0 - 1.0) / large.0).max((small.1 - 1.0) / large.1);
    let most = ((small.0 + 1.0) / large.0).min((small.1 + 1.0) / large.1);
    least < most
}

/// Returns the orientation that undoes another.
fn inverse(orientation: u32) -> u32 {
    match orientation {
        6 => 8,
        8 => 6,
        other => other,
    }
}

/// Maps a point of the coded image to the upright one, in fractions.
fn turn(orientation: u32, x: f64, y: f64) -> (f64, f64) {
    match orientation {
        2 => (1.0 - x, y),
        3 => (1.0 - x, 1.0 - y),
        4 => (x, 1.0 - y),
        5 => (y, x),
        6 => (1.0 - y, x),
        7 => (1.0 - y, 1.0 - x),
        8 => (y, 1.0 - x),
        _ => (x, y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_those_of_the_decoder_and_undone_by_their_inverse() {
        // The position of one pixel of a 4 × 2 image, in each orientation.
        let expected = [(1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (1, 1), (1, 2), (0, 2)];
        for (orientation, expected) in (1..=8).zip(expected) {
            let (w, h) = Orientation::from_exif(orientation as u8).size((4, 2));
            let ((a, b), (c, d)) = (turn(orientation, 0.25, 0.0), turn(orientation, 0.5, 0.5));
            let found = ((a.min(c) * f64::from(w)).round() as u32, (b.min(d) * f64::from(h)).round() as u32);
            assert_eq!(found, expected, "{orientation}");
            let (x, y) = turn(orientation, 0.1, 0.7);
            let (x, y) = turn(inverse(orientation), x, y);
            assert!((x - 0.1).abs() < 1e-12 && (y - 0.7).abs() < 1e-12, "{orientation}");
        }
    }

    #[test]
    fn shapes_are_compared_within_rounding() {
        for (a, b, same) in [
            ((640, 480), (320, 240), true),
            ((640, 427), (320, 214), true),
            ((640, 427), (320, 213), true),
            ((640, 480), (480, 640), false),
            ((640, 480), (640, 427), false),
            ((100, 80), (50, 0), false),
            ((100, 100), (50, 52), false),
        ] {
            assert_eq!(same_shape(a, b), same, "{a:?} {b:?}");
            assert_eq!(same_shape(b, a), same, "{b:?} {a:?}");
        }
    }
}
