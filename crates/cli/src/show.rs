//! `shardtool show`.

use crate::exit::Exit;
use crate::headings;
use crate::open::SplitArguments;
use crate::output::{Output, json_number};
use crate::text;
use anyhow::Context;
use serde_json::{Value, json};
use shardtool_format::example::Feature;
use shardtool_format::manifest::DType;
use shardtool_read::Split;
use std::io::Write;

/// Show one record: its position in the shard, and every feature
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    split: SplitArguments,
    /// Number of the record, from 0, or its key; a number with leading zeros is a key
    record: String,
    /// RECORD is a key, also if it is a number
    #[arg(long, help_heading = headings::RECORDS)]
    key: bool,
    /// Print one JSON document
    ///
    /// Binary or long byte strings are given by their length.
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// Number of values of a feature that are listed as text.
const SHOWN: usize = 8;

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (_, split) = arguments.split.open()?;
    let id = arguments.id(&split)?;
    let record = split.get(id)?;
    let frame = record.shard().frame(record.row())?;
    let shard = record.shard().path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let key = record.key()?;
    let example = record.example();
    let values = |name: &str, feature: &Feature<'_>| values(feature, split.manifest().dtype(name));
    if arguments.json {
        let features: serde_json::Map<_, _> = match &example {
            Ok(example) => {
                example.features().iter().map(|(n, f)| (n.to_string(), Value::Array(values(n, f)))).collect()
            }
            Err(_) => serde_json::Map::new(),
        };
        let document = json!({
            "split": split.name(), "id": id, "shard": shard, "row": record.row(), "offset": frame.start,
            "bytes": frame.end - frame.start, "key": String::from_utf8_lossy(&key), "features": features,
        });
        record.check_readable()?;
        out.json(&document)?;
        return Ok(Exit::Success);
    }
    writeln!(out, "record {id} of {}: {}", split.name(), text::printable(&key))?;
    writeln!(
        out,
        "  in {shard}, record {}, byte {}, {} bytes, CRCs good",
        record.row(),
        frame.start,
        frame.end - frame.start
    )?;
    let Ok(example) = &example else {
        writeln!(out, "  not a tf.train.Example: {} opaque bytes", record.data().len())?;
        return Ok(Exit::Success);
    };
    let width = example.features().iter().map(|(name, _)| text::width(name)).max().unwrap_or(0).min(32);
    for (name, feature) in example.features() {
        let all = values(name, feature);
        let shown: Vec<_> = all.iter().take(SHOWN).map(plain).collect();
        let more = if all.len() > SHOWN { format!(" … ({} values)", all.len()) } else { String::new() };
        writeln!(out, "  {}  {}{more}", text::column(&text::printable(name.as_bytes()), width), shown.join(" "))?;
    }
    record.check_readable()?;
    Ok(Exit::Success)
}

impl Arguments {
    /// Returns the number of the record.
    fn id(&self, split: &Split) -> anyhow::Result<u64> {
        let number = self.record.parse::<u64>().ok().filter(|number| !self.key && number.to_string() == self.record);
        if let Some(number) = number {
            return Ok(number);
        }
        let found = split.find(self.record.as_bytes())?;
        found.with_context(|| format!("no record of split `{}` has the key `{}`", split.name(), self.record))
    }
}

/// Returns the values of a feature, whose type in the manifest is `dtype`.
pub(crate) fn values(feature: &Feature<'_>, dtype: Option<DType>) -> Vec<Value> {
    let numbers: Option<Vec<Value>> = match (feature, dtype) {
        (Feature::Bytes(list), Some(DType::Float64)) => {
            list.numbers::<f64>().map(|numbers| numbers.into_iter().map(json_number).collect())
        }
        (Feature::Bytes(list), Some(DType::Uint64)) => {
            list.numbers::<u64>().map(|numbers| numbers.into_iter().map(Value::from).collect())
        }
        _ => None,
    };
    if let Some(numbers) = numbers {
        return numbers;
    }
    match feature {
        Feature::Empty => vec![],
        Feature::Int64(list) => list.iter().map(Value::from).collect(),
        Feature::Float(list) => list.iter().map(json_number).collect(),
        Feature::Bytes(list) => list.iter().map(bytes_value).collect(),
    }
}

fn bytes_value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= 4096 && !text.contains('\0') => Value::from(text),
        _ => json!({ "bytes": bytes.len() }),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => text::fit(&text::printable(s.as_bytes()), 60),
        Value::Object(o) => format!("<{} bytes>", o.get("bytes").and_then(Value::as_u64).unwrap_or(0)),
        other => other.to_string(),
    }
}
