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
    let named = schema.columns.iter().zip(values).filter(|((name, _), _)| decode::is_mask_name(name));
    for ((column, _), values) in named {
        let check = |bytes: &&[u8]| decode::check_mask(bytes, size, &options.limits);
        let checked = values.byte_strings().iter().try_for_each(check);
        checked.map_err(|source| Reason::Mask { column: column.clone(), source })?;
    }
    Ok(())
}

/// Refuses other images of a sample whose own image is resized or turned: they stay as they are.
///
/// # Errors
/// [`Reason::OldSize`].
pub(super) fn refuse_any(schema: &SampleSchema, values: &[Values], options: &Options) -> Result<(), Reason> {
    let is_image = |bytes: &&[u8]| decode::probe(bytes, &options.limits).is_ok();
    let images = schema.columns.iter().zip(values).find(|(_, values)| values.byte_strings().iter().any(is_image));
    images.map_or(Ok(()), |((column, _), _)| Err(Reason::OldSize { column: column.clone() }))
}
