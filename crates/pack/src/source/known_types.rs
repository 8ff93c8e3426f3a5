//! The types of a dataset's features, which splits and records that are added later take: numbers that they do not hold exactly
//! reject their samples.

use super::{NamedSource, Source, keypoints};
use crate::place::parse_manifest;
use crate::{Error, Options, Reason, Rejection};
use shardtool_format::manifest::{DType, Split};

/// Returns the float64 features of the dataset that a split or records are added to.
///
/// # Errors
/// As [`take`].
pub(crate) fn wide(options: &Options) -> Result<Vec<String>, Error> {
    let manifest = if options.force { None } else { parse_manifest(&options.destination)? };
    let features = manifest.into_iter().flat_map(|manifest| manifest.features);
    Ok(features.filter(|feature| feature.dtype == DType::Float64).map(|feature| feature.name).collect())
}

/// Gives columns of numbers the types that the dataset's other splits have, unless the user gives types, and keypoints their names.
///
/// # Errors
/// [`Error::Io`], [`DestinationError::Manifest`], and those of [`keypoints::take`].
pub(crate) fn take(splits: &mut [NamedSource], options: &Options) -> Result<(), Error> {
    let replaced = |there: &Split| splits.iter().any(|here| here.split == there.name);
    let manifest =
        parse_manifest(&options.destination)?.filter(|there| options.grows || !there.splits.iter().all(replaced));
    keypoints::take(splits, options, manifest.as_ref())?;
    let Some(manifest) = manifest else { return Ok(()) };
    let given = |column: &str| options.columns.iter().any(|(name, _)| name == column);
    let known = |(column, inferred): &(String, DType)| {
        let known = manifest.dtype(column).filter(|known| known != inferred && !given(column))?;
        (*inferred != DType::Bytes && known != DType::Bytes).then_some(known)
    };
    for NamedSource { source, .. } in splits {
        match source {
            Source::Archives(archives) => archives.take_types(known),
            Source::Files(listing) => {
                for at in 0..listing.schema.columns.len() {
                    let Some(dtype) = known(&listing.schema.columns[at]) else { continue };
                    listing.schema.columns[at].1 = dtype;
                    let (column, mut kept) = (listing.schema.columns[at].0.clone(), vec![]);
                    for mut entry in std::mem::take(&mut listing.entries) {
                        match entry.values[at].clone().fit_exactly(dtype) {
                            Some(values) => {
                                entry.values[at] = values;
                                kept.push(entry);
                            }
                            None => {
                                let reason = Reason::Value { column: column.clone(), expected: dtype };
                                listing.rejected.push(Rejection::new(entry.key.to_string(), reason)?);
                            }
                        }
                    }
                    listing.entries = kept;
                }
            }
        }
    }
    Ok(())
}
