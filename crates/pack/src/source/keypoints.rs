//! What the keypoints of a source's objects are: as the source says, or the options, or the dataset that it is added to.

use super::{NamedSource, Source};
use crate::sample::{SampleSchema, Values};
use crate::source::annotated::wrong;
use crate::source::objects::{BBOX, KEYPOINTS};
use crate::{Error, Options, Reason};
use shardtool_format::Chain;
use shardtool_format::manifest::{DType, Keypoints, Manifest};

/// Returns whether samples with these columns have keypoints.
pub(super) fn has(columns: &[(String, DType)]) -> bool {
    columns.iter().any(|(name, _)| name == KEYPOINTS)
}

/// Checks the option `keypoints` of samples with these columns.
///
/// # Errors
/// [`Error::Option`].
pub(crate) fn check(given: Option<&Keypoints>, columns: &[(String, DType)]) -> Result<(), Error> {
    let Some(given) = given else { return Ok(()) };
    if given.check().is_err() {
        let expected =
            "different names, a `flip_index` of as many numbers that exchanges pairs, and pairs of different points";
        return Err(Error::Option { option: "keypoints", expected });
    }
    match has(columns) {
        true => Ok(()),
        false => {
            Err(Error::Option { option: "keypoints", expected: "samples with the feature image/object/keypoints" })
        }
    }
}

/// Says what the keypoints of each split are, if it has some: what the source says, else the options, else the dataset that the splits
/// are added to.
///
/// # Errors
/// [`Error::Option`]; [`crate::SourceError::Annotations`] if source and options differ.
pub(super) fn take(splits: &mut [NamedSource], options: &Options, dataset: Option<&Manifest>) -> Result<(), Error> {
    let schemas = splits.iter_mut().map(|split| match &mut split.source {
        Source::Files(listing) => &mut listing.schema,
        Source::Archives(archives) => &mut archives.schema,
    });
    for schema in schemas {
        check(options.keypoints.as_ref(), &schema.columns)?;
        if !has(&schema.columns) {
            continue;
        }
        match (&schema.keypoints, &options.keypoints) {
            (Some(stated), Some(given)) if stated != given => {
                let problem = "it says what the keypoints are, and the option `keypoints` something else; leave it out";
                return Err(wrong(&options.source, problem));
            }
            (Some(_), _) => {}
            (None, given) => {
                let known = || dataset.and_then(|dataset| dataset.keypoints.clone());
                schema.keypoints = given.clone().or_else(known);
            }
        }
    }
    Ok(())
}

/// Checks that the objects of a sample have as many points as are described.
///
/// # Errors
/// [`Reason::Points`].
pub(super) fn check_count(schema: &SampleSchema, values: &[Values]) -> Result<(), Reason> {
    let Some(expected) = schema.keypoints.as_ref().map(Keypoints::count) else { return Ok(()) };
    let of = |wanted: &str| schema.columns.iter().zip(values).find(|((name, _), _)| name == wanted).map(|(_, v)| v);
    let count = |name| match of(name) {
        Some(Values::Pixels(numbers) | Values::Fractions(numbers) | Values::Floats(numbers)) => numbers.len(),
        _ => 0,
    };
    let found = match of(&format!("{KEYPOINTS}/shape")) {
        Some(Values::Int64s(shape)) if shape.len() == 3 => match shape[0] {
            0 => return Ok(()),
            _ => shape[1],
        },
        // Without a shape, each box has as many.
        _ => match (count(KEYPOINTS) / 3, count(BBOX) / 4) {
            (0, _) | (_, 0) => return Ok(()),
            (points, objects) => (points / objects) as i64,
        },
    };
    match found == expected as i64 {
        true => Ok(()),
        false => Err(Reason::Points { found, expected }),
    }
}

/// Returns the keypoints that several categories or classes describe, or why they are left out, for people: they differ, or are not as
/// the manifest has them.
///
/// # Errors
/// The reason.
pub(super) fn common(all: impl IntoIterator<Item = Keypoints>) -> Result<Option<Keypoints>, String> {
    let mut all = all.into_iter();
    let Some(first) = all.next() else { return Ok(None) };
    if all.any(|other| other != first) {
        return Err("which are not the same of all classes, and the manifest has one list".to_owned());
    }
    first.check().map_err(|problem| Chain(&problem).to_string())?;
    Ok(Some(first))
}
