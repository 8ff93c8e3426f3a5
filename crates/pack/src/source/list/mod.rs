//! Lists: CSV with a header, or JSONL. A list is read twice: for the types of columns and the class names, then for the
//! entries. Only the entries are kept in memory.

mod quotes;
mod rows;
mod table;

use table::NAME_OR_ID;
pub(crate) use table::list_table;

use super::clips;
use super::infer::{Cell, Inferred};
use super::listing::{Entry, Listing};
use super::nested::Nesting;
use super::objects;
use crate::class_ids::ClassIds;
use crate::error::ListError;
use crate::input::{Found, Objects, Times, place};
use crate::sample::{FPS_SUFFIX, ListedFile, SampleSchema, Values};
use crate::{Error, Options, Reason, Rejection};
use rows::{Row, rows};
use serde_json::Value;
use shardtool_format::manifest::DType;
use shardtool_store::is_url;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Column with the path of the image, relative to the list's folder.
const PATH: &str = "path";
/// Common names of a column of image paths, to detect a misnamed [`PATH`].
const IMAGE_NAMES: [&str; 10] =
    ["file", "filename", "file_name", "filepath", "file_path", "image", "image_file", "image_path", "img", "img_path"];
/// Columns of lists with a row for each box, as Open Images has them, in any case of letters.
const EDGES: [&str; 4] = ["xmin", "xmax", "ymin", "ymax"];
/// Ends of names that are those of images, and of no column.
const IMAGE_EXTENSIONS: [&str; 6] = ["jpg", "jpeg", "png", "webp", "tif", "tiff"];
/// Column with the key. Default: the path.
const KEY: &str = "key";
/// Column with the class, by name or by id.
const LABEL: &str = "label";

/// Lists the rows of a list.
///
/// # Errors
/// [`crate::SourceError::UnknownFormat`], [`ListError::Csv`], [`ListError::Json`], [`ListError::Column`],
/// [`ListError::Types`], [`ListError::Value`], [`ListError::DuplicateKey`], [`crate::SourceError::UnknownClass`],
/// [`Error::Io`].
pub(super) fn list(file: &Path, classes: Option<ClassIds>, options: &Options) -> Result<Listing, Error> {
    let root = file.parent().unwrap_or(Path::new("")).to_owned();
    let mut nesting = Nesting::new(options.boxes);
    let scan = scan(file, &root, &nesting, options)?;
    nesting.learn(scan.columns.keys());
    check_names(file, &scan)?;
    let (columns, listed) = columns(file, &scan, &nesting, options)?;
    // Lengths of objects are requested together; those of files are read one by one.
    let mut objects = Objects::default();
    objects.examine(scan.urls.into_iter())?;
    let keyed = scan.columns.contains_key(KEY);
    let mut entries = Entries {
        file,
        root: &root,
        options,
        files: file_columns(options).collect(),
        // Without a column of paths, each row is a sample without an image.
        images: scan.columns.contains_key(PATH),
        labels: Labels::new((classes, options), scan.columns.get(LABEL).and_then(|label| label.dtype), scan.labels)?,
        columns: &columns,
        listed,
        objects,
        rows: 0,
        entries: vec![],
        lines: vec![],
        rejected: vec![],
    };
    rows(file, &nesting, |row| entries.add(&row))?;
    let Entries { images, labels, entries, lines, rejected, .. } = entries;
    unique_keys(file, &entries, &lines, !keyed)?;
    let labelled = labels.dtype.is_some();
    let schema =
        SampleSchema { classes: labels.classes.into_names(), images, labelled, columns, keypoints: Default::default() };
    Ok(Listing { entries, schema, rejected, left_out: vec![], root, stored: false })
}

/// Refuses columns whose names are nearly those with a meaning, if no column has that meaning: in other letters (`Label`), with
/// spaces, or with members of their own.
///
/// # Errors
/// [`ListError::Column`].
fn check_names(file: &Path, scan: &Scan) -> Result<(), Error> {
    let meanings = [
        (
            PATH,
            "nearly the name `path`, of the column with the images: rename it, so that it is that column or clearly another one",
        ),
        (
            LABEL,
            "nearly the name `label`, of the column with the classes: rename it, so that it is that column or clearly another one",
        ),
        (
            KEY,
            "nearly the name `key`, of the column with the keys: rename it, so that it is that column or clearly another one",
        ),
    ];
    for (name, problem) in meanings.into_iter().filter(|(name, _)| !scan.columns.contains_key(*name)) {
        let is_near = |column: &&String| {
            let members = name == LABEL && column.strip_prefix(LABEL).is_some_and(|rest| rest.starts_with('/'));
            members || column.trim().eq_ignore_ascii_case(name)
        };
        if let Some(column) = scan.columns.keys().find(is_near).cloned() {
            return Err(Error::List(ListError::Column { path: file.to_owned(), column, problem }));
        }
    }
    Ok(())
}

/// Returns the columns whose values are paths of files.
fn file_columns(options: &Options) -> impl Iterator<Item = &String> {
    options.files.iter().chain(options.arrays.iter().map(|array| &array.name))
}

/// Makes the first pass.
fn scan(file: &Path, root: &Path, nesting: &Nesting, options: &Options) -> Result<Scan, Error> {
    let paths: Vec<_> = file_columns(options).chain(&options.frames).collect();
    let declared = options.columns.iter().cloned();
    let declared: Vec<_> = declared.chain(paths.iter().map(|name| ((*name).clone(), DType::Bytes))).collect();
    let rates: Vec<_> = options.frames.iter().map(|name| format!("{name}{FPS_SUFFIX}")).collect();
    let in_store = is_url(root);
    Scan::new(file, &declared, &rates, nesting, |column, cell| {
        let paths = match cell {
            _ if column != PATH && !paths.iter().any(|name| *name == column) => vec![],
            Cell::Text(path) => vec![*path],
            Cell::Json(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Cell::Json(value) => value.as_str().into_iter().collect(),
        };
        let objects = paths.into_iter().filter(|path| in_store || is_url(Path::new(path)));
        objects.map(|path| place(root, path)).collect()
    })
}

/// Returns the columns of the samples: those whose values are in the list, or describe its arrays, and their number; then those
/// that describe clips.
fn columns(
    file: &Path,
    scan: &Scan,
    nesting: &Nesting,
    options: &Options,
) -> Result<(Vec<(String, DType)>, usize), Error> {
    let free = |(name, dtype), problem| match scan.columns.contains_key(&name) {
        true => Err(Error::List(ListError::Column { path: file.to_owned(), column: name, problem })),
        false => Ok((name, dtype)),
    };
    let listed = scan.columns.iter();
    let mut columns: Vec<_> = listed
        .filter(|(name, _)| !matches!(name.as_str(), PATH | KEY | LABEL) && !nesting.is_replaced(name))
        .filter_map(|(name, inferred)| {
            let dtype = match inferred.column_type(name)? {
                DType::Float if !inferred.declared && options.wide.contains(name) => DType::Float64,
                dtype => dtype,
            };
            Some((name.clone(), dtype))
        })
        .collect();
    for column in options.arrays.iter().flat_map(|array| array.features().into_iter().skip(1)) {
        columns.push(free(column, "describes an array of the same name; rename the column")?);
    }
    let listed = columns.len();
    for column in options.frames.iter().flat_map(|name| clips::descriptions(name, options)) {
        let problem = "pack writes a feature of this name itself; remove the column, or leave out `fps`";
        columns.push(free(column, problem)?);
    }
    Ok((columns, listed))
}

/// What the labels of the rows mean.
struct Labels {
    classes: ClassIds,
    /// Whether the user named the classes, so that each id must be that of one.
    given: bool,
    /// Whether the user declared the type of labels.
    declared: bool,
    /// The type of the column; `None` if there is none.
    dtype: Option<DType>,
}

impl Labels {
    /// `found` are the labels in the list that are text.
    ///
    /// # Errors
    /// Those of [`ClassIds::sorted`].
    fn new(
        (classes, options): (Option<ClassIds>, &Options),
        dtype: Option<DType>,
        found: BTreeSet<String>,
    ) -> Result<Self, Error> {
        let given = classes.is_some();
        let declared = options.columns.iter().any(|(column, _)| column == LABEL);
        Ok(Labels { given, declared, classes: classes.map_or_else(|| ClassIds::sorted(found), Ok)?, dtype })
    }

    /// Returns the label of a row; `None` if it has none.
    fn of(&self, file: &Path, row: &Row<'_>) -> Result<Option<i64>, Error> {
        let Some(dtype) = self.dtype else { return Ok(None) };
        let Some(cell) = row.cell(LABEL).filter(|cell| !cell.is_missing()) else { return Ok(None) };
        match cell.values(if dtype == DType::Bytes { dtype } else { DType::Int64 }) {
            Some(Values::Int64(id)) if self.given => {
                let is_other = |named: i64| !self.declared && named != id;
                if self.classes.known(&id.to_string()).is_ok_and(is_other) {
                    return Err(row.wrong_value(file, LABEL, NAME_OR_ID));
                }
                self.classes.check(id).map(|()| Some(id))
            }
            Some(Values::Int64(id)) if id >= 0 => Ok(Some(id)),
            Some(Values::Bytes(name)) => self.classes.id(&String::from_utf8_lossy(&name)).map(Some),
            _ => Err(row.wrong_value(file, LABEL, "a label is a class name, or a class id from 0")),
        }
    }
}

/// The second pass: makes an entry of each row, or rejects it.
struct Entries<'a> {
    file: &'a Path,
    root: &'a Path,
    options: &'a Options,
    /// The columns of files that are not clips.
    files: Vec<&'a String>,
    /// Whether each row has an image.
    images: bool,
    labels: Labels,
    columns: &'a [(String, DType)],
    /// How many of the columns have their values in the rows.
    listed: usize,
    objects: Objects,
    /// Rows so far.
    rows: u64,
    entries: Vec<Entry>,
    /// Line of each entry.
    lines: Vec<u64>,
    rejected: Vec<Rejection>,
}

impl Entries<'_> {
    /// Adds a row.
    fn add(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let path = row.text(PATH).filter(|path| self.images && !path.is_empty());
        if self.images && path.is_none() {
            return Err(row.wrong_value(self.file, PATH, "no path"));
        }
        let key = row.text(KEY).filter(|key| !key.is_empty()).or_else(|| path.clone());
        let key = key.unwrap_or_else(|| self.key_of_row());
        self.rows += 1;
        let label = self.labels.of(self.file, row)?;
        if self.labels.dtype.is_some() && label.is_none() {
            return self.reject(key, Reason::NoLabel);
        }
        let image = match path.as_deref().map(|path| examine(self.root, &self.objects, path)).transpose() {
            Ok(image) => image,
            Err(reason) => return self.reject(path.unwrap_or(key), reason),
        };
        let mut values = self.values(row)?;
        if let Err(reason) = self.name_files(&mut values) {
            return self.reject(key, reason);
        }
        values.extend(self.options.frames.iter().flat_map(|_| clips::described(self.options)));
        self.entries.push(match image {
            Some(image) => Entry::new(key, path, label, values.into(), (&image, Times::of(self.options))),
            None => Entry::of_row(key, label, values.into()),
        });
        self.lines.push(row.line);
        Ok(())
    }

    fn reject(&mut self, input: String, reason: Reason) -> Result<(), Error> {
        self.rejected.push(Rejection::new(input, reason)?);
        Ok(())
    }

    /// Returns the key of a row without one.
    fn key_of_row(&self) -> String {
        format!("{}#{}", self.file.file_name().unwrap_or_default().to_string_lossy(), self.rows)
    }

    /// Returns the values of the columns in a row.
    fn values(&self, row: &Row<'_>) -> Result<Vec<Values>, Error> {
        let values = self.columns[..self.listed].iter().map(|(name, dtype)| {
            let Some(cell) = row.cell(name) else { return Ok(Values::Missing) };
            let values = cell.values(*dtype);
            let values = values.ok_or_else(|| row.wrong_value(self.file, name, "not of the column's type"))?;
            Ok(if row.has_objects() { objects::in_pixels(name, values) } else { values })
        });
        values.collect()
    }

    /// Replaces paths by the files and clips that they name.
    fn name_files(&self, values: &mut [Values]) -> Result<(), Reason> {
        let times = Times::of(self.options);
        for ((column, _), value) in self.columns.iter().zip(values) {
            let named = match column {
                column if self.files.contains(&column) => name_file(self.root, &self.objects, times, value),
                column if self.options.frames.contains(column) => {
                    clips::name_frames(self.root, &self.objects, times, value)
                }
                _ => Ok(()),
            };
            named.map_err(|reason| Reason::File { column: column.clone(), reason: Box::new(reason) })?;
        }
        Ok(())
    }
}

/// Examines the file at a path in the list.
fn examine(root: &Path, objects: &Objects, path: &str) -> Result<Found, Reason> {
    let found = objects.at(&place(root, path)).map_err(Reason::of_stat)?;
    if found.is_file() { Ok(found) } else { Err(Reason::NotAFile) }
}

/// Replaces a path by the file that it names.
fn name_file(root: &Path, objects: &Objects, times: Times, value: &mut Values) -> Result<(), Reason> {
    let Values::Bytes(path) = value else { return Ok(()) };
    let path = std::str::from_utf8(path).map_err(|_| Reason::Missing)?;
    let found = examine(root, objects, path)?;
    let file = ListedFile { path: path.into(), size: found.len(), version: found.version(times) };
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
                row.observe(file, name, &cell, inferred)?;
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
        let of_box = |edge: &&str| columns.keys().any(|name| name.eq_ignore_ascii_case(edge));
        let image_id = columns.keys().find(|name| name.eq_ignore_ascii_case("ImageID"));
        if let (false, Some(id), true) = (columns.contains_key(PATH), image_id, EDGES.iter().all(of_box)) {
            let problem = "each row is a box of the image that this column names, and the list has no column `path`: give one row for each \
                 image, with `path` and its boxes in `objects`";
            return Err(column(id, problem));
        }
        let is_image = |name: &&String| {
            let (_, extension) = name.rsplit_once('.').unwrap_or_default();
            IMAGE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
        };
        if let Some(name) = columns.keys().find(is_image) {
            let problem = "this is the name of an image, so the list has no header: add one, such as `path,depth`, as its first line";
            return Err(column(name, problem));
        }
        match declared.iter().find(|(name, _)| !columns.contains_key(name)) {
            Some((name, _)) => Err(column(name, "its type is declared, but the list has no such column")),
            None => Ok(Scan { columns, labels, urls }),
        }
    }
}

/// Returns a path without `.` and doubled separators.
fn shortest(path: &str) -> Cow<'_, str> {
    if !path.contains("//") && !path.contains("./") {
        return path.into();
    }
    let is_absolute = path.starts_with('/');
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/")).into()
}

/// Checks that all keys differ; `lines` are the entries' lines in the list. Keys that are paths are the same if they lead to the same file:
/// `a.jpg`, `./a.jpg`.
fn unique_keys(file: &Path, entries: &[Entry], lines: &[u64], paths: bool) -> Result<(), Error> {
    let keys: Vec<_> =
        entries.iter().map(|entry| if paths { shortest(&entry.key) } else { (&*entry.key).into() }).collect();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|i| &keys[*i]);
    match order.windows(2).find(|w| keys[w[0]] == keys[w[1]]) {
        Some(twice) => Err(Error::List(ListError::DuplicateKey {
            path: file.to_owned(),
            key: entries[twice[0]].key.to_string(),
            lines: (lines[twice[0]], lines[twice[1]]),
        })),
        None => Ok(()),
    }
}
