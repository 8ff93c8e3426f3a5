//! Checks the images that a sample has next to its own, such as masks.

use crate::sample::{SampleSchema, Values};
use crate::{Options, Reason};
use shardtool_decode as decode;

/// Checks that features that are named for masks hold masks of the image, whose size as coded is given. No memory is held for the
/// image yet.
///
/// # Errors
/// [`Reason::Mask`].
pub(super) fn check_masks(
    schema: &SampleSchema,
    values: &[Values],
    size: (u32, u32),
    options: &Options,
) -> Result<(), Reason> {
    for ((column, _), values) in schema.columns.iter().zip(values) {
        let Some(dtype) = decode::mask_dtype(column) else { continue };
        let check = |bytes: &&[u8]| decode::check_mask(bytes, dtype, size, &options.limits);
        let checked = values.byte_strings().iter().try_for_each(check);
        checked.map_err(|source| Reason::Mask { column: column.clone(), source })?;
    }
    Ok(())
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
