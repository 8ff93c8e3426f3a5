//! What the keypoints of a source's objects are: as the source says, or the options, or the dataset that it is added to.

use super::{NamedSource, Source};
use crate::sample::{SampleSchema, Values};
use crate::source::annotated::wrong;
use crate::source::objects::{BBOX, KEYPOINTS};
use crate::{Error, Options, Reason};
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
    check_values(given)?;
    match has(columns) {
        true => Ok(()),
        false => Err(without_points()),
    }
}

fn without_points() -> Error {
    let expected = "samples with the feature image/object/keypoints; of a writer, the first one has it, or `features`";
    Error::Option { option: "keypoints", expected }
}

fn check_values(given: &Keypoints) -> Result<(), Error> {
    let expected =
        "different names, a `flip_index` of as many numbers that exchanges pairs, and pairs of different points";
    given.check().map_err(|_| Error::Option { option: "keypoints", expected })
}

/// Says what the keypoints of each split are, if it has some: what the source says, else the options, else the dataset that the splits
/// are added to.
///
/// # Errors
/// [`Error::Option`]; [`crate::SourceError::Annotations`] if source and options differ.
pub(super) fn take(splits: &mut [NamedSource], options: &Options, dataset: Option<&Manifest>) -> Result<(), Error> {
    if let Some(given) = &options.keypoints {
        check_values(given)?;
        // Samples with points may be among the rejected ones.
        let may_have = |split: &NamedSource| match &split.source {
            Source::Files(listing) => has(&listing.schema.columns) || !listing.rejected.is_empty(),
            Source::Archives(archives) => has(&archives.schema.columns),
        };
        if !splits.iter().any(may_have) {
            return Err(without_points());
        }
    }
    for NamedSource { source, left_out, .. } in splits {
        let schema = match source {
            Source::Files(listing) => &mut listing.schema,
            Source::Archives(archives) => &mut archives.schema,
        };
        if !has(&schema.columns) {
            continue;
        }
        let stated = schema.keypoints.known.take();
        let given = options.keypoints.as_ref();
        let known = match (stated, given) {
            (Some(stated), Some(given)) => Some(stated.joined(given).ok_or_else(|| {
                let problem = "it says what the keypoints are, and the option `keypoints` something else; leave it out";
                wrong(&options.source, problem)
            })?),
            (stated, given) => stated.or(given.cloned()),
        };
        let there = dataset.and_then(|dataset| dataset.keypoints.as_ref());
        if let (None, Some(_), Some(left_out)) = (&known, there, &schema.keypoints.left_out) {
            let problem = format!(
                "the dataset says what its keypoints are, and the source something that a dataset cannot keep: {left_out}; say which \
                 points they are (`keypoints`)"
            );
            return Err(wrong(&options.source, problem));
        }
        schema.keypoints.known = match (&known, there) {
            // Of points that contradict the dataset, the difference is found later.
            (Some(here), Some(there)) => here.joined(there).or(known),
            (None, there) => there.cloned(),
            (Some(_), None) if given.is_none() && dataset.is_some_and(|dataset| dataset.dtype(KEYPOINTS).is_some()) => {
                left_out.push("what the keypoints are, since the dataset does not say it".to_owned());
                None
            }
            (Some(_), None) => known,
        };
    }
    Ok(())
}

/// Checks that the objects of a sample have as many points as are described.
///
/// # Errors
/// [`Reason::Points`].
pub(super) fn check_count(schema: &SampleSchema, values: &[Values]) -> Result<(), Reason> {
    let Some(expected) = schema.keypoints.known.as_ref().map(Keypoints::count) else { return Ok(()) };
    let of = |wanted: &str| schema.columns.iter().zip(values).find(|((name, _), _)| name == wanted).map(|(_, v)| v);
    let count = |name| match of(name) {
        Some(Values::Pixels(numbers) | Values::Fractions(numbers) | Values::Floats(numbers)) => numbers.len(),
        _ => 0,
    };
    let numbers = count(KEYPOINTS);
    let objects = match of(&format!("{KEYPOINTS}/shape")) {
        Some(Values::Int64s(shape)) if shape.len() == 3 => match (shape[0], shape[1], shape[2]) {
            (0, ..) => return Ok(()),
            // A shape of a foreign record may be negative, or too large.
            (objects, points, 3) if points == expected as i64 => usize::try_from(objects).unwrap_or(usize::MAX),
            (_, found, _) => return Err(Reason::Points { found, expected }),
        },
        // Without a shape, each box has as many.
        _ if of(BBOX).is_some() => count(BBOX) / 4,
        _ => numbers / (3 * expected),
    };
    match numbers == (3 * expected).saturating_mul(objects) {
        true => Ok(()),
        false if objects > 0 && numbers.is_multiple_of(objects.saturating_mul(3)) => {
            Err(Reason::Points { found: (numbers / 3 / objects) as i64, expected })
        }
        false => {
            let expected = "x, y and visibility of each point that the dataset names, for each object";
            Err(Reason::Objects { member: "keypoints".to_owned(), expected })
        }
    }
}
