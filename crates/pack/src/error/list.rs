//! What is wrong with a list: CSV or JSONL.

use super::{BoxError, Reason};
use shardtool_format::manifest::DType;
use std::path::PathBuf;

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// Not CSV with a header.
    #[error("{}: not a CSV file with a header", .path.display())]
    Csv {
        /// The list.
        path: PathBuf,
        /// The parser's error, with the line.
        source: BoxError,
    },
    /// A line that is not a JSON object.
    #[error("{}, line {line}: not a JSON object that can be read", .path.display())]
    Json {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The parser's error.
        source: BoxError,
    },
    /// An invalid column.
    #[error("{}, column `{column}`: {problem}", .path.display())]
    Column {
        /// The list.
        path: PathBuf,
        /// The column.
        column: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Values of a column have different types.
    #[error("{}, line {line}, column `{column}`: {}",
        .path.display(), types(.column, .value, *.found, *.expected, *.first_line, *.declared))]
    Types {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The value in that line.
        value: String,
        /// The value's type, if a feature can hold it and the column's type is inferred.
        found: Option<DType>,
        /// The column's type.
        expected: Option<DType>,
        /// The line from which it was inferred.
        first_line: u64,
        /// Whether the type was declared.
        declared: bool,
    },
    /// No type holds two numbers of a column.
    #[error("{}: {}", .path.display(), conflict(.column, &.first.0, &format!("line {}", .first.1), &.second.0,
        &format!("line {}", .second.1)))]
    Numbers {
        /// The list.
        path: PathBuf,
        /// The column.
        column: String,
        /// A number, and its line from 1.
        first: (String, u64),
        /// Another one.
        second: (String, u64),
    },
    /// A class that the dataset, whose labels a list changes, does not have.
    #[error("{}, line {line}: the dataset has no class `{class}`; it has {}{}{}", .path.display(),
        if .classes.is_empty() { "no names of classes" } else { "" }, .classes.iter().take(20).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        if .classes.len() > 20 { format!(", … {} in all", .classes.len()) } else { String::new() })]
    NoClass {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Its name, or its id.
        class: String,
        /// Names of the dataset's classes.
        classes: Vec<String>,
    },
    /// An invalid value.
    #[error("{}, line {line}, column `{column}`: {problem}", .path.display())]
    Value {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The objects of a row cannot be converted to columns.
    #[error("{}, line {line}", .path.display())]
    Objects {
        /// The list.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        #[source]
        reason: Box<Reason>,
    },
    /// Two rows have the same key.
    #[error("{}: lines {} and {} have the same key `{key}`; give each row a different value in a column `key`",
        .path.display(), .lines.0, .lines.1)]
    DuplicateKey {
        /// The list.
        path: PathBuf,
        /// The key.
        key: String,
        /// Two lines that have it.
        lines: (u64, u64),
    },
}

/// Says which two numbers no type holds.
pub(super) fn conflict(column: &str, first: &str, place: &str, second: &str, other: &str) -> String {
    format!(
        "column `{column}` has {first} ({place}) and {second} ({other}), which no type holds exactly; give the type: \
         {column}:bytes keeps the text, {column}:float64 rounds"
    )
}

fn types(
    column: &str,
    value: &str,
    found: Option<DType>,
    expected: Option<DType>,
    line: u64,
    declared: bool,
) -> String {
    let value: String = value.chars().take(60).collect();
    let expected = expected.map_or("a value", DType::name);
    match (declared, found) {
        (true, _) => format!("`{value}` is not {expected}, the type given for the column"),
        (false, Some(found)) => format!(
            "`{value}` is {found}, but the column is {expected} since line {line}; correct the value, or give the type: \
             {column}:bytes for texts, {column}:float for numbers and nan",
            found = found.name()
        ),
        (false, None) => format!("`{value}` is neither a number, a text nor a list of them"),
    }
}
