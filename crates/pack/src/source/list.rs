//! Lists: CSV with a header, or JSONL. A list is read twice: for the types of columns and the class names, then for the
//! entries. Only the entries are kept in memory.

use super::clips;
use super::infer::{Cell, Inferred, Misfit};
use super::json_text;
use super::listing::{Entry, Listing};
use super::nested::Nesting;
use super::objects;
use crate::class_ids::ClassIds;
use crate::error::{ListError, SourceError};
use crate::input::{Objects, Times, open_list, place};
use crate::sample::{Conflict, FPS_SUFFIX, ListedFile, SampleSchema, Values};
use crate::{Error, Options, Reason, Rejection};
use serde_json::{Map, Value};
use shardtool_format::manifest::DType;
use shardtool_store::is_url;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Column with the path of the image, relative to the list's folder.
const PATH: &str = "path";
/// Common names of a column of image paths, to detect a misnamed [`PATH`].
const IMAGE_NAMES: [&str; 10] =
    ["file", "filename", "file_name", "filepath", "file_path", "image", "image_file", "image_path", "img", "img_path"];
/// Column with the key. Default: the path.
const KEY: &str = "key";
/// Column with the class, by name or by id.
const LABEL: &str = "label";

/// Lists the rows of a list.
///
/// # Errors
/// [`SourceError::UnknownFormat`], [`ListError::Csv`], [`ListError::Json`], [`ListError::Column`],
/// [`ListError::Types`], [`ListError::Value`], [`ListError::DuplicateKey`], [`SourceError::UnknownClass`],
/// [`Error::Io`].
pub(super) fn list(file: &Path, classes: Option<ClassIds>, options: &Options) -> Result<Listing, Error> {
    let Options { columns: declared, files, arrays, frames, boxes, .. } = options;
    let files: Vec<_> = files.iter().chain(arrays.iter().map(|array| &array.name)).collect();
    let paths = files.iter().copied().chain(frames).map(|name| (name.clone(), DType::Bytes));
    let mut nesting = Nesting { boxes: *boxes, ..Nesting::default() };
    let root = file.parent().unwrap_or(Path::new("")).to_owned();
    let names_file = |column: &str| column == PATH || files.iter().copied().chain(frames).any(|name| name == column);
    let rates: Vec<_> = frames.iter().map(|name| format!("{name}{FPS_SUFFIX}")).collect();
    let declared: Vec<_> = declared.iter().cloned().chain(paths).collect();
    let times = Times::of(options);
    let in_store = is_url(&root);
    let scan = Scan::new(file, &declared, &rates, &nesting, |column, cell| {
        let paths = match cell {
            _ if !names_file(column) => vec![],
            Cell::Text(path) => vec![*path],
            Cell::Json(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Cell::Json(value) => value.as_str().into_iter().collect(),
        };
        let objects = paths.into_iter().filter(|path| in_store || is_url(Path::new(path)));
        objects.map(|path| place(&root, path)).collect()
    })?;
    nesting.learn(scan.columns.keys());
    // Without a column of paths, each row is a sample without an image.
    let images = scan.columns.contains_key(PATH);
    let labelled = scan.columns.get(LABEL).is_some_and(|label| label.dtype.is_some());
    let by_name = labelled && scan.columns[LABEL].dtype == Some(DType::Bytes);
    let named = classes.is_some();
    let classes = classes.unwrap_or_else(|| ClassIds::sorted(scan.labels));
    let mut columns: Vec<_> = scan
        .columns
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), PATH | KEY | LABEL) && !nesting.is_replaced(name))
        .filter_map(|(name, inferred)| Some((name.clone(), inferred.column_type(name)?)))
        .collect();
    for (name, dtype) in arrays.iter().flat_map(|array| array.features().into_iter().skip(1)) {
        if scan.columns.contains_key(&name) {
            let problem = "describes an array of the same name; rename the column";
            return Err(Error::List(ListError::Column { path: file.to_owned(), column: name, problem }));
        }
        columns.push((name, dtype));
    }
    let listed = columns.len();
    for (name, dtype) in frames.iter().flat_map(|name| clips::descriptions(name, options)) {
        if scan.columns.contains_key(&name) {
            let problem = "pack writes a feature of this name itself; remove the column, or leave out `fps`";
            return Err(Error::List(ListError::Column { path: file.to_owned(), column: name, problem }));
        }
        columns.push((name, dtype));
    }
    // Lengths of objects are requested together; those of files are read one by one.
    let mut objects = Objects::default();
    objects.examine(scan.urls.into_iter())?;
    let (mut entries, mut lines, mut rejected) = (vec![], vec![], vec![]);
    let mut number = 0u64;
    let list_name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    rows(file, &nesting, |row| {
        let value = |column: &str, problem| row.wrong_value(file, column, problem);
        let path = row.text(PATH).filter(|path| !path.is_empty());
        let path = if images { Some(path.ok_or_else(|| value(PATH, "no path"))?) } else { None };
        let key = row.text(KEY).filter(|key| !key.is_empty()).or_else(|| path.clone());
        let key = key.unwrap_or_else(|| format!("{list_name}#{number}"));
        number += 1;
        let label = match row.cell(LABEL) {
            Some(cell) if labelled && !cell.is_missing() => {
                let dtype = if by_name { DType::Bytes } else { DType::Int64 };
                match cell.values(dtype) {
                    Some(Values::Int64(id)) if named => classes.check(id).map(|()| Some(id))?,
                    Some(Values::Int64(id)) if id >= 0 => Some(id),
                    Some(Values::Bytes(name)) => Some(classes.id(&String::from_utf8_lossy(&name))?),
                    _ => return Err(value(LABEL, "a label is a class name, or a class id from 0")),
                }
            }
            _ => None,
        };
        if labelled && label.is_none() {
            rejected.push(Rejection::new(key, Reason::NoLabel)?);
            return Ok(());
        }
        let meta = match path.as_ref().map(|path| objects.at(&place(&root, path))).transpose() {
            Ok(meta) if meta.as_ref().is_none_or(|meta| meta.is_file()) => meta,
            Ok(_) => {
                rejected.push(Rejection::new(path.unwrap_or(key), Reason::NotAFile)?);
                return Ok(());
            }
            Err(e) => {
                rejected.push(Rejection::new(path.unwrap_or(key), Reason::of_stat(e))?);
                return Ok(());
            }
        };
        let values = columns[..listed].iter().map(|(name, dtype)| {
            let Some(cell) = row.cell(name) else { return Ok(Values::Missing) };
            let values = cell.values(*dtype).ok_or_else(|| value(name, "not of the column's type"))?;
            Ok::<_, Error>(if row.has_objects() { objects::in_pixels(name, values) } else { values })
        });
        let mut values = values.collect::<Result<Vec<_>, _>>()?;
        for ((column, _), value) in columns.iter().zip(&mut values) {
            let named = match column {
                column if files.contains(&column) => name_file(&root, &objects, times, value),
                column if frames.contains(column) => clips::name_frames(&root, &objects, times, value),
                _ => Ok(()),
            };
            if let Err(reason) = named {
                let reason = Reason::File { column: column.clone(), reason: Box::new(reason) };
                rejected.push(Rejection::new(key, reason)?);
                return Ok(());
            }
        }
        values.extend(frames.iter().flat_map(|_| clips::described(options)));
        entries.push(match meta {
            Some(meta) => Entry::new(key, path, label, values.into(), (&meta, times)),
            None => Entry::of_row(key, label, values.into()),
        });
        lines.push(row.line);
        Ok(())
    })?;
    unique_keys(file, &entries, &lines)?;
    let schema = SampleSchema { classes: classes.into_names(), images, labelled, columns };
    Ok(Listing { entries, schema, rejected, left_out: vec![], root, stored: false })
}

/// Replaces a path by the file that it names.
fn name_file(root: &Path, objects: &Objects, times: Times, value: &mut Values) -> Result<(), Reason> {
    let Values::Bytes(path) = value else { return Ok(()) };
    let path = std::str::from_utf8(path).map_err(|_| Reason::Missing)?;
    let meta = objects.at(&place(root, path)).map_err(Reason::of_stat)?;
    if !meta.is_file() {
        return Err(Reason::NotAFile);
    }
    let file = ListedFile { path: path.into(), size: meta.len(), version: meta.version(times) };
    *value = Values::File(Box::new(file));
    Ok(())
}

/// Result of the first pass.
struct Scan {
    /// In byte order of names.
    columns: BTreeMap<String, Inferred>,
    /// Labels that are text.
    labels: BTreeSet<String>,
    /// Objects in stores that the rows name.
    urls: Vec<PathBuf>,
}

impl Scan {
    fn new(
        file: &Path,
        declared: &[(String, DType)],
        rates: &[String],
        nesting: &Nesting,
        urls_of: impl Fn(&str, &Cell<'_>) -> Vec<PathBuf>,
    ) -> Result<Self, Error> {
        let column = |name: &str, problem| {
            Error::List(ListError::Column { path: file.to_owned(), column: name.to_owned(), problem })
        };
        let (mut columns, mut labels, mut urls, mut empty) = (BTreeMap::new(), BTreeSet::new(), vec![], true);
        rows(file, nesting, |row| {
            empty = false;
            for (name, cell) in row.cells() {
                urls.extend(urls_of(name, &cell));
                if !columns.contains_key(name) {
                    if crate::sample::is_written(name) {
                        return Err(column(name, "pack writes a feature of this name itself; rename the column"));
                    }
                    let known = declared.iter().find(|(declared, _)| declared == name).map(|(_, dtype)| *dtype);
                    let text = matches!(name, PATH | KEY).then_some(DType::Bytes);
                    let rate = rates.iter().any(|rate| rate == name).then_some(DType::Float);
                    columns.insert(name.to_owned(), Inferred::new(text.or(known).or(rate)));
                }
                let inferred = columns.get_mut(name).expect("inserted above");
                inferred.observe(&cell, row.line).map_err(|misfit| match misfit {
                    Misfit::Type(found) => Error::List(ListError::Types {
                        path: file.to_owned(),
                        line: row.line,
                        column: name.to_owned(),
                        value: cell.to_string(),
                        found,
                        expected: inferred.dtype,
                        first_line: inferred.line,
                        declared: inferred.declared,
                    }),
                    Misfit::Numbers(Conflict { first, second }) => Error::List(ListError::Numbers {
                        path: file.to_owned(),
                        column: name.to_owned(),
                        first: (first.0.to_string(), first.1),
                        second: (second.0.to_string(), second.1),
                    }),
                })?;
                if name == LABEL && inferred.dtype == Some(DType::Bytes) && !cell.is_missing() {
                    let text = row.text(name).ok_or_else(|| row.wrong_value(file, LABEL, "a label is one value"))?;
                    if !labels.contains(&text) {
                        labels.insert(text);
                    }
                }
            }
            Ok(())
        })?;
        if empty {
            return Ok(Scan { columns, labels, urls });
        }
        let float = |label: &Inferred| matches!(label.dtype, Some(DType::Float | DType::Float64));
        let float_label = columns.get(LABEL).is_some_and(float);
        if float_label {
            return Err(column(LABEL, "labels are class names or integers, not floats; declare `label:bytes`"));
        }
        // A list may have no images, but a misspelt `path` must not silently drop them.
        if !columns.contains_key(PATH)
            && let Some(name) = columns.keys().find(|name| IMAGE_NAMES.contains(&name.as_str()))
        {
            let problem =
                "the list has no column `path`; if this column holds the paths of images, rename it to `path`";
            return Err(column(name, problem));
        }
        match declared.iter().find(|(name, _)| !columns.contains_key(name)) {
            Some((name, _)) => Err(column(name, "its type is declared, but the list has no such column")),
            None => Ok(Scan { columns, labels, urls }),
        }
    }
}

/// One row, with its line number in the file, from 1.
struct Row<'a> {
    line: u64,
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
    fn cells(&self) -> Vec<(&str, Cell<'_>)> {
        match &self.values {
            RowValues::Csv { header, record } => {
                header.names.iter().zip(record.iter()).map(|(name, text)| (name, Cell::Text(text))).collect()
            }
            RowValues::Json(members, _) => members.iter().map(|(name, v)| (name.as_str(), Cell::Json(v))).collect(),
        }
    }

    fn cell(&self, column: &str) -> Option<Cell<'_>> {
        match &self.values {
            RowValues::Csv { header, record } => record.get(*header.positions.get(column)?).map(Cell::Text),
            RowValues::Json(members, _) => members.get(column).map(Cell::Json),
        }
    }

    /// Returns whether object columns are in pixels.
    fn has_objects(&self) -> bool {
        matches!(self.values, RowValues::Json(_, true))
    }

    /// Returns the value of a column as text, with numbers as they are spelled.
    fn text(&self, column: &str) -> Option<String> {
        match self.cell(column)? {
            Cell::Text(text) => Some(text.to_owned()),
            Cell::Json(Value::String(text)) => Some(text.clone()),
            Cell::Json(Value::Number(number)) => Some(number.to_string()),
            Cell::Json(_) => None,
        }
    }

    fn wrong_value(&self, file: &Path, column: &str, problem: &'static str) -> Error {
        Error::List(ListError::Value { path: file.to_owned(), line: self.line, column: column.to_owned(), problem })
    }
}

/// Calls `visit` for each row of a list.
fn rows(file: &Path, nesting: &Nesting, visit: impl FnMut(Row<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let extension = file.extension().map(|e| e.to_ascii_lowercase());
    match extension.as_deref().and_then(|e| e.to_str()) {
        Some("csv") => csv_rows(file, visit),
        Some("jsonl" | "ndjson") => json_rows(file, nesting, visit),
        _ => Err(Error::Source(SourceError::UnknownFormat { path: file.to_owned() })),
    }
}

fn csv_rows(file: &Path, mut visit: impl FnMut(Row<'_>) -> Result<(), Error>) -> Result<(), Error> {
    let wrong = |e: csv::Error| Error::List(ListError::Csv { path: file.to_owned(), source: Box::new(e) });
    let mut reader = csv::Reader::from_reader(open_list(file).map_err(Error::io("read", file))?);
    let names = reader.headers().map_err(wrong)?.clone();
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

/// Checks that all keys differ; `lines` are the entries' lines in the list.
fn unique_keys(file: &Path, entries: &[Entry], lines: &[u64]) -> Result<(), Error> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|i| &entries[*i].key);
    match order.windows(2).find(|w| entries[w[0]].key == entries[w[1]].key) {
        Some(twice) => Err(Error::List(ListError::DuplicateKey {
            path: file.to_owned(),
            key: entries[twice[0]].key.to_string(),
            lines: (lines[twice[0]], lines[twice[1]]),
        })),
        None => Ok(()),
    }
}
