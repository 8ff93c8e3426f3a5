//! The rows of a CSV or JSONL file.

use super::quotes::Quotes;
use crate::Error;
use crate::error::{ListError, SourceError};
use crate::input::open_list;
use crate::sample::Conflict;
use crate::source::infer::{Cell, Inferred, Misfit};
use crate::source::json_text;
use crate::source::nested::Nesting;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// One row.
pub(super) struct Row<'a> {
    /// Its line in the file, from 1.
    pub(super) line: u64,
    values: RowValues<'a>,
}

/// The columns of a CSV file.
struct Header {
    names: csv::StringRecord,
    /// Position of each name.
    positions: HashMap<String, usize>,
}

enum RowValues<'a> {
    Csv {
        header: &'a Header,
        record: &'a csv::StringRecord,
    },
    /// Members as flat columns, and whether the object had a member `objects`.
    Json(&'a Map<String, Value>, bool),
}

impl Row<'_> {
    pub(super) fn cells(&self) -> Vec<(&str, Cell<'_>)> {
        match &self.values {
            RowValues::Csv { header, record } => {
                header.names.iter().zip(record.iter()).map(|(name, text)| (name, Cell::Text(text))).collect()
            }
            RowValues::Json(members, _) => members.iter().map(|(name, v)| (name.as_str(), Cell::Json(v))).collect(),
        }
    }

    pub(super) fn cell(&self, column: &str) -> Option<Cell<'_>> {
        match &self.values {
            RowValues::Csv { header, record } => record.get(*header.positions.get(column)?).map(Cell::Text),
            RowValues::Json(members, _) => members.get(column).map(Cell::Json),
        }
    }

    /// Returns whether object columns are in pixels.
    pub(super) fn has_objects(&self) -> bool {
        matches!(self.values, RowValues::Json(_, true))
    }

    /// Returns the value of a column as text, with numbers as they are spelled.
    pub(super) fn text(&self, column: &str) -> Option<String> {
        match self.cell(column)? {
            Cell::Text(text) => Some(text.to_owned()),
            Cell::Json(Value::String(text)) => Some(text.clone()),
            Cell::Json(Value::Number(number)) => Some(number.to_string()),
            Cell::Json(_) => None,
        }
    }

    /// Passes a value to the type of its column.
    ///
    /// # Errors
    /// [`ListError::Types`] and [`ListError::Numbers`] for a value that does not fit the ones before.
    pub(super) fn observe(
        &self,
        file: &Path,
        column: &str,
        cell: &Cell<'_>,
        inferred: &mut Inferred,
    ) -> Result<(), Error> {
        let (path, column) = (file.to_owned(), column.to_owned());
        inferred.observe(cell, self.line).map_err(|misfit| {
            Error::List(match misfit {
                Misfit::Type(found) => ListError::Types {
                    path,
                    line: self.line,
                    column,
                    value: cell.to_string(),
                    found,
                    expected: inferred.dtype,
                    first_line: inferred.line,
                    declared: inferred.declared,
                },
                Misfit::Numbers(Conflict { first, second }) => ListError::Numbers {
                    path,
                    column,
                    first: (first.0.to_string(), first.1),
                    second: (second.0.to_string(), second.1),
                },
            })
        })
    }

    pub(super) fn wrong_value(&self, file: &Path, column: &str, problem: &'static str) -> Error {
        Error::List(ListError::Value { path: file.to_owned(), line: self.line, column: column.to_owned(), problem })
    }
}

/// Calls `visit` for each row of a list.
pub(super) fn rows(
    file: &Path,
    nesting: &Nesting,
    visit: impl FnMut(Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let extension = file.extension().map(|e| e.to_ascii_lowercase());
    match extension.as_deref().and_then(|e| e.to_str()) {
        Some("csv") => csv_rows(file, visit),
        Some("jsonl" | "ndjson") => json_rows(file, nesting, visit),
        _ => Err(Error::Source(SourceError::UnknownFormat { path: file.to_owned() })),
    }
}

fn csv_rows(file: &Path, mut visit: impl FnMut(Row<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let wrong = |e: csv::Error| Error::List(ListError::Csv { path: file.to_owned(), source: Box::new(e) });
    let mut reader = csv::Reader::from_reader(Quotes::new(open_list(file).map_err(Error::io("read", file))?));
    let names = reader.headers().map_err(wrong)?.clone();
    let only = names.get(0).filter(|_| names.len() == 1).unwrap_or_default();
    // Names of columns, not a text with a separator: none is empty or begins with a space.
    let is_name = |name: &str| name.starts_with(|letter: char| !letter.is_whitespace());
    if let Some(separator) = [';', '\t'].into_iter().find(|by| only.contains(*by) && only.split(*by).all(is_name)) {
        let problem = match separator {
            ';' => "the columns of the list are separated by semicolons; separate them by commas",
            _ => "the columns of the list are separated by tabs; separate them by commas",
        };
        return Err(Error::List(ListError::Column { path: file.to_owned(), column: only.to_owned(), problem }));
    }
    let mut positions = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        if positions.insert(name.to_owned(), at).is_some() {
            let problem = "occurs twice in the header; rename one";
            return Err(Error::List(ListError::Column { path: file.to_owned(), column: name.to_owned(), problem }));
        }
    }
    let header = Header { names, positions };
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(wrong)? {
        let line = record.position().map_or(0, csv::Position::line);
        visit(Row { line, values: RowValues::Csv { header: &header, record: &record } })?;
    }
    Ok(())
}

fn json_rows(file: &Path, nesting: &Nesting, mut visit: impl FnMut(Row<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let mut reader = BufReader::new(open_list(file).map_err(Error::io("read", file))?);
    let (mut text, mut line) = (vec![], 0);
    loop {
        text.clear();
        if reader.read_until(b'\n', &mut text).map_err(Error::io("read", file))? == 0 {
            return Ok(());
        }
        line += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        let json = |source| Error::List(ListError::Json { path: file.to_owned(), line, source });
        let members = match json_text::parse(&text).map_err(|error| json(error.into()))? {
            Value::Object(members) => members,
            _ => return Err(json("expected {, as a row is an object".into())),
        };
        let objects = members.contains_key("objects");
        let members = nesting.flat(members).map_err(|reason| {
            Error::List(ListError::Objects { path: file.to_owned(), line, reason: Box::new(reason) })
        })?;
        visit(Row { line, values: RowValues::Json(&members, objects) })?;
    }
}
