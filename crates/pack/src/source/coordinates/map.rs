//! Finds the image that coordinates refer to, and maps its points to the stored image.
//!
//! A photograph with an EXIF orientation has two sizes, as coded and as shown, and annotations may refer to either, or to a copy of
//! another size. The annotated size decides; without it, coordinates of such an image are refused unless the user says what they
//! refer to ([`Options::annotated`](crate::Options::annotated)).

use super::ImageSizes;
use crate::Reason;
use crate::options::Annotated;
use serde_json::Value;
use shardtool_decode::Orientation;

/// JSON text for each object.
type Texts = Box<[Box<[u8]>]>;

/// Maps points of the annotated image to the stored one.
pub(super) struct Map {
    /// Size of the annotated image; 1 × 1 for fractions.
    size: (f64, f64),
    /// EXIF orientation that leads from the annotated image to the stored one, 1 to 8.
    orientation: u32,
    /// Size of the stored image.
    stored: (u32, u32),
}

impl Map {
    /// Finds the image to which pixels refer. `annotated` is its size, if the sample has it.
    ///
    /// # Errors
    /// [`Reason::AnnotatedSize`], [`Reason::AnnotatedFrame`].
    pub(super) fn of_annotated(
        image: &ImageSizes,
        annotated: Option<(u32, u32)>,
        given: Option<Annotated>,
    ) -> Result<Self, Reason> {
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
        let which = match (given, image.orientation) {
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
        Ok(Self::new(image, which, (f64::from(width), f64::from(height))))
    }

    /// Maps pixels of the image as coded.
    pub(super) fn of_coded(image: &ImageSizes) -> Self {
        Self::new(image, Annotated::Coded, (f64::from(image.coded.0), f64::from(image.coded.1)))
    }

    /// Returns the map of fractions of the same image.
    pub(super) fn of_fractions(&self) -> Self {
        Map { size: (1.0, 1.0), ..*self }
    }

    fn new(image: &ImageSizes, which: Annotated, size: (f64, f64)) -> Self {
        let orientation = match (which, image.turned) {
            (Annotated::Coded, true) => image.orientation,
            (Annotated::Upright, false) => inverse(image.orientation),
            _ => 1,
        };
        Map { size, orientation, stored: image.stored }
    }

    /// Returns the size of the annotated image; 1 × 1 for fractions.
    pub(super) fn size(&self) -> (f64, f64) {
        self.size
    }

    /// Returns a point as fractions of the stored image.
    fn point(&self, x: f64, y: f64) -> (f64, f64) {
        turn(self.orientation, x / self.size.0, y / self.size.1)
    }

    /// Returns whether pixels of the annotated image are those of the stored one.
    fn keeps_pixels(&self) -> bool {
        self.orientation <= 1 && self.size == (f64::from(self.stored.0), f64::from(self.stored.1))
    }

    /// Converts boxes: left, top, right, bottom of each.
    pub(super) fn boxes(&self, numbers: &[f32]) -> Box<[f32]> {
        let corners = numbers.chunks_exact(4).flat_map(|corners| {
            let [left, top, right, bottom] = [0, 1, 2, 3].map(|n| f64::from(corners[n]));
            let ((a, b), (c, d)) = (self.point(left, top), self.point(right, bottom));
            [a.min(c), b.min(d), a.max(c), b.max(d)].map(|corner| corner as f32)
        });
        corners.collect()
    }

    /// Converts keypoints: x, y and visibility of each. A point that is not labelled stays 0, 0, 0.
    pub(super) fn points(&self, numbers: &[f32]) -> Box<[f32]> {
        let points = numbers.chunks_exact(3).flat_map(|point| {
            if point == [0.0; 3] {
                return [0.0; 3];
            }
            let (x, y) = self.point(point[0].into(), point[1].into());
            [x as f32, y as f32, point[2]]
        });
        points.collect()
    }

    /// Converts areas, in square pixels; `None` if they stay.
    pub(super) fn areas(&self, areas: &[f32]) -> Option<Box<[f32]>> {
        let factor = self.area_factor()?;
        Some(areas.iter().map(|area| (f64::from(*area) * factor) as f32).collect())
    }

    /// As [`Map::areas`], of whole numbers, which are rounded.
    pub(super) fn whole_areas(&self, areas: &[i64]) -> Option<Box<[i64]>> {
        let factor = self.area_factor()?;
        Some(areas.iter().map(|area| (*area as f64 * factor).round() as i64).collect())
    }

    fn area_factor(&self) -> Option<f64> {
        let stored = f64::from(self.stored.0) * f64::from(self.stored.1);
        (!self.keeps_pixels()).then_some(stored / (self.size.0 * self.size.1))
    }

    /// Returns whether there are polygons, and all of their coordinates are at most 1.
    pub(super) fn polygons_are_fractions(texts: &[&[u8]]) -> bool {
        let parsed = texts.iter().filter_map(|text| serde_json::from_slice::<Vec<Vec<f64>>>(text).ok());
        let mut numbers = parsed.flatten().flatten().peekable();
        numbers.peek().is_some() && numbers.all(|number| number <= 1.0)
    }

    /// Converts polygons, as JSON text for each object; `None` if they stay. Run-length masks cannot follow.
    ///
    /// # Errors
    /// [`Reason::Objects`].
    pub(super) fn polygons(&self, texts: &[&[u8]]) -> Result<Option<Texts>, Reason> {
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
                Value::Null => return Ok(Box::from(*text)),
                Value::Array(polygons) => polygons,
                _ => return Err(wrong()),
            };
            let converted = polygons
                .iter()
                .map(|polygon| self.polygon(polygon).ok_or_else(wrong))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Value::from(converted).to_string().into_bytes().into())
        });
        texts.collect::<Result<_, Reason>>().map(Some)
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
