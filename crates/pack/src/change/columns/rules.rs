//! Which features a column may take the place of.

use super::rows::{ColumnRows, ColumnValues};
use super::{ColumnChange, ColumnOptions, wrong_rows};
use crate::error::ShardError;
use crate::source::coordinates::as_stored;
use crate::source::objects;
use crate::{Error, Value};
use shardtool_format::manifest::{Manifest, SEQUENCE_EXAMPLE};
use shardtool_format::names;
use shardtool_read::Dataset;
use std::collections::HashSet;

/// Features that say what the stored bytes are.
const FIXED: [&str; 8] = [
    names::IMAGE_ENCODED,
    names::IMAGE_FORMAT,
    names::IMAGE_HEIGHT,
    names::IMAGE_WIDTH,
    names::IMAGE_CHANNELS,
    names::IMAGE_ORIENTATION,
    names::IMAGE_FILENAME,
    names::IMAGE_KEY,
];
/// Ends of the names of features that describe another one.
const MEMBERS: [&str; 7] = ["/shape", "/lengths", "/chunk", "/dtype", "/codec", "/format", "/fps"];
/// The beginning of the names of features that have values for each object.
const OBJECT: &str = "image/object/";

fn wrong(column: &str, problem: impl Into<String>) -> Error {
    Error::Shard(ShardError::Column { column: column.to_owned(), problem: problem.into() })
}

/// Checks that columns can be added to a dataset, or can replace those that it has.
///
/// # Errors
/// [`ShardError::Column`], [`ShardError::ColumnRows`].
pub(super) fn check(dataset: &Dataset, rows: &ColumnRows, options: &ColumnOptions) -> Result<(), Error> {
    let manifest = dataset.manifest();
    if rows.columns.is_empty() {
        return Err(wrong_rows(rows, "it has no columns besides the keys".to_owned()));
    }
    let mut given = HashSet::new();
    for column in &rows.columns {
        let name = column.name.as_str();
        if !given.insert(name) {
            return Err(wrong(name, "given twice"));
        }
        check_name(manifest, name)?;
        check_rows(rows, column)?;
        match (options.kind, manifest.dtype(name)) {
            (ColumnChange::Add, Some(_)) => {
                return Err(wrong(name, "the dataset has it; `column replace` gives its records other values"));
            }
            (ColumnChange::Replace, None) => {
                return Err(wrong(name, "the dataset has no such feature; `column add` adds one"));
            }
            (ColumnChange::Replace, Some(there)) if there != column.dtype => {
                let (there, here) = (there.name(), column.dtype.name());
                let problem = format!("{there} in the dataset and {here} in {}", rows.source.display());
                return Err(wrong(
                    name,
                    format!("{problem}; convert the values, or declare the type (--column {name}:{there})"),
                ));
            }
            _ => {}
        }
        let stored = manifest.stored_features().iter().find(|stored| stored.name == name);
        if let Some(stored) = stored.filter(|stored| stored.dtype != column.dtype) {
            let problem = format!(
                "the shards have a feature of this name, of type {}; choose another name, or run `compact` first",
                stored.dtype.name()
            );
            return Err(wrong(name, problem));
        }
        let dropped = manifest.dropped_features().iter().any(|dropped| dropped == name);
        if dropped && !options.splits.is_empty() && options.splits.len() < manifest.splits.len() {
            return Err(wrong(name, "it was dropped, and comes back for all splits at once: leave --split out"));
        }
    }
    whole_groups(manifest, &given, "changed")?;
    rows.columns.iter().try_for_each(|column| lists(rows, column, manifest))
}

/// Checks that lists of a row that belong together have lengths that fit: a value for each box, and `NAME/lengths` those of NAME.
fn lists(rows: &ColumnRows, column: &ColumnValues, manifest: &Manifest) -> Result<(), Error> {
    let count = |name: &str| {
        let column = rows.columns.iter().find(|column| column.name == name)?;
        Some(|row: usize| column.rows[row].as_ref().map_or(0, Value::count))
    };
    let name = column.name.as_str();
    if let Some(base) = name.strip_suffix("/lengths").and_then(count) {
        let sum = |row: &Option<Value>| match row {
            Some(Value::Int64(lengths)) => lengths.iter().try_fold(0i64, |sum, length| sum.checked_add(*length)),
            _ => Some(0),
        };
        if let Some(row) = (0..rows.len()).find(|row| sum(&column.rows[*row]) != Some(base(*row) as i64)) {
            return Err(wrong(name, format!("row {}: the lengths are not those of its {} values", row + 1, base(row))));
        }
    }
    let Some(member) = name.strip_prefix(OBJECT).filter(|_| !MEMBERS.iter().any(|end| name.ends_with(end))) else {
        return Ok(());
    };
    let (boxes, width) = match (count(objects::BBOX), count(objects::TENSORFLOW[0])) {
        (Some(boxes), _) => (boxes, 4),
        (None, Some(boxes)) => (boxes, 1),
        _ => return Ok(()),
    };
    let fits = |values: usize, boxes: usize| match member {
        "bbox" => values.is_multiple_of(4),
        "keypoints" => match manifest.keypoints.as_ref().map(|described| 3 * described.count()) {
            Some(numbers) => values == numbers * boxes,
            None => values.is_multiple_of(boxes),
        },
        _ => values == boxes,
    };
    let own = |row: usize| column.rows[row].as_ref().map_or(0, Value::count);
    if let Some(row) = (0..rows.len()).find(|row| !fits(own(*row), boxes(*row) / width)) {
        let problem = format!("row {}: {} values for {} boxes", row + 1, own(row), boxes(row) / width);
        return Err(wrong(name, problem));
    }
    let wrong_box = |value: &Option<Value>| match value {
        Some(Value::Float(numbers)) if name == objects::BBOX => as_stored::check_numbers(numbers).err(),
        _ => None,
    };
    if let Some((row, reason)) = column.rows.iter().enumerate().find_map(|(row, value)| Some((row, wrong_box(value)?)))
    {
        return Err(wrong(name, format!("row {}: {reason}", row + 1)));
    }
    let known = |id: &i64| usize::try_from(*id).is_ok_and(|id| id < manifest.classes.len());
    let unknown = |row: &Option<Value>| match row {
        Some(Value::Int64(ids)) if name == objects::CLASS && !manifest.classes.is_empty() => {
            ids.iter().find(|id| !known(id)).copied()
        }
        _ => None,
    };
    match column.rows.iter().enumerate().find_map(|(row, value)| Some((row, unknown(value)?))) {
        Some((row, id)) => Err(wrong(
            name,
            format!("row {}: class id {id}, and the dataset has {} classes", row + 1, manifest.classes.len()),
        )),
        None => Ok(()),
    }
}

/// Checks that features can be dropped.
///
/// # Errors
/// [`ShardError::Column`].
pub(super) fn check_drop(dataset: &Dataset, names: &[String]) -> Result<(), Error> {
    let manifest = dataset.manifest();
    let given: HashSet<_> = names.iter().map(String::as_str).collect();
    for name in names {
        check_name(manifest, name)?;
        if manifest.dtype(name).is_none() {
            return Err(wrong(name, "the dataset has no such feature"));
        }
    }
    whole_groups(manifest, &given, "dropped")
}

fn check_name(manifest: &Manifest, name: &str) -> Result<(), Error> {
    if manifest.is_opaque() {
        return Err(wrong(name, "the dataset's records are opaque: they have no features, and get none"));
    }
    if manifest.requires.iter().any(|required| required == SEQUENCE_EXAMPLE) {
        return Err(wrong(name, "the dataset's records are SequenceExamples, whose features cannot be changed"));
    }
    if FIXED.contains(&name) || manifest.image.as_deref() == Some(name) {
        return Err(wrong(
            name,
            "it describes the stored image, or is its key: no version changes it; pack the images again",
        ));
    }
    let is_array = |end: &str| manifest.dtype(&format!("{}{end}", array_of(name))).is_some();
    if ["/dtype", "/codec"].into_iter().any(|end| is_array(end) || name.ends_with(end)) {
        return Err(wrong(name, "it is an array, which no version changes: append the records again with --replace"));
    }
    match name {
        "" => Err(wrong(name, "an empty name")),
        _ if name.len() > 1000 => Err(wrong(name, "a name of more than 1,000 bytes")),
        _ => Ok(()),
    }
}

/// Returns the feature that this one describes, or this one.
fn array_of(name: &str) -> &str {
    MEMBERS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// Checks that a column has as many rows as the source, all of its type.
fn check_rows(rows: &ColumnRows, column: &ColumnValues) -> Result<(), Error> {
    if column.rows.len() != rows.len() {
        let problem = format!("{} values for {} rows", column.rows.len(), rows.len());
        return Err(wrong(&column.name, problem));
    }
    match column.rows.iter().flatten().position(|value| value.dtype() != Some(column.dtype)) {
        Some(_) => Err(wrong(&column.name, format!("a value that is not {}", column.dtype.name()))),
        None => Ok(()),
    }
}

/// Checks that features that belong together are changed together: those of one list of objects, a value and what describes it, a
/// label and the name of its class.
fn whole_groups(manifest: &Manifest, given: &HashSet<&str>, what: &str) -> Result<(), Error> {
    let label = manifest.label.as_deref();
    let group = |name: &str| -> String {
        let base = array_of(name);
        match name {
            _ if name.starts_with(OBJECT) => OBJECT.to_owned(),
            _ if Some(name) == label || name == names::CLASS_TEXT => names::CLASS_TEXT.to_owned(),
            _ => base.to_owned(),
        }
    };
    for name in given {
        let own = group(name);
        let others = manifest.features.iter().map(|feature| feature.name.as_str());
        let left: Vec<_> = others.filter(|other| !given.contains(other) && group(other) == own).collect();
        if !left.is_empty() {
            let problem = format!("it belongs to {}, and is only {what} together with it", left.join(", "));
            return Err(wrong(name, problem));
        }
    }
    Ok(())
}
