//! Checks the images that a sample has next to its own, such as masks.

use crate::sample::{SampleSchema, Values};
use crate::source::{OBJECT_ID, PANOPTIC};
use crate::{Annotated, Options, Reason};
use shardtool_decode::{self as decode, LabelMap};
use std::collections::BTreeSet;

/// Checks that features that are named for masks hold masks of the image, whose size as coded is given, and that they show it as it is
/// coded. No memory is held for the image yet.
///
/// # Errors
/// [`Reason::Mask`], [`Reason::MaskFrame`], [`Reason::Segments`].
pub(super) fn check_masks(
    schema: &SampleSchema,
    values: &[Values],
    (size, orientation): ((u32, u32), u32),
    options: &Options,
) -> Result<(), Reason> {
    // Orientations from 5 exchange width and height, so that the size of a mask decides.
    let same_size = matches!(orientation, 2..=4) || (orientation > 4 && size.0 == size.1);
    let doubtful = match options.annotated {
        None => same_size,
        Some(Annotated::Coded) => false,
        Some(Annotated::Upright) => orientation > 1,
    };
    let all = values;
    for ((column, _), values) in schema.columns.iter().zip(values) {
        // The chunks of an array are no images.
        let Some(dtype) = decode::mask_dtype(column).filter(|_| !schema.is_array_member(column)) else { continue };
        for bytes in values.byte_strings() {
            let checked = decode::check_mask(bytes, dtype, size, &options.limits);
            let labels = checked.map_err(|source| Reason::Mask { column: column.clone(), source })?;
            if column == PANOPTIC {
                check_segments(schema, all, &labels)?;
            }
        }
        if doubtful && !values.byte_strings().is_empty() {
            return Err(Reason::MaskFrame { column: column.clone(), orientation });
        }
    }
    Ok(())
}

/// Checks that a panoptic map has the ids of the segments of its image, and no other but 0.
fn check_segments(schema: &SampleSchema, values: &[Values], labels: &LabelMap) -> Result<(), Reason> {
    let known = schema.columns.iter().zip(values).find(|((name, _), _)| name == OBJECT_ID);
    let Some((_, Values::Int64s(known))) = known else { return Ok(()) };
    let mut last = 0;
    let mut found = BTreeSet::new();
    for id in labels.values().as_chunks().0.iter().map(|id| i64::from(i32::from_le_bytes(*id))) {
        if id != last && id != 0 {
            found.insert(id);
        }
        last = id;
    }
    let segments: BTreeSet<i64> = known.iter().copied().collect();
    match (found.difference(&segments).next(), segments.difference(&found).next()) {
        (None, None) => Ok(()),
        (Some(id), _) => {
            Err(Reason::Segments { id: *id, problem: "has pixels, but is not among the segments of the image" })
        }
        (_, Some(id)) => Err(Reason::Segments { id: *id, problem: "is a segment of the image, but no pixel has it" }),
    }
}

/// Refuses other images of a sample whose own image, of this width and height as coded, is resized or turned: they stay as they
/// are. Likewise arrays with an element for each pixel.
///
/// # Errors
/// [`Reason::OldSize`].
pub(super) fn refuse_any(
    schema: &SampleSchema,
    values: &[Values],
    (width, height): (u32, u32),
    options: &Options,
) -> Result<(), Reason> {
    let is_image = |bytes: &&[u8]| decode::probe(bytes, &options.limits).is_ok();
    let images = schema.columns.iter().zip(values).find(|(_, values)| values.byte_strings().iter().any(is_image));
    let pixels = [i64::from(height), i64::from(width)];
    let mut arrays = schema.columns.iter().zip(values).filter_map(|((name, _), values)| {
        let Values::Int64s(shape) = values else { return None };
        name.strip_suffix("/shape").filter(|_| shape.windows(2).any(|sides| sides == pixels))
    });
    match images.map(|((column, _), _)| &**column).or_else(|| arrays.next()) {
        Some(column) => Err(Reason::OldSize { column: column.to_owned() }),
        None => Ok(()),
    }
}
