//! A list as a table of values with keys, without images or files: for columns of a dataset that exists.

use super::rows::{Row, rows};
use super::{KEY, LABEL, PATH};
use crate::Error;
use crate::error::ListError;
use crate::sample::Values;
use crate::source::infer::Inferred;
use crate::source::nested::Nesting;
use shardtool_format::BoxFormat;
use shardtool_format::manifest::DType;
use std::collections::BTreeMap;
use std::path::Path;

/// The rows of a list.
pub(crate) struct ListTable {
    /// The key of each row.
    pub(crate) keys: Vec<String>,
    /// Name, type and values of each column, in byte order of the names.
    pub(crate) columns: Vec<(String, DType, Vec<Values>)>,
    /// The class ids in the column `label`, if there is one.
    pub(crate) labels: Option<Vec<Option<i64>>>,
}

/// The types of a column: the one that the user declares, and the one that the dataset has.
pub(crate) type Types<'a> = dyn Fn(&str) -> (Option<DType>, Option<DType>) + 'a;

/// Reads a list. `key` is the column of keys; default: `key`, else `path`. Only `wanted` columns are taken, or all. Numbers take the dataset's type if it holds them.
///
/// # Errors
/// [`ListError`], [`Error::Io`].
pub(crate) fn list_table(
    file: &Path,
    key: Option<&str>,
    wanted: &[String],
    types: &Types<'_>,
    classes: &[String],
) -> Result<ListTable, Error> {
    // Rows with boxes are refused below, whatever their format.
    let mut nesting = Nesting::new(BoxFormat::Xywh);
    let column_error = |column: &str, problem| {
        Error::List(ListError::Column { path: file.to_owned(), column: column.to_owned(), problem })
    };
    let mut found = BTreeMap::<String, Inferred>::new();
    rows(file, &nesting, |row| {
        for (name, cell) in row.cells() {
            let inferred = found.entry(name.to_owned()).or_insert_with(|| {
                let text = matches!(name, PATH | KEY) || Some(name) == key;
                Inferred::new(types(name).0.or(text.then_some(DType::Bytes)))
            });
            row.observe(file, name, &cell, inferred)?;
        }
        if row.has_objects() {
            return Err(column_error(
                "objects",
                "its boxes are in pixels of images that a list of columns does not have; give `image/object/bbox` as fractions",
            ));
        }
        Ok(())
    })?;
    nesting.learn(found.keys());
    let key = match key {
        Some(key) => key,
        None if found.contains_key(KEY) => KEY,
        None => PATH,
    };
    if !found.contains_key(key) {
        return Err(column_error(
            key,
            "the list has no such column; name the one that holds the keys of the records (--key)",
        ));
    }
    let taken = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let is_value = |name: &str| {
        taken(name) && name != key && name != LABEL && !(name == PATH && key != PATH) && !nesting.is_replaced(name)
    };
    let mut table =
        ListTable { keys: vec![], columns: vec![], labels: (found.contains_key(LABEL) && taken(LABEL)).then(Vec::new) };
    for (name, inferred) in found.iter().filter(|(name, _)| is_value(name)) {
        // A column without any value has the dataset's type.
        let Some(dtype) = inferred.column_type(name).or(types(name).1) else {
            return Err(column_error(
                name,
                "it has no value, and so no type; declare it (--column NAME:TYPE), or leave it out (--name)",
            ));
        };
        table.columns.push((name.clone(), dtype, vec![]));
    }
    // In a column whose type the dataset has, all numbers must fit that.
    let theirs: Vec<_> = table.columns.iter().map(|(name, dtype, _)| of_dataset(types(name), *dtype)).collect();
    // In a column with text, all labels are names.
    let text = found.get(LABEL).and_then(|found| found.column_type(LABEL)).filter(|dtype| *dtype == DType::Bytes);
    let mut labels = Labels { file, classes, declared: types(LABEL).0.or(text), kind: None };
    rows(file, &nesting, |row| {
        let own = row.text(key).filter(|key| !key.is_empty());
        table.keys.push(own.ok_or_else(|| row.wrong_value(file, key, "no key"))?);
        if let Some(ids) = &mut table.labels {
            ids.push(labels.id(&row)?);
        }
        for ((name, dtype, values), theirs) in table.columns.iter_mut().zip(&theirs) {
            // As text has it, not as the inferred type does.
            let read = if *theirs == Some(DType::Float64) { DType::Float64 } else { *dtype };
            let cell = row.cell(name).map_or(Some(Values::Missing), |cell| cell.values(read));
            let fitted = match theirs {
                Some(theirs) => cell.and_then(|value| value.fit_exactly(*theirs)),
                None => cell,
            };
            values.push(fitted.ok_or_else(|| row.wrong_value(file, name, "not of the column's type in the dataset"))?);
        }
        Ok(())
    })?;
    for ((_, dtype, _), theirs) in table.columns.iter_mut().zip(theirs) {
        *dtype = theirs.unwrap_or(*dtype);
    }
    Ok(table)
}

/// Returns the type that numbers take in the dataset, if that is another one, and the user declares none.
fn of_dataset((declared, known): (Option<DType>, Option<DType>), inferred: DType) -> Option<DType> {
    let known = known.filter(|known| declared.is_none() && *known != inferred)?;
    (inferred != DType::Bytes && known != DType::Bytes).then_some(known)
}

/// What is wrong with a label that may be either.
pub(super) const NAME_OR_ID: &str = "the name of one class and the id of another: say which, with --column label:bytes for names or --column label:int64 for ids";

/// What is wrong with a label that can only be a name where others can only be ids, or the other way round.
const NAMES_AND_IDS: &str = "of another kind than the labels before it: numbers that are names of classes and numbers that are class ids; say which, with --column label:bytes for names or --column label:int64 for ids";

/// What the labels of a list mean.
struct Labels<'a> {
    file: &'a Path,
    classes: &'a [String],
    /// The type that says which they are: names, or ids.
    declared: Option<DType>,
    /// What those so far can only be.
    kind: Option<LabelKind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LabelKind {
    Name,
    Id,
}

impl Labels<'_> {
    /// Returns the class id of a row: of a name, or of an id, as is declared; without it of either, the same for all rows.
    ///
    /// # Errors
    /// [`ListError::NoClass`]; [`ListError::Value`] for a number that is the name of a class, and the id of another one, and for one
    /// that is another kind of label than those before.
    fn id(&mut self, row: &Row<'_>) -> Result<Option<i64>, Error> {
        let Some(cell) = row.cell(LABEL).filter(|cell| !cell.is_missing()) else { return Ok(None) };
        let text = row.text(LABEL).ok_or_else(|| row.wrong_value(self.file, LABEL, "a label is one value"))?;
        let named = self.classes.iter().position(|name| *name == text).map(|class| class as i64);
        let id = match cell.values(DType::Int64) {
            Some(Values::Int64(id @ 0..)) if self.classes.is_empty() || (id as usize) < self.classes.len() => Some(id),
            _ => None,
        };
        let (found, kind) = match (self.declared, named, id) {
            (Some(DType::Bytes), named, _) => (named, None),
            (Some(_), _, id) => (id, None),
            (None, Some(named), Some(id)) if named != id => {
                return Err(row.wrong_value(self.file, LABEL, NAME_OR_ID));
            }
            (None, Some(named), Some(_)) => (Some(named), None),
            (None, Some(named), None) => (Some(named), Some(LabelKind::Name)),
            (None, None, id) => (id, id.map(|_| LabelKind::Id)),
        };
        match (self.kind, kind) {
            (Some(before), Some(kind)) if before != kind => {
                return Err(row.wrong_value(self.file, LABEL, NAMES_AND_IDS));
            }
            _ => self.kind = self.kind.or(kind),
        }
        found.map(Some).ok_or_else(|| {
            let (path, classes) = (self.file.to_owned(), self.classes.to_vec());
            Error::List(ListError::NoClass { path, line: row.line, class: text, classes })
        })
    }
}
