//! Which columns a split has, and how Parquet and Hugging Face name them.

use crate::Error;
use crate::error::DestinationError;
use crate::export::sample::fields;
use crate::ordered::ordered;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{ColumnPath, GroupTypeBuilder, PrimitiveTypeBuilder, Type, TypePtr};
use serde_json::{Map, Value, json};
use shardtool_format::example::Feature;
use shardtool_format::manifest::DType;
use shardtool_read::Split;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

const IMAGE: &str = "image";
const LABEL: &str = "label";

/// The columns of a split in addition to the image, from reading its records once.
pub(in crate::export) struct Schema {
    pub(super) labelled: bool,
    pub(super) columns: Vec<Shape>,
    pub(super) message: TypePtr,
    pub(super) properties: WriterPropertiesPtr,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// Some record has more than one value.
    pub(super) list: bool,
    /// All byte strings are UTF-8.
    text: bool,
}

impl Schema {
    /// Reads the fields of all records.
    ///
    /// # Errors
    /// [`Error::Read`] where a shard cannot be opened.
    pub(in crate::export) fn new(split: &Split, jobs: NonZeroUsize) -> Result<Self, Error> {
        let mut columns = BTreeMap::new();
        ordered(
            jobs,
            split.entry().shards.len(),
            usize::MAX,
            |shard| shapes(split, shard),
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
        let message = message(labelled, &columns).map_err(|source| {
            Error::Destination(DestinationError::Parquet { path: split.name().into(), source: source.into() })
        })?;
        let properties = Arc::new(properties(huggingface(labelled, classes, &columns)));
        Ok(Schema { labelled, columns, message, properties })
    }
}

impl Shape {
    /// Renames a column that has the name of the image or the label.
    fn renamed(self) -> Self {
        let taken = matches!(self.name.as_str(), IMAGE | LABEL);
        Shape { name: if taken { format!("{}_", self.name) } else { self.name }, ..self }
    }
}

/// Returns the shapes of one shard's fields. Unreadable records are reported by the export itself.
fn shapes(split: &Split, shard: usize) -> Result<Vec<Shape>, Error> {
    let mut shapes = BTreeMap::<String, Shape>::new();
    split.shard(shard)?;
    for id in split.starts()[shard]..split.starts()[shard + 1] {
        let record = match split.get(id) {
            Ok(record) => record,
            Err(error) if error.is_bad_sample() => continue,
            Err(error) => return Err(error.into()),
        };
        let Ok(example) = record.example() else { continue };
        for (name, feature) in fields(split, &example) {
            let (dtype, text) = match feature {
                Feature::Empty => continue,
                Feature::Int64(_) => (DType::Int64, false),
                Feature::Float(_) => (DType::Float, false),
                Feature::Bytes(list) => match split.manifest().dtype(&name) {
                    Some(logical) if logical.is_logical() => (logical, false),
                    _ => (DType::Bytes, list.iter().all(|bytes| std::str::from_utf8(bytes).is_ok())),
                },
            };
            let list = feature.count() > 1;
            match shapes.get_mut(&*name) {
                Some(shape) => {
                    shape.list |= list;
                    shape.text &= text;
                }
                None => drop(shapes.insert(name.to_string(), Shape { name: name.to_string(), dtype, list, text })),
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
    for Shape { name, dtype, list, text: is_text } in columns {
        let element = |name: &str| match (dtype, is_text) {
            (DType::Bytes, true) => text(name),
            (DType::Bytes, false) => optional(name, Physical::BYTE_ARRAY).build().map(Arc::new),
            (DType::Int64, _) => optional(name, Physical::INT64).build().map(Arc::new),
            (DType::Float, _) => optional(name, Physical::FLOAT).build().map(Arc::new),
            (DType::Float64, _) => optional(name, Physical::DOUBLE).build().map(Arc::new),
            (DType::Uint64, _) => {
                let unsigned = LogicalType::integer(64, false);
                let unsigned = optional(name, Physical::INT64).with_logical_type(Some(unsigned));
                unsigned.with_converted_type(ConvertedType::UINT_64).build().map(Arc::new)
            }
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

/// Returns the metadata from which the library `datasets` takes images, classes and types.
fn huggingface(labelled: bool, classes: &[String], columns: &[Shape]) -> String {
    let value = |dtype: &str| json!({"dtype": dtype, "_type": "Value"});
    let mut features = Map::from_iter([(IMAGE.to_owned(), json!({"_type": "Image"}))]);
    if labelled {
        let label = if classes.is_empty() { value("int64") } else { json!({"names": classes, "_type": "ClassLabel"}) };
        features.insert(LABEL.to_owned(), label);
    }
    for Shape { name, dtype, list, text } in columns {
        let element = value(match (dtype, text) {
            (DType::Int64, _) => "int64",
            (DType::Float, _) => "float32",
            (DType::Float64, _) => "float64",
            (DType::Uint64, _) => "uint64",
            (DType::Bytes, true) => "string",
            (DType::Bytes, false) => "binary",
        });
        let feature = if *list { json!({"feature": element, "_type": "List"}) } else { element };
        features.insert(name.clone(), feature);
    }
    json!({"info": {"features": Value::Object(features)}}).to_string()
}

/// Disables compression, dictionary and statistics for images, which are compressed already.
fn properties(huggingface: String) -> WriterProperties {
    let image = ColumnPath::new(vec![IMAGE.to_owned(), "bytes".to_owned()]);
    WriterProperties::builder()
        .set_created_by(crate::split::manifest_store::CREATED_BY.to_owned())
        .set_compression(Compression::SNAPPY)
        .set_column_compression(image.clone(), Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled(image.clone(), false)
        .set_column_statistics_enabled(image, EnabledStatistics::None)
        .set_key_value_metadata(Some(vec![KeyValue::new("huggingface".to_owned(), huggingface)]))
        .build()
}
