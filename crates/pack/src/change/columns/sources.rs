//! Reads rows of values: from a list, from the array of an `.npy` file, from a dataset, or from any archive that `pack` reads.

use super::labels::of_labels;
use super::rows::{ColumnRows, ColumnValues};
use crate::array::npy;
use crate::commit::unique;
use crate::error::ShardError;
use crate::progress::Progress;
use crate::source::{list_table, objects};
use crate::{Error, Options, SourceKind, Value, pack_splits};
use shardtool_format::array::ArrayDtype;
use shardtool_format::manifest::{DType, Manifest};
use shardtool_format::names;
use shardtool_read::{Dataset, Split};
use std::path::{Path, PathBuf};

/// A source of columns, and how it is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ColumnSource {
    /// A list (CSV, JSONL), an `.npy` file, an archive (Parquet, WebDataset …) or a dataset.
    pub path: PathBuf,
    /// The kind of an archive. Default: detected from its content.
    pub from: Option<SourceKind>,
    /// The column of a list that holds keys. Default: `key`, else `path`.
    pub key: Option<String>,
    /// The columns to take. Default: all but the keys.
    pub names: Vec<String>,
    /// Declared types of columns; others are inferred.
    pub types: Vec<(String, DType)>,
    /// Field names of archives, as for `pack`.
    pub map: Vec<(String, String)>,
}

impl ColumnSource {
    /// Returns a source with the defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let (names, types, map) = (vec![], vec![], vec![]);
        ColumnSource { path: path.into(), from: None, key: None, names, types, map }
    }
}

/// Reads the rows of a source of columns for a dataset. Class names of a column `label` become the ids that the dataset has for them.
///
/// # Errors
/// Those of lists and archives; [`ShardError::ColumnRows`]; [`ShardError::Column`]; [`Error::Io`].
pub fn column_rows(source: &ColumnSource, dataset: &Path, progress: &dyn Progress) -> Result<ColumnRows, Error> {
    let dataset = super::base::open(dataset, &[])?;
    let manifest = dataset.manifest();
    let end = source.path.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
    let is_list = source.from == Some(SourceKind::List) || matches!(end.as_deref(), Some("csv" | "jsonl" | "ndjson"));
    let mut rows = match end.as_deref() {
        _ if is_list => of_list(source, manifest)?,
        Some("npy") => of_array(source)?,
        _ if is_dataset(&source.path) => of_dataset(&source.path, source, manifest)?,
        _ => of_archive(source, manifest, progress)?,
    };
    if !source.names.is_empty() {
        // Labels have the name of the dataset's feature.
        let label = manifest.label.as_deref().filter(|_| source.names.iter().any(|name| name == "label"));
        let is_label = |name: &str| Some(name) == label || (label.is_some() && name == names::CLASS_TEXT);
        for name in source.names.iter().filter(|name| *name != "label" || label.is_none()) {
            if !rows.columns.iter().any(|column| column.name == *name) {
                let known: Vec<_> = rows.columns.iter().map(|column| column.name.as_str()).collect();
                let known = if known.is_empty() { "none besides the keys".to_owned() } else { known.join(", ") };
                let problem = format!("it has no column `{name}`; it has {known}");
                return Err(super::wrong_rows(&rows, problem));
            }
        }
        rows.columns.retain(|column| source.names.contains(&column.name) || is_label(&column.name));
    }
    Ok(rows)
}

fn is_dataset(path: &Path) -> bool {
    let manifest = path.join(names::MANIFEST);
    let named = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains('@'));
    path.is_dir() && manifest.is_file() || named || path.file_name().is_some_and(|name| name == names::MANIFEST)
}

/// Reads a list: two passes, of which the first finds the types.
fn of_list(source: &ColumnSource, manifest: &Manifest) -> Result<ColumnRows, Error> {
    let types = |name: &str| {
        let declared = source.types.iter().find(|(declared, _)| declared == name);
        (declared.map(|(_, dtype)| *dtype), manifest.dtype(name))
    };
    let table = list_table(&source.path, source.key.as_deref(), &source.names, &types, &manifest.classes)?;
    let mut columns: Vec<_> = table
        .columns
        .into_iter()
        .map(|(name, dtype, values)| {
            let rows = values.iter().map(Value::of_list).collect();
            ColumnValues { name, dtype, rows }
        })
        .collect();
    if let Some(labels) = table.labels {
        columns.extend(of_labels(labels, manifest));
    }
    let keys = table.keys.into_iter().map(String::into_bytes).collect();
    Ok(ColumnRows { source: source.path.clone(), keys: Some(keys), columns })
}

/// Reads an array of one or two dimensions: a row for each element of the first.
fn of_array(source: &ColumnSource) -> Result<ColumnRows, Error> {
    let wrong = |problem: String| Error::Shard(ShardError::ColumnRows { source_path: source.path.clone(), problem });
    let [name] = &source.names[..] else {
        return Err(wrong("an array has one column: name it with --name".to_owned()));
    };
    let file = std::fs::read(&source.path).map_err(Error::io("read", &source.path))?;
    let array = npy::parse(&file).map_err(|refused| wrong(refused.to_string()))?;
    let width = match array.shape[..] {
        [_] => 1,
        [_, width] => width as usize,
        _ => return Err(wrong(format!("{} dimensions; expected one or two", array.shape.len()))),
    };
    let count = array.shape[0] as usize;
    let element = array.dtype.bytes();
    let row = |at: usize| &array.data[at * width * element..(at + 1) * width * element];
    macro_rules! rows {
        ($type:ty, $value:ident, $dtype:ident, $to:ty) => {{
            let parse = |bytes: &[u8]| <$type>::from_le_bytes(bytes.try_into().expect("a whole element")) as $to;
            let rows = (0..count).map(|at| Some(Value::$value(row(at).chunks_exact(element).map(parse).collect())));
            (DType::$dtype, rows.collect())
        }};
    }
    let (dtype, rows) = match array.dtype {
        ArrayDtype::U8 | ArrayDtype::Bool => rows!(u8, Int64, Int64, i64),
        ArrayDtype::I8 => rows!(i8, Int64, Int64, i64),
        ArrayDtype::U16 => rows!(u16, Int64, Int64, i64),
        ArrayDtype::I16 => rows!(i16, Int64, Int64, i64),
        ArrayDtype::U32 => rows!(u32, Int64, Int64, i64),
        ArrayDtype::I32 => rows!(i32, Int64, Int64, i64),
        ArrayDtype::I64 => rows!(i64, Int64, Int64, i64),
        ArrayDtype::U64 => rows!(u64, Uint64, Uint64, u64),
        ArrayDtype::F32 => rows!(f32, Float, Float, f32),
        ArrayDtype::F64 => rows!(f64, Float64, Float64, f64),
        ArrayDtype::F16 => {
            let parse = |bytes: &[u8]| half::f16::from_le_bytes(bytes.try_into().expect("two bytes")).to_f32();
            let rows = (0..count).map(|at| Some(Value::Float(row(at).chunks_exact(2).map(parse).collect())));
            (DType::Float, rows.collect())
        }
        other => return Err(wrong(format!("arrays of {} cannot be columns", other.name()))),
    };
    let columns = vec![ColumnValues { name: name.clone(), dtype, rows }];
    Ok(ColumnRows { source: source.path.clone(), keys: None, columns })
}

/// Reads an archive as `pack` does, into a dataset that is removed again.
fn of_archive(source: &ColumnSource, manifest: &Manifest, progress: &dyn Progress) -> Result<ColumnRows, Error> {
    let folder = Removed(std::env::temp_dir().join(format!("shardtool-columns-{}", unique())));
    let mut options = Options::new(&source.path, &folder.0);
    (options.from, options.map, options.columns) = (source.from, source.map.clone(), source.types.clone());
    options.on_error = crate::OnError::Fail;
    options.images_optional = true;
    if let Some(key) = &source.key {
        options.map.push(("key".to_owned(), key.clone()));
    }
    pack_splits(&options, progress)?;
    let mut rows = of_dataset(&folder.0, source, manifest)?;
    // The field of the keys, which has another name than the feature of keys, is a column of the pack as well.
    rows.columns.retain(|column| column.name != source.key.as_deref().unwrap_or("key"));
    Ok(ColumnRows { source: source.path.clone(), ..rows })
}

/// A folder that is removed in the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes the features of the records of another dataset, except those that describe images.
fn of_dataset(path: &Path, source: &ColumnSource, manifest: &Manifest) -> Result<ColumnRows, Error> {
    let other = Dataset::open(path)?;
    let theirs = other.manifest();
    let fixed = |name: &str| {
        let image = ["encoded", "format", "height", "width", "channels", "orientation", "filename", "key"];
        name.strip_prefix("image/").is_some_and(|rest| image.contains(&rest)) || theirs.image.as_deref() == Some(name)
    };
    let wanted = |name: &str| source.names.is_empty() || source.names.iter().any(|wanted| wanted == name);
    let is_label = |name: &str| theirs.label.as_deref() == Some(name) || name == names::CLASS_TEXT;
    let wanted_label = |name: &str| wanted(name) || wanted("label");
    let listed = theirs.features.iter().filter(|feature| !fixed(&feature.name) && !is_label(&feature.name));
    let mut columns: Vec<_> = listed
        .filter(|feature| wanted(&feature.name))
        .map(|feature| ColumnValues { name: feature.name.clone(), dtype: feature.dtype, rows: vec![] })
        .collect();
    let label = theirs.label.as_deref().filter(|label| wanted_label(label) && theirs.dtype(label).is_some());
    let (mut keys, mut labels) = (vec![], vec![]);
    for split in other.splits() {
        split.check_counts()?;
        each(split, |key, record| {
            let example = record.example()?;
            keys.push(key);
            for column in &mut columns {
                let value = example.get(&column.name).and_then(|feature| Value::of_feature(&feature, column.dtype));
                // A null of Parquet is packed as an empty list.
                column.rows.push(match value.filter(|value| value.count() > 0) {
                    Some(Value::Int64(ids)) if column.name == objects::CLASS => {
                        let ids = ids.into_iter().map(|id| class_id(Some(id), (theirs, 0), manifest));
                        Some(Value::Int64(ids.collect::<Result<Option<_>, _>>()?.unwrap_or_default()))
                    }
                    value => value,
                });
            }
            labels.push(label.and_then(|label| example.int64(label)));
            Ok(())
        })?;
    }
    if label.is_some() && !labels.is_empty() {
        let ids = labels.into_iter().map(|stored| class_id(stored, (theirs, theirs.label_offset), manifest));
        columns.extend(of_labels(ids.collect::<Result<_, _>>()?, manifest));
    }
    Ok(ColumnRows { source: path.to_owned(), keys: Some(keys), columns })
}

fn each(
    split: &Split,
    mut take: impl FnMut(Vec<u8>, &shardtool_read::Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = vec![];
    for id in 0..split.len() {
        let record = split.get_with(id, std::mem::take(&mut buffer))?;
        take(record.key()?.into_owned(), &record)?;
        record.check_readable()?;
        buffer = record.into_buffer();
    }
    Ok(())
}

/// Returns the id that a dataset has for a class of another one.
fn class_id(stored: Option<i64>, (theirs, offset): (&Manifest, i64), ours: &Manifest) -> Result<Option<i64>, Error> {
    let Some(id) = stored.map(|stored| stored - offset) else { return Ok(None) };
    if theirs.classes.is_empty() || theirs.classes == ours.classes {
        return Ok(Some(id));
    }
    let class = usize::try_from(id).ok().and_then(|id| theirs.classes.get(id));
    match class.and_then(|class| ours.classes.iter().position(|name| name == class)) {
        Some(id) => Ok(Some(id as i64)),
        None => {
            let class = class.cloned().unwrap_or_else(|| id.to_string());
            let problem = format!("the dataset has no class `{class}`");
            Err(Error::Shard(ShardError::Column { column: "label".to_owned(), problem }))
        }
    }
}
