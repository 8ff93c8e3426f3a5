//! Labels of the rows of a source: class ids, and the names that belong to them.

use super::rows::{ColumnRows, ColumnValues};
use crate::error::ShardError;
use crate::{Error, Value};
use shardtool_format::manifest::{DType, Manifest};
use shardtool_format::names;
use std::borrow::Cow;

/// Name of the column of a source that holds class ids or names.
const LABEL: &str = "label";

fn wrong(column: &str, problem: impl Into<String>) -> Error {
    Error::Shard(ShardError::Column { column: column.to_owned(), problem: problem.into() })
}

/// Returns the rows with the columns of a dataset's labels: a column `label` has class ids or names; ids in the feature of labels
/// get the names of their classes.
///
/// # Errors
/// [`ShardError::Column`] for a class that the dataset does not have.
pub(super) fn with_class_names<'r>(rows: &'r ColumnRows, manifest: &Manifest) -> Result<Cow<'r, ColumnRows>, Error> {
    let given = |name: &str| rows.columns.iter().position(|column| column.name == name);
    let (label, text) = (given(feature(manifest)), given(names::CLASS_TEXT));
    let (at, offset) = match (given(LABEL), label) {
        (Some(_), Some(_)) if feature(manifest) != LABEL => return Err(wrong(LABEL, "given twice, by two names")),
        (_, Some(at)) => (at, manifest.label_offset),
        (Some(_), None) if text.is_some() => {
            return Err(wrong(LABEL, "given with names of classes: leave one of them out"));
        }
        (Some(at), None) if manifest.dtype(LABEL).is_none() => (at, 0),
        _ => return Ok(Cow::Borrowed(rows)),
    };
    let column = &rows.columns[at];
    let id = |row: &Option<Value>| row.as_ref().map(|value| class(column, value, offset, manifest)).transpose();
    one_kind(column, manifest)?;
    let labels = of_labels(column.rows.iter().map(id).collect::<Result<_, _>>()?, manifest);
    if let Some(text) = text.map(|text| &rows.columns[text]) {
        let names = labels.iter().find(|column| column.name == text.name && !manifest.classes.is_empty());
        let differs = names.and_then(|names| names.rows.iter().zip(&text.rows).position(|(name, found)| name != found));
        return match differs {
            Some(row) => Err(wrong(&text.name, format!("row {} is not the name of its {}", row + 1, column.name))),
            None => Ok(Cow::Borrowed(rows)),
        };
    }
    let mut rows = rows.clone();
    rows.columns.remove(at);
    rows.columns.extend(labels);
    Ok(Cow::Owned(rows))
}

/// Refuses a column that holds ids and names: of classes that are called by numbers, either may be meant.
///
/// # Errors
/// [`ShardError::Column`].
fn one_kind(column: &ColumnValues, manifest: &Manifest) -> Result<(), Error> {
    let first = |is: fn(&Value) -> bool| column.rows.iter().position(|value| value.as_ref().is_some_and(is));
    let (id, name) = (first(|value| matches!(value, Value::Int64(_))), first(|value| matches!(value, Value::Bytes(_))));
    match (id, name) {
        (Some(id), Some(name)) if !manifest.classes.is_empty() => Err(wrong(
            &column.name,
            format!(
                "row {} has a class id and row {} the name of a class; give all rows names, or all ids",
                id + 1,
                name + 1
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns the feature that holds labels, or is to hold them.
fn feature(manifest: &Manifest) -> &str {
    manifest.label.as_deref().unwrap_or(names::CLASS_LABEL)
}

/// Returns the class id of a row.
fn class(column: &ColumnValues, value: &Value, offset: i64, manifest: &Manifest) -> Result<i64, Error> {
    let classes = &manifest.classes;
    let unknown = |class: &str| {
        let listed = if classes.is_empty() {
            "no names of classes".to_owned()
        } else if classes.len() <= 20 {
            classes.join(", ")
        } else {
            format!("{} others", classes.len())
        };
        wrong(&column.name, format!("the dataset has no class `{class}`; it has {listed}"))
    };
    match value {
        Value::Int64(ids) if ids.len() == 1 => match ids[0].checked_sub(offset) {
            Some(id @ 0..) if classes.is_empty() || (id as usize) < classes.len() => Ok(id),
            _ => Err(unknown(&ids[0].to_string())),
        },
        Value::Bytes(texts) if texts.len() == 1 => {
            let named = classes.iter().position(|class| class.as_bytes() == texts[0]);
            named.map(|id| id as i64).ok_or_else(|| unknown(&String::from_utf8_lossy(&texts[0])))
        }
        _ => Err(wrong(&column.name, "a label is one class id, or one name of a class")),
    }
}

/// Returns the columns of class ids: the label, and the name of the class if records have it, or are to have it.
pub(super) fn of_labels(labels: Vec<Option<i64>>, manifest: &Manifest) -> Vec<ColumnValues> {
    let ids = labels.iter().map(|id| id.map(|id| Value::Int64(vec![id + manifest.label_offset]))).collect();
    let mut columns = vec![ColumnValues { name: feature(manifest).to_owned(), dtype: DType::Int64, rows: ids }];
    let is_new = manifest.label.is_none() && !manifest.classes.is_empty();
    if is_new || manifest.dtype(names::CLASS_TEXT).is_some() {
        let text = |id: &Option<i64>| {
            let class = manifest.classes.get(usize::try_from((*id)?).ok()?)?;
            Some(Value::Bytes(vec![class.as_bytes().to_vec()]))
        };
        let rows = labels.iter().map(text).collect();
        columns.push(ColumnValues { name: names::CLASS_TEXT.to_owned(), dtype: DType::Bytes, rows });
    }
    columns
}
