//! Contents of splits, records and columns.

use super::{hex, sum};
use serde_json::{Map, Value, json};
use shardtool_decode::{Format, Limits, decode_array, decode_chunk, decode_raw};
use shardtool_format::Damage;
use shardtool_format::array::{ArrayFeatures, ArrayLayout, array_name};
use shardtool_format::example::{Example, Feature};
use shardtool_format::index::{Element, ValueRange};
use shardtool_format::manifest::{DType, FeatureType, Manifest};
use shardtool_format::names;
use shardtool_read::{Dataset, Error, Record, Result, Shard, Split};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let dataset = match Dataset::open(path) {
        Ok(dataset) => dataset,
        Err(error) => return vec![json!({"refused": name(&error)})],
    };
    let mut lines = vec![];
    for split in dataset.splits() {
        let fingerprint = format!("{:08x}", split.entry().fingerprint());
        lines.push(json!({"split": split.name(), "records": split.len(), "fingerprint": fingerprint}));
        for id in 0..split.len() {
            lines.push(
                split
                    .get(id)
                    .and_then(|found| record(split, id, &found))
                    .unwrap_or_else(|error| json!({"split": split.name(), "record": id, "error": name(&error)})),
            );
        }
        let shards = (0..split.entry().shards.len()).filter_map(|number| Some((number, split.shard(number).ok()?)));
        let shards: Vec<_> = shards.collect();
        shards.iter().for_each(|(number, shard)| columns(split, *number, shard, &mut lines));
        lines.extend(lookups(split, &shards));
    }
    lines
}

fn name(error: &Error) -> String {
    error.damage().map_or_else(|| error.to_string(), |damage| damage.name().to_owned())
}

/// Returns the line of a record.
fn record(split: &Split, id: u64, record: &Record) -> Result<Value> {
    let manifest = split.manifest();
    let (image, key) = (record.image()?, record.key()?);
    let example = if manifest.is_opaque() { None } else { Some(record.example()?) };
    let class = example.as_ref().and_then(|example| class(manifest, example));
    let mut line = json!({
        "split": split.name(), "record": id, "key": sum(&key), "data": sum(record.data()), "image": image.map(sum),
        "class": class.map(|class| class.to_string()),
    });
    if let Some(example) = example {
        let features = example.features().iter().filter_map(|(name, f)| Some((name.to_string(), feature(*f)?)));
        line["features"] = Value::Object(features.collect::<Map<_, _>>());
        let numbers: Map<_, _> = manifest.features.iter().filter_map(|listed| numbers(&example, listed)).collect();
        if !numbers.is_empty() {
            line["numbers"] = Value::Object(numbers);
        }
        if let Some(pixels) = pixels(manifest, &example) {
            line["pixels"] = pixels;
        }
        if let Some(arrays) = arrays(&example) {
            line["arrays"] = arrays;
        }
    }
    Ok(line)
}

/// Returns the numbers of a feature of a logical type.
fn numbers(example: &Example<'_>, listed: &FeatureType) -> Option<(String, Value)> {
    let Some(Feature::Bytes(list)) = example.get(&listed.name).filter(|_| listed.dtype.is_logical()) else {
        return None;
    };
    let values: Option<Vec<String>> = match listed.dtype {
        DType::Uint64 => list.numbers::<u64>().map(|all| all.iter().map(u64::to_string).collect()),
        _ => list.numbers::<f64>().map(|all| all.iter().map(|x| format!("{:016x}", x.to_bits())).collect()),
    };
    Some((listed.name.clone(), json!({"type": listed.dtype.name(), "values": values})))
}

/// Returns the class id of a record.
fn class(manifest: &Manifest, example: &Example<'_>) -> Option<i64> {
    let id = example.int64(manifest.label.as_deref()?)?.checked_sub(manifest.label_offset).filter(|id| *id >= 0)?;
    (manifest.classes.is_empty() || id < manifest.classes.len() as i64).then_some(id)
}

/// Returns type and values of a feature that is not missing.
fn feature(feature: Feature<'_>) -> Option<Value> {
    let values: Vec<String> = match feature {
        Feature::Empty => return None,
        Feature::Bytes(list) => list.iter().map(sum).collect(),
        Feature::Float(list) => list.iter().map(float).collect(),
        Feature::Int64(list) => list.iter().map(|value| value.to_string()).collect(),
    };
    Some(json!({"type": feature.dtype().map(|dtype| dtype.name()), "values": values}))
}

fn float(value: f32) -> String {
    format!("{:08x}", value.to_bits())
}

/// Returns the raw pixels of a record, or their error; `None` without raw pixels.
fn pixels(manifest: &Manifest, example: &Example<'_>) -> Option<Value> {
    let image = example.bytes(manifest.image.as_deref()?)?;
    let format = example.bytes(names::IMAGE_FORMAT).and_then(|name| Format::from_name(std::str::from_utf8(name).ok()?));
    let format = format.filter(|format| matches!(format, Format::Raw | Format::RawZstd))?;
    let side = |name| example.int64(name).and_then(|n| u32::try_from(n).ok());
    let (Some(width), Some(height)) = (side(names::IMAGE_WIDTH), side(names::IMAGE_HEIGHT)) else {
        return Some(json!({"error": "PixelsLength"}));
    };
    let mut scratch = vec![];
    Some(match decode_raw(format, image, width, height, &Limits::default(), &mut scratch) {
        Ok(pixels) => json!(sum(pixels.data())),
        Err(error) => json!({"error": error.damage().name()}),
    })
}

/// Returns the arrays of a record, each as its contents or its error; `None` if there are none.
fn arrays(example: &Example<'_>) -> Option<Value> {
    let present = |name: &str| !matches!(example.get(name), None | Some(Feature::Empty));
    let names = example.features().iter().filter_map(|(name, _)| array_name(name, present));
    let arrays: Map<String, Value> = names.map(|name| (name.to_owned(), array(example, name))).collect();
    (!arrays.is_empty()).then_some(Value::Object(arrays))
}

fn array(example: &Example<'_>, name: &str) -> Value {
    let error = |damage: Damage| json!({"error": damage.name()});
    let Some(found) = ArrayFeatures::of(example, name) else { return error(Damage::ImageDecode) };
    let (shape, chunk): (Vec<i64>, Vec<i64>) = (found.shape.iter().collect(), found.chunk.iter().collect());
    let layout = match ArrayLayout::new(&shape, &chunk, found.dtype, found.codec) {
        Ok(layout) => layout,
        Err(invalid) => return error(invalid.damage()),
    };
    // Before anything of the array's length is allocated.
    if let Err(invalid) = layout.check_chunks(found.chunk_count()) {
        return error(invalid.damage());
    }
    let (limits, mut scratch) = (Limits::default(), vec![]);
    let chunks = found.chunks.iter().flat_map(|list| list.iter()).collect::<Vec<_>>();
    for (number, chunk) in (0..).zip(&chunks) {
        if let Err(invalid) = decode_chunk(&layout, number, chunk, &limits, &mut scratch) {
            return error(invalid.damage());
        }
    }
    let mut data = vec![0; layout.bytes() as usize];
    match decode_array(&layout, chunks.into_iter(), &limits, &mut scratch, &mut data) {
        Ok(()) => json!({
            "shape": shape.iter().map(i64::to_string).collect::<Vec<_>>(), "dtype": layout.dtype().name(),
            "data": sum(&data),
        }),
        Err(invalid) => error(invalid.damage()),
    }
}

/// Appends the lines of a shard's features and value ranges, without those of features that the version replaces or drops.
fn columns(split: &Split, number: usize, shard: &Arc<Shard>, lines: &mut Vec<Value>) {
    let companions = &split.entry().shards[number].companions;
    let dropped = split.manifest().dropped_features();
    for column in shard.columns() {
        let feature = column.feature().or(column.values_of());
        if feature.is_some_and(|name| companions.column(name).is_some() || dropped.iter().any(|other| other == name)) {
            continue;
        }
        let values = match (column.feature(), column.values_of(), column.element()) {
            (Some(name), _, Element::I64) => shard.feature::<i64>(name).map(|column| {
                column.map(|rows| json!(rows.iter().map(|row| row.map(|n| n.to_string())).collect::<Vec<_>>()))
            }),
            (Some(name), _, Element::F32) => shard
                .feature::<f32>(name)
                .map(|column| column.map(|rows| json!(rows.iter().map(|row| row.map(float)).collect::<Vec<_>>()))),
            (Some(name), ..) => shard
                .feature_bytes(name)
                .map(|column| column.map(|rows| json!(rows.iter().map(|row| row.map(sum)).collect::<Vec<_>>()))),
            (None, Some(_), _) => shard.variable(column.name()).map(|column| {
                column.map(|rows| json!(rows.iter().map(|row| ranges(row.unwrap_or_default())).collect::<Vec<_>>()))
            }),
            (None, None, _) => continue,
        };
        let (split, column) = (split.name(), column.name());
        lines.push(match values {
            Ok(values) => json!({"split": split, "shard": number, "column": column, "values": values}),
            Err(error) => json!({"split": split, "shard": number, "column": column, "error": name(&error)}),
        });
    }
}

/// Returns the ranges of a row as offset, length and CRC.
fn ranges(row: &[u8]) -> Vec<Value> {
    let range =
        |range: ValueRange| json!([range.offset.to_string(), range.length.to_string(), format!("{:08x}", range.crc)]);
    ValueRange::decode(row).map(range).collect()
}

/// Returns the first record of each key, through the columns of keys.
fn lookups(split: &Split, shards: &[(usize, Arc<Shard>)]) -> Vec<Value> {
    let (mut seen, mut lines) = (BTreeSet::new(), vec![]);
    for (number, shard) in shards {
        let Ok(rows) = split.rows(*number) else { continue };
        for (id, row) in rows {
            let Ok(key) = shard.key(row) else { break };
            if seen.insert(key.to_vec()) {
                lines.push(json!({"split": split.name(), "lookup": hex(&key), "record": id}));
            }
        }
    }
    lines
}
