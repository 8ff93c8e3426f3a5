//! Coordinates of objects: converts them to the image as stored.
//!
//! Boxes and keypoints become fractions of the image; polygons and areas are in its pixels. The columns [`WIDTH`] and [`HEIGHT`] of
//! a sample say which image was annotated ([`map`]).

pub(crate) mod as_stored;
mod map;

use super::objects::{AREA, BBOX, KEYPOINTS};
use super::{keypoints, objects};
use crate::sample::{SampleSchema, Values};
use crate::{Options, Reason};
use map::Map;
use shardtool_format::{BoxUnit, LARGEST_FRACTION};
use std::borrow::Cow;

/// Columns with the width and height of the annotated image, in pixels.
const WIDTH: &str = "width";
const HEIGHT: &str = "height";
/// Columns in pixels of the image.
const SEGMENTATION: &str = "image/object/segmentation";

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

/// Converts a sample's coordinates to the image as stored.
///
/// # Errors
/// [`Reason::Objects`], [`Reason::AnnotatedSize`], [`Reason::AnnotatedFrame`], [`Reason::Unit`], [`Reason::BoxOutside`],
/// [`Reason::Points`].
pub(crate) fn stored<'v>(
    schema: &SampleSchema,
    values: &'v [Values],
    image: Option<&ImageSizes>,
    options: &Options,
) -> Result<Cow<'v, [Values]>, Reason> {
    objects::check_classes(schema, values)?;
    keypoints::check_count(schema, values)?;
    as_stored::check(schema, values, options)?;
    let mut out = Cow::Borrowed(values);
    let columns = || schema.columns.iter().zip(values).map(|((name, _), values)| (name.as_str(), values));
    let turned = image.is_some_and(|image| image.turned);
    let changed = image.is_some_and(|image| image.turned || image.stored != image.coded);
    let in_pixels = columns().any(|(_, values)| match values {
        Values::Pixels(numbers) | Values::Fractions(numbers) => !numbers.is_empty(),
        Values::FractionPolygons(texts) => !texts.is_empty(),
        _ => false,
    });
    let converts =
        in_pixels || columns().any(|(name, _)| if is_in_pixels(name) { changed } else { turned && is_fraction(name) });
    if !converts {
        // Empty lists need no image.
        for (at, value) in values.iter().enumerate() {
            match value {
                Values::Pixels(_) | Values::Fractions(_) => out.to_mut()[at] = Values::Floats([].into()),
                Values::FractionPolygons(_) => out.to_mut()[at] = Values::BytesList([].into()),
                _ => {}
            }
        }
        return Ok(out);
    }
    let Some(image) = image else {
        return Err(wrong(BBOX, "an image, whose size converts pixels to fractions"));
    };
    let size = |name| match columns().find(|(column, _)| *column == name) {
        Some((_, values)) => annotated_side(name, values),
        None => Ok(None),
    };
    let pixels = match in_pixels {
        true => Map::of_annotated(image, size(WIDTH)?.zip(size(HEIGHT)?), options.annotated)?,
        // Records with fractions refer to the coded image (format-spec.md).
        false => Map::of_coded(image),
    };
    let fractions = pixels.of_fractions();
    let in_fractions = options.box_unit == Some(BoxUnit::Fraction);
    let coordinates = if in_pixels && !in_fractions { &pixels } else { &fractions };
    for (at, (name, value)) in columns().enumerate() {
        let converted = match (name, value) {
            (BBOX, Values::Pixels(numbers)) => {
                check_unit(name, numbers, options)?;
                check_boxes(numbers, coordinates.size())?;
                Some(Values::Floats(coordinates.boxes(numbers)))
            }
            (_, Values::Pixels(numbers)) => {
                let labelled = numbers.chunks_exact(3).filter(|point| **point != [0.0; 3]);
                let positions: Vec<_> = labelled.flat_map(|point| [point[0], point[1]]).collect();
                check_unit(name, &positions, options)?;
                Some(Values::Floats(coordinates.points(numbers)))
            }
            (BBOX, Values::Fractions(numbers)) => {
                check_boxes(numbers, fractions.size())?;
                Some(Values::Floats(fractions.boxes(numbers)))
            }
            (_, Values::Fractions(numbers)) => Some(Values::Floats(fractions.points(numbers))),
            (_, Values::FractionPolygons(texts)) => {
                let converted = fractions.polygons(&texts.iter().map(|text| &**text).collect::<Vec<_>>())?;
                Some(Values::BytesList(converted.unwrap_or_else(|| texts.clone())))
            }
            (BBOX, Values::Floats(numbers)) if turned && numbers.len() % 4 == 0 => {
                Some(Values::Floats(coordinates.boxes(numbers)))
            }
            (KEYPOINTS, Values::Floats(numbers)) if turned && numbers.len() % 3 == 0 => {
                Some(Values::Floats(coordinates.points(numbers)))
            }
            (SEGMENTATION, Values::Bytes(_) | Values::BytesList(_)) => {
                let texts = value.byte_strings();
                if in_fractions && Map::polygons_are_fractions(&texts) {
                    return Err(wrong(name, "polygons in pixels: all coordinates are at most 1"));
                }
                pixels.polygons(&texts)?.map(Values::BytesList)
            }
            (AREA, Values::Float(area)) => pixels.areas(&[*area]).map(Values::Floats),
            (AREA, Values::Floats(areas)) => pixels.areas(areas).map(Values::Floats),
            (AREA, Values::Int64(area)) => pixels.whole_areas(&[*area]).map(Values::Int64s),
            (AREA, Values::Int64s(areas)) => pixels.whole_areas(areas).map(Values::Int64s),
            _ => None,
        };
        if let Some(converted) = converted {
            out.to_mut()[at] = converted;
        }
    }
    Ok(out)
}

/// Returns a side of the annotated image in pixels, also of a text or a whole float; `None` if it is missing or 0, as tools write
/// that do not know it.
///
/// # Errors
/// [`Reason::Objects`] for another value.
fn annotated_side(column: &str, values: &Values) -> Result<Option<u32>, Reason> {
    if matches!(values, Values::Missing) {
        return Ok(None);
    }
    let number = match values {
        Values::Bytes(text) if text.trim_ascii().is_empty() => return Ok(None),
        Values::Bytes(text) => str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok()),
        values => match values.numbers().as_deref() {
            Some([number]) => Some(number.to_f64()),
            _ => None,
        },
    };
    match number {
        Some(0.0) => Ok(None),
        Some(side) if side > 0.0 && side.fract() == 0.0 && side <= f64::from(u32::MAX) => Ok(Some(side as u32)),
        _ => Err(wrong(column, "a whole number of pixels, the size of the annotated image")),
    }
}

fn is_fraction(column: &str) -> bool {
    [BBOX, KEYPOINTS].contains(&column)
}

fn is_in_pixels(column: &str) -> bool {
    [SEGMENTATION, AREA].contains(&column)
}

/// The error of a column that has other values than expected.
fn wrong(column: &str, expected: &'static str) -> Reason {
    Reason::Objects { member: column.to_owned(), expected }
}

/// Refuses coordinates in another unit than the options say, or that are fractions if these do not say.
fn check_unit(column: &str, numbers: &[f32], options: &Options) -> Result<(), Reason> {
    let found = match options.box_unit {
        None if !numbers.is_empty() && numbers.iter().all(|number| (0.0..=1.0).contains(number)) => {
            "all coordinates are at most 1, as fractions are"
        }
        Some(BoxUnit::Fraction) if numbers.iter().any(|number| *number > LARGEST_FRACTION) => {
            "coordinates are above 2, as pixels are"
        }
        _ => return Ok(()),
    };
    Err(Reason::Unit { column: column.to_owned(), found })
}

/// Refuses boxes that are inverted, empty, not finite, or outside of an image of a width and height.
fn check_boxes(numbers: &[f32], (width, height): (f64, f64)) -> Result<(), Reason> {
    for (number, corners) in numbers.chunks_exact(4).enumerate() {
        let [left, top, right, bottom] = [corners[0], corners[1], corners[2], corners[3]];
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
