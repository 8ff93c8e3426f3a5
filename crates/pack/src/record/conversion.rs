//! Converts images of formats that are not stored (Netpbm, QOI, ICO, TGA) to PNG, before anything else looks at them. All sources
//! make their records here, so this is the only place.

use crate::sample::{SampleSchema, Values};
use crate::{Options, Reason};
use shardtool_decode::{self as decode, ConvertedFormat, DecodeBudget, Error, Limits};
use std::borrow::Cow;

/// Returns the picture of an image as PNG, if its format is not stored. `name` is the name of its file or its key.
///
/// # Errors
/// [`Reason::Image`] if it cannot be converted, or exceeds the limits.
pub(super) fn image<'a>(file: &'a [u8], name: &str, limits: &Limits) -> Result<Option<Cow<'a, [u8]>>, Reason> {
    converted(file, name, |format| format.to_png(file, limits))
}

fn converted<'a>(
    file: &'a [u8],
    name: &str,
    to_png: impl FnOnce(ConvertedFormat) -> Result<Cow<'a, [u8]>, Error>,
) -> Result<Option<Cow<'a, [u8]>>, Reason> {
    let Some(format) = ConvertedFormat::detect(file, Some(name)) else { return Ok(None) };
    // Released on return: a thread that kept it while waiting for other memory could deadlock with another one.
    let _admitted = DecodeBudget::of_process().admit_conversion(format, file)?;
    Ok(Some(to_png(format)?))
}

/// As [`image`], of a mask, or of another file of a sample if its extension is one of these formats. The numbers stay the same, because
/// they may be labels or depths.
///
/// # Errors
/// As [`image`].
pub(super) fn attached<'a>(
    file: &'a [u8],
    column: &str,
    name: &str,
    limits: &Limits,
) -> Result<Option<Cow<'a, [u8]>>, Reason> {
    let extension = name.rsplit('.').next().unwrap_or_default();
    let is_known = || ConvertedFormat::EXTENSIONS.iter().any(|(known, _)| extension.eq_ignore_ascii_case(known));
    if decode::mask_dtype(column).is_none() && !is_known() {
        return Ok(None);
    }
    converted(file, name, |format| format.to_png_unscaled(file, limits))
}

/// Converts the masks among a sample's values, and those whose feature has the name of a file in these formats, as members of
/// tars have. Returns also whether any was.
///
/// # Errors
/// [`Reason::File`] with the reason of [`image`].
pub(super) fn values<'a>(
    schema: &SampleSchema,
    values: &'a [Values],
    options: &Options,
) -> Result<(Cow<'a, [Values]>, bool), Reason> {
    let mut all = Cow::Borrowed(values);
    for (at, (column, _)) in schema.columns.iter().enumerate() {
        let converted = |bytes: &[u8]| match attached(bytes, column, column, &options.limits) {
            Ok(png) => Ok(png.map(|png| png.into_owned().into_boxed_slice())),
            Err(reason) => Err(Reason::File { column: column.clone(), reason: Box::new(reason) }),
        };
        match &values[at] {
            Values::Bytes(bytes) => {
                if let Some(png) = converted(bytes)? {
                    all.to_mut()[at] = Values::Bytes(png);
                }
            }
            Values::BytesList(list) => {
                let pngs: Vec<_> = list.iter().map(|bytes| converted(bytes)).collect::<Result<_, _>>()?;
                if pngs.iter().any(Option::is_some) {
                    let files =
                        pngs.into_iter().zip(list.iter()).map(|(png, file)| png.unwrap_or_else(|| file.clone()));
                    all.to_mut()[at] = Values::BytesList(files.collect());
                }
            }
            _ => {}
        }
    }
    let is_converted = matches!(all, Cow::Owned(_));
    Ok((all, is_converted))
}
