//! `shardtool ls`.

use crate::condition::WhereArgument;
use crate::exit::Exit;
use crate::headings;
use crate::open::SplitArguments;
use crate::output::{Output, json_number};
use crate::{show, text};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::json;
use shardtool_format::manifest::DType;
use shardtool_format::{Chain, index, names};
use shardtool_read::{Conditions, Split, Value};
use std::cell::RefCell;
use std::io::Write;

/// List records: id, class, size, key, and the values of chosen features
///
/// Everything comes from the indexes; no shard is read, unless a feature is not in the index of a shard because one of its
/// records has several values or a long one.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    split: SplitArguments,
    /// First record to list, counted from 0
    #[arg(long, default_value_t = 0, help_heading = headings::RECORDS)]
    from: u64,
    #[command(flatten)]
    conditions: WhereArgument,
    /// Show the value of a feature too
    ///
    /// May be repeated.
    #[arg(long = "column", value_name = "FEATURE", help_heading = headings::OUTPUT)]
    columns: Vec<String>,
    /// Number of records to list [default: all]
    #[arg(long, help_heading = headings::RECORDS)]
    count: Option<u64>,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// A record as its index describes it; the record itself is not read.
struct Row {
    id: u64,
    shard: String,
    key: Vec<u8>,
    label: Option<i64>,
    width: Option<i64>,
    height: Option<i64>,
    bytes: Option<u32>,
    /// The values of the chosen features.
    values: Vec<Listed>,
}

/// What a record has of a feature.
enum Listed {
    Nothing,
    One(Value<'static>),
    Several(Vec<serde_json::Value>),
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (_, split) = arguments.split.open()?;
    let manifest = split.manifest();
    let conditions = arguments.conditions.conditions(manifest)?;
    if let Some(unknown) = arguments.columns.iter().find(|name| manifest.features.iter().all(|f| f.name != **name)) {
        let known: Vec<_> = manifest.features.iter().map(|f| f.name.as_str()).collect();
        anyhow::bail!("--column {unknown}: no such feature; the dataset has {}", known.join(", "));
    }
    let ids = (arguments.from..split.len()).filter_map(|id| match holds(&conditions, &split, id) {
        Ok(true) => Some(row(&split, id, &arguments.columns)),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    });
    let most = usize::try_from(arguments.count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let mut rows = ids.take(most);
    if arguments.json {
        // The rows are made while the document is written, so that no more than one is in memory.
        let listed = Rows(RefCell::new(rows.map(|row| Ok(document(&row?, &arguments.columns)))));
        out.json(&Document { listed, records: split.len(), split: split.name() })?;
        return Ok(Exit::Success);
    }
    // Programs that cut columns get records only.
    if out.is_terminal() {
        writeln!(out, "{:>8}  {} {:>11} {:>9}  key", "id", text::column("class", 16), "size", "bytes")?;
    }
    while !out.is_closed()
        && let Some(row) = rows.next().transpose()?
    {
        let class = row.label.and_then(|l| manifest.classes.get(usize::try_from(l).ok()?).cloned());
        let class = class.or(row.label.map(|l| l.to_string())).unwrap_or_else(|| "-".to_owned());
        let size = row.width.zip(row.height).map_or("-".to_owned(), |(w, h)| format!("{w}x{h}"));
        let bytes = row.bytes.map_or("-".to_owned(), |b| text::bytes(b.into()));
        let (class, key) = (text::column(&text::printable(class.as_bytes()), 16), text::printable(&row.key));
        write!(out, "{:>8}  {class} {size:>11} {bytes:>9}  {key}", row.id)?;
        for (name, value) in arguments.columns.iter().zip(&row.values) {
            write!(out, "  {}={}", text::printable(name.as_bytes()), shown(value))?;
        }
        writeln!(out)?;
    }
    Ok(Exit::Success)
}

/// The JSON document, with its members in the order of their names.
#[derive(Serialize)]
struct Document<'a, L> {
    listed: L,
    records: u64,
    split: &'a str,
}

/// The rows of the JSON document, serialised once. The first error ends the document before its end.
struct Rows<I>(RefCell<I>);

impl<I: Iterator<Item = anyhow::Result<serde_json::Value>>> Serialize for Rows<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut listed = serializer.serialize_seq(None)?;
        for row in &mut *self.0.borrow_mut() {
            listed.serialize_element(&row.map_err(|error| S::Error::custom(Chain(error.as_ref())))?)?;
        }
        listed.end()
    }
}

fn holds(conditions: &Conditions, split: &Split, id: u64) -> anyhow::Result<bool> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let (number, row) = split.locate(id)?;
    Ok(conditions.hold(&split.shard(number)?, row)?)
}

fn document(row: &Row, columns: &[String]) -> serde_json::Value {
    let mut document = json!({
        "id": row.id, "shard": row.shard, "key": String::from_utf8_lossy(&row.key), "label": row.label,
        "width": row.width, "height": row.height, "bytes": row.bytes,
    });
    let value = |value: &Listed| match value {
        Listed::One(Value::Int64(number)) => json!(number),
        Listed::One(Value::Float(number)) => json_number(*number),
        Listed::One(Value::Float64(number)) => json_number(*number),
        Listed::One(Value::Uint64(number)) => json!(number),
        Listed::One(Value::Bytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
        Listed::Several(values) => json!(values),
        Listed::Nothing => json!(null),
    };
    if !columns.is_empty() {
        let values: serde_json::Map<_, _> = columns.iter().cloned().zip(row.values.iter().map(value)).collect();
        document["columns"] = json!(values);
    }
    document
}

fn shown(value: &Listed) -> String {
    match value {
        Listed::One(Value::Int64(number)) => number.to_string(),
        Listed::One(Value::Float(number)) => number.to_string(),
        Listed::One(Value::Float64(number)) => number.to_string(),
        Listed::One(Value::Uint64(number)) => number.to_string(),
        Listed::One(Value::Bytes(bytes)) => text::printable(bytes),
        Listed::Several(values) => text::printable(json!(values).to_string().as_bytes()),
        Listed::Nothing => "-".to_owned(),
    }
}

fn row(split: &Split, id: u64, columns: &[String]) -> anyhow::Result<Row> {
    let (number, row) = split.locate(id)?;
    let shard = split.shard(number)?;
    let manifest = split.manifest();
    let integer = |name: &str| anyhow::Ok(shard.feature::<i64>(name)?.and_then(|column| column.get(row)));
    let label = manifest.label.as_deref().map(integer).transpose()?.flatten();
    let row = Row {
        id,
        shard: shard.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        key: shard.key(row)?.into_owned(),
        label: label.map(|l| l.saturating_sub(manifest.label_offset)),
        width: integer(names::IMAGE_WIDTH)?,
        height: integer(names::IMAGE_HEIGHT)?,
        bytes: shard.column::<u32>(index::IMAGE_LENGTH)?.and_then(|column| column.get(row)),
        values: columns
            .iter()
            .map(|name| {
                let dtype = manifest.dtype(name).unwrap_or(DType::Bytes);
                match shard.value(row, name)?.and_then(|value| value.of_type(dtype)) {
                    Some(value) => Ok(Listed::One(value.into_owned())),
                    None if shard.has_values(row, name)? => several(split, id, name, dtype),
                    None => Ok(Listed::Nothing),
                }
            })
            .collect::<Result<_, _>>()?,
    };
    shard.check_index_readable()?;
    Ok(row)
}

/// Returns all values of a feature.
fn several(split: &Split, id: u64, name: &str, dtype: DType) -> anyhow::Result<Listed> {
    let record = split.get(id)?;
    let values = record.example()?.get(name).map(|feature| show::values(&feature, Some(dtype)));
    record.check_readable()?;
    Ok(values.map_or(Listed::Nothing, Listed::Several))
}
