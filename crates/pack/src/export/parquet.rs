//! Parquet as Hugging Face lays out images: `image: struct { bytes, path }`, `label` with the names of its classes in the
//! metadata `huggingface`, and the other fields as columns.

use super::sample::{Sample, fields};
use super::{Done, Refused, Run};
use crate::Error;
use crate::ordered::{Window, ordered};
use crate::pack::Progress;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, GroupTypeBuilder, PrimitiveTypeBuilder, Type, TypePtr};
use serde_json::{Map, Value, json};
use shardtool_format::example::Feature;
use shardtool_format::manifest::Kind;
use shardtool_read::Split;
use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group: what Hugging Face writes where there are images.
const ROWS: usize = 100;
const IMAGE: &str = "image";
const LABEL: &str = "label";

/// The columns of a split besides the image: what its records told.
pub(super) struct Schema {
    labelled: bool,
    columns: Vec<Shape>,
    message: TypePtr,
    properties: WriterPropertiesPtr,
}

/// What values a column has.
#[derive(Debug, Clone, PartialEq)]
struct Shape {
    name: String,
    kind: Kind,
    /// Some record has more than one.
    list: bool,
    /// All byte strings are UTF-8.
    text: bool,
}

impl Schema {
    /// Reads the fields of all records once.
    ///
    /// # Errors
    /// [`Error::Read`] where a shard cannot be opened.
    pub(super) fn new(split: &Split, jobs: NonZeroUsize) -> Result<Self, Error> {
        let mut columns = BTreeMap::new();
        let (shards, window) = (split.entry().shards.len(), Window { pieces: usize::MAX, weight: u64::MAX });
        ordered(
            jobs,
            shards,
            window,
            |_| 0,
            || (),
            |(), shard| shapes(split, shard),
            |_, shapes: Result<Vec<_>, Error>| {
                for shape in shapes? {
                    let name = shape.name.clone();
                    let known: &mut Shape = columns.entry(name).or_insert_with(|| shape.clone());
                    known.list |= shape.list;
                    known.text &= shape.text;
                }
                Ok::<(), Error>(())
            },
        )?;
        let columns: Vec<_> = columns.into_values().map(|shape| shape.renamed()).collect();
        let manifest = split.manifest();
        let (labelled, classes) = (manifest.label.is_some(), &manifest.classes);
        let message =
            message(labelled, &columns).map_err(|source| Error::Parquet { path: split.name().into(), source })?;
        let properties = Arc::new(properties(huggingface(labelled, classes, &columns)));
        Ok(Schema { labelled, columns, message, properties })
    }
}

impl Shape {
    /// Under a name that no column of ours has.
    fn renamed(self) -> Self {
        let taken = matches!(self.name.as_str(), IMAGE | LABEL);
        Shape { name: if taken { format!("{}_", self.name) } else { self.name }, ..self }
    }
}

/// The shapes of one shard's fields. Records that cannot be read are refused later.
fn shapes(split: &Split, shard: usize) -> Result<Vec<Shape>, Error> {
    let mut shapes = BTreeMap::<String, Shape>::new();
    split.shard(shard)?;
    for id in split.starts()[shard]..split.starts()[shard + 1] {
        let Ok(record) = split.get(id) else { continue };
        let Ok(example) = record.example() else { continue };
        for (name, feature) in fields(split, &example) {
            let (kind, text) = match feature {
                Feature::Empty => continue,
                Feature::Int64(_) => (Kind::Int64, false),
                Feature::Float(_) => (Kind::Float, false),
                Feature::Bytes(list) => (Kind::Bytes, list.iter().all(|bytes| std::str::from_utf8(bytes).is_ok())),
            };
            let list = feature.count() > 1;
            match shapes.get_mut(name) {
                Some(shape) => {
                    shape.list |= list;
                    shape.text &= text;
                }
                None => drop(shapes.insert(name.to_owned(), Shape { name: name.to_owned(), kind, list, text })),
            }
        }
    }
    Ok(shapes.into_values().collect())
}

fn optional(name: &str, physical: Physical) -> PrimitiveTypeBuilder<'_> {
    Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL)
}

fn group(name: &str, repetition: Repetition, fields: Vec<TypePtr>) -> GroupTypeBuilder<'_> {
    Type::group_type_builder(name).with_repetition(repetition).with_fields(fields)
}

fn message(labelled: bool, columns: &[Shape]) -> Result<TypePtr, ParquetError> {
    let text = |name: &str| {
        let text = optional(name, Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::String));
        text.with_converted_type(ConvertedType::UTF8).build().map(Arc::new)
    };
    let bytes = Arc::new(optional("bytes", Physical::BYTE_ARRAY).build()?);
    let mut all = vec![Arc::new(group(IMAGE, Repetition::OPTIONAL, vec![bytes, text("path")?]).build()?)];
    if labelled {
        all.push(Arc::new(optional(LABEL, Physical::INT64).build()?));
    }
    for Shape { name, kind, list, text: is_text } in columns {
        let element = |name: &str| match (kind, is_text) {
            (Kind::Bytes, true) => text(name),
            (Kind::Bytes, false) => optional(name, Physical::BYTE_ARRAY).build().map(Arc::new),
            (Kind::Int64, _) => optional(name, Physical::INT64).build().map(Arc::new),
            (Kind::Float, _) => optional(name, Physical::FLOAT).build().map(Arc::new),
        };
        all.push(match list {
            false => element(name)?,
            true => {
                let repeated = Arc::new(group("list", Repetition::REPEATED, vec![element("element")?]).build()?);
                let list = group(name, Repetition::OPTIONAL, vec![repeated]).with_logical_type(Some(LogicalType::List));
                Arc::new(list.with_converted_type(ConvertedType::LIST).build()?)
            }
        });
    }
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(all).build()?))
}

/// The metadata by which the library `datasets` knows images, classes and types.
fn huggingface(labelled: bool, classes: &[String], columns: &[Shape]) -> String {
    let value = |dtype: &str| json!({"dtype": dtype, "_type": "Value"});
    let mut features = Map::from_iter([(IMAGE.to_owned(), json!({"_type": "Image"}))]);
    if labelled {
        let label = if classes.is_empty() { value("int64") } else { json!({"names": classes, "_type": "ClassLabel"}) };
        features.insert(LABEL.to_owned(), label);
    }
    for Shape { name, kind, list, text } in columns {
        let element = value(match (kind, text) {
            (Kind::Int64, _) => "int64",
            (Kind::Float, _) => "float32",
            (Kind::Bytes, true) => "string",
            (Kind::Bytes, false) => "binary",
        });
        let feature = if *list { json!({"feature": element, "_type": "List"}) } else { element };
        features.insert(name.clone(), feature);
    }
    json!({"info": {"features": Value::Object(features)}}).to_string()
}

/// Images are compressed already, and no dictionary or statistics tell anything of them.
fn properties(huggingface: String) -> WriterProperties {
    let image = ColumnPath::new(vec![IMAGE.to_owned(), "bytes".to_owned()]);
    WriterProperties::builder()
        .set_created_by(crate::catalogue::CREATED_BY.to_owned())
        .set_compression(Compression::SNAPPY)
        .set_column_compression(image.clone(), Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled(image.clone(), false)
        .set_column_statistics_enabled(image, EnabledStatistics::None)
        .set_key_value_metadata(Some(vec![KeyValue::new("huggingface".to_owned(), huggingface)]))
        .build()
}

/// Writes a shard's file, `SPLIT-NNNNN-of-NNNNN.parquet`.
///
/// # Errors
/// [`Error::Read`], [`Error::Parquet`], [`Error::Io`].
pub(super) fn write(run: &Run<'_>, schema: &Schema, shard: usize, progress: &dyn Progress) -> Result<Done, Error> {
    let shards = run.split.entry().shards.len();
    let path = run.folder.join(format!("{}-{shard:05}-of-{shards:05}.parquet", run.split.name()));
    let wrong = |source| Error::Parquet { path: path.clone(), source };
    let file = File::create_new(&path).map_err(Error::io("create", &path))?;
    let kept = file.try_clone().map_err(Error::io("create", &path))?;
    let mut writer =
        SerializedFileWriter::new(file, schema.message.clone(), schema.properties.clone()).map_err(wrong)?;
    let mut rows = Rows::new(schema);
    let done = run.each(shard, progress, |sample| {
        rows.push(schema, sample);
        if rows.count == ROWS { rows.flush(&mut writer).map_err(|e| Refused::All(wrong(e))) } else { Ok(()) }
    })?;
    rows.flush(&mut writer).map_err(wrong)?;
    writer.close().map_err(wrong)?;
    kept.sync_all().map_err(Error::io("write", &path))?;
    Ok(Done { files: 1, bytes: length(&path)?, ..done })
}

fn length(path: &Path) -> Result<u64, Error> {
    Ok(std::fs::metadata(path).map_err(Error::io("read", path))?.len())
}

/// The rows of a row group, column by column.
struct Rows {
    count: usize,
    /// In the schema's order: the image's bytes and path, the label, the others.
    columns: Vec<Leaf>,
}

/// The values of one leaf of the schema, with definition and repetition levels.
struct Leaf {
    values: LeafValues,
    definitions: Vec<i16>,
    repetitions: Option<Vec<i16>>,
}

enum LeafValues {
    Bytes(Vec<ByteArray>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
}

impl Rows {
    fn new(schema: &Schema) -> Self {
        let leaf = |kind, list: bool| Leaf {
            values: match kind {
                Kind::Bytes => LeafValues::Bytes(vec![]),
                Kind::Int64 => LeafValues::Int64(vec![]),
                Kind::Float => LeafValues::Float(vec![]),
            },
            definitions: vec![],
            repetitions: list.then(Vec::new),
        };
        let image = [leaf(Kind::Bytes, false), leaf(Kind::Bytes, false)];
        let label = schema.labelled.then(|| leaf(Kind::Int64, false));
        let others = schema.columns.iter().map(|shape| leaf(shape.kind, shape.list));
        Rows { count: 0, columns: image.into_iter().chain(label).chain(others).collect() }
    }

    fn push(&mut self, schema: &Schema, sample: &Sample<'_>) {
        self.count += 1;
        let mut leaves = self.columns.iter_mut();
        let mut next = || leaves.next().expect("a leaf for each column");
        // A struct that is there, with a member that is there.
        next().one(LeafValues::Bytes(vec![ByteArray::from(sample.image.to_vec())]), 2);
        next().one(LeafValues::Bytes(vec![ByteArray::from(sample.key.as_str())]), 2);
        if schema.labelled {
            next().many(LeafValues::Int64(sample.label.into_iter().collect()));
        }
        for shape in &schema.columns {
            let name = shape.name.as_str();
            let own = |field: &&(&str, Feature<'_>)| field.0 == name || name.strip_suffix('_') == Some(field.0);
            next().many(match (sample.fields.iter().find(own).map(|(_, feature)| feature), shape.kind) {
                (Some(Feature::Int64(list)), Kind::Int64) => LeafValues::Int64(list.iter().collect()),
                (Some(Feature::Float(list)), Kind::Float) => LeafValues::Float(list.iter().collect()),
                (Some(Feature::Bytes(list)), Kind::Bytes) => {
                    LeafValues::Bytes(list.iter().map(|bytes| ByteArray::from(bytes.to_vec())).collect())
                }
                (_, Kind::Int64) => LeafValues::Int64(vec![]),
                (_, Kind::Float) => LeafValues::Float(vec![]),
                (_, Kind::Bytes) => LeafValues::Bytes(vec![]),
            });
        }
    }

    /// Writes the rows as a row group.
    fn flush(&mut self, writer: &mut SerializedFileWriter<File>) -> Result<(), ParquetError> {
        if self.count == 0 {
            return Ok(());
        }
        let mut group = writer.next_row_group()?;
        for leaf in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            leaf.write(column.untyped())?;
            column.close()?;
        }
        group.close()?;
        self.count = 0;
        Ok(())
    }
}

impl Leaf {
    /// Takes one value, defined to that level.
    fn one(&mut self, value: LeafValues, level: i16) {
        self.definitions.push(level);
        self.values.append(value);
    }

    /// Takes the values of a row: none is null.
    fn many(&mut self, values: LeafValues) {
        let count = values.len();
        match &mut self.repetitions {
            None => self.definitions.push(i16::from(count > 0)),
            Some(repetitions) => {
                repetitions.extend((0..count.max(1)).map(|i| i16::from(i > 0)));
                self.definitions.extend((0..count.max(1)).map(|_| if count > 0 { 3 } else { 0 }));
            }
        }
        self.values.append(values);
    }

    fn write(&mut self, column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let (definitions, repetitions) = (Some(&self.definitions[..]), self.repetitions.as_deref());
        match (column, &mut self.values) {
            (ColumnWriter::ByteArrayColumnWriter(column), LeafValues::Bytes(values)) => {
                column.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (ColumnWriter::Int64ColumnWriter(column), LeafValues::Int64(values)) => {
                column.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            (ColumnWriter::FloatColumnWriter(column), LeafValues::Float(values)) => {
                column.write_batch(values, definitions, repetitions)?;
                values.clear();
            }
            _ => return Err(ParquetError::General("a column of another type than its values".to_owned())),
        }
        self.definitions.clear();
        self.repetitions.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

impl LeafValues {
    fn len(&self) -> usize {
        match self {
            LeafValues::Bytes(values) => values.len(),
            LeafValues::Int64(values) => values.len(),
            LeafValues::Float(values) => values.len(),
        }
    }

    fn append(&mut self, more: LeafValues) {
        match (self, more) {
            (LeafValues::Bytes(all), LeafValues::Bytes(more)) => all.extend(more),
            (LeafValues::Int64(all), LeafValues::Int64(more)) => all.extend(more),
            (LeafValues::Float(all), LeafValues::Float(more)) => all.extend(more),
            _ => {}
        }
    }
}
