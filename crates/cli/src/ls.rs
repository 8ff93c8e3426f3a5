//! `shardtool ls`.

use crate::exit::Exit;
use crate::open::SplitArguments;
use crate::text;
use serde_json::json;
use shardtool_format::{index, names};
use shardtool_read::Split;
use std::io::Write;

/// List records: id, class, size, key
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    split: SplitArguments,
    /// First record to list, counted from 0
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Number of records to list [default: all]
    #[arg(long)]
    count: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
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
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (_, split) = arguments.split.open()?;
    let end = arguments.count.map_or(split.len(), |count| split.len().min(arguments.from.saturating_add(count)));
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut rows = vec![];
    for id in arguments.from..end {
        let row = row(&split, id)?;
        if arguments.json {
            rows.push(json!({
                "id": row.id, "shard": row.shard, "key": String::from_utf8_lossy(&row.key), "label": row.label,
                "width": row.width, "height": row.height, "bytes": row.bytes,
            }));
            continue;
        }
        let class = row.label.and_then(|l| split.manifest().classes.get(usize::try_from(l).ok()?).cloned());
        let class = class.or(row.label.map(|l| l.to_string())).unwrap_or_else(|| "-".to_owned());
        let size = row.width.zip(row.height).map_or("-".to_owned(), |(w, h)| format!("{w}x{h}"));
        let bytes = row.bytes.map_or("-".to_owned(), |b| text::bytes(b.into()));
        let (class, key) = (text::column(&text::printable(class.as_bytes()), 16), text::printable(&row.key));
        writeln!(out, "{:>8}  {class} {size:>11} {bytes:>9}  {key}", row.id)?;
    }
    if arguments.json {
        writeln!(out, "{:#}", json!({ "split": split.name(), "records": split.len(), "listed": rows }))?;
    }
    out.flush()?;
    Ok(Exit::Success)
}

fn row(split: &Split, id: u64) -> anyhow::Result<Row> {
    let (number, row) = split.locate(id)?;
    let shard = split.shard(number)?;
    let manifest = split.manifest();
    let integer = |name: &str| anyhow::Ok(shard.feature::<i64>(name)?.and_then(|column| column.get(row)));
    let label = manifest.label.as_deref().map(integer).transpose()?.flatten();
    Ok(Row {
        id,
        shard: shard.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        key: shard.key(row)?.into_owned(),
        label: label.map(|l| l.saturating_sub(manifest.label_offset)),
        width: integer(names::IMAGE_WIDTH)?,
        height: integer(names::IMAGE_HEIGHT)?,
        bytes: shard.column::<u32>(index::IMAGE_LENGTH)?.and_then(|column| column.get(row)),
    })
}
