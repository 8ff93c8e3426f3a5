//! Checks boxes that a source or program gives in the form of records, as the feature `image/object/bbox`: fractions of left, top, right and
//! bottom.

use super::{check_boxes, wrong};
use crate::sample::{SampleSchema, Values};
use crate::source::objects::{AREA, BBOX, CLASS, CLASS_NAME};
use crate::{Options, Reason};
use shardtool_format::{BoxFormat, BoxUnit, LARGEST_FRACTION};

/// Features with a value for each box.
const OF_EACH: [&str; 6] =
    [CLASS, CLASS_NAME, "image/object/score", AREA, "image/object/iscrowd", "image/object/segmentation"];

/// What the feature holds.
const FORM: &str = "left, top, right and bottom as fractions of the image, the form of records; give boxes of another form as `objects`, \
    with a member `bbox`";

/// Checks a sample.
///
/// # Errors
/// [`Reason::Objects`] for another number of values than boxes, and if the options say that boxes have another form; those of
/// [`check_numbers`].
pub(super) fn check(schema: &SampleSchema, values: &[Values], options: &Options) -> Result<(), Reason> {
    let columns = || schema.columns.iter().zip(values).map(|((name, _), values)| (name.as_str(), values));
    let Some((_, boxes)) = columns().find(|(name, _)| *name == BBOX) else { return Ok(()) };
    let boxes = match boxes {
        Values::Float(_) => return Err(wrong(BBOX, "four numbers for each object")),
        Values::Floats(numbers) => {
            check_form(numbers, options)?;
            numbers.len() / 4
        }
        Values::Pixels(numbers) | Values::Fractions(numbers) => numbers.len() / 4,
        _ => return Ok(()),
    };
    let other =
        columns().find(|(name, values)| OF_EACH.contains(name) && count(values).is_some_and(|values| values != boxes));
    other.map_or(Ok(()), |(name, _)| Err(wrong(name, "a value for each box")))
}

fn check_form(numbers: &[f32], options: &Options) -> Result<(), Reason> {
    let other_form = options.boxes != BoxFormat::Xywh || options.box_unit == Some(BoxUnit::Pixel);
    if other_form && !numbers.is_empty() {
        return Err(wrong(BBOX, FORM));
    }
    check_numbers(numbers)
}

/// Checks boxes in the form of records.
///
/// # Errors
/// [`Reason::Objects`] for pixels, and for a length that is not a multiple of four; [`Reason::BoxOutside`].
pub(crate) fn check_numbers(numbers: &[f32]) -> Result<(), Reason> {
    if !numbers.len().is_multiple_of(4) {
        return Err(wrong(BBOX, "four numbers for each object"));
    }
    if numbers.iter().any(|number| number.abs() > LARGEST_FRACTION) {
        return Err(wrong(BBOX, FORM));
    }
    check_boxes(numbers, (1.0, 1.0))
}

/// Returns the number of values; `None` where it is not known yet.
fn count(values: &Values) -> Option<usize> {
    Some(match values {
        Values::Int64(_) | Values::Float(_) | Values::Bytes(_) => 1,
        Values::Int64s(list) => list.len(),
        Values::Floats(list) => list.len(),
        Values::BytesList(list) => list.len(),
        Values::Numbers(list) => list.len(),
        Values::Logical(_, list) => list.len(),
        _ => return None,
    })
}
