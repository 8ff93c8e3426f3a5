//! Parquet files: images in Hugging Face's layout, `struct { bytes, path }`, or plain binary columns. All rows of a row
//! group are assumed to be equally long, so that a row's position is known without reading its image.

mod common;
mod in_place;
mod input;
mod pages;
mod places;

pub(super) use in_place::why_not_in_place;

use super::files::ArchiveFile;
use super::json;
use super::roles::Roles;
use super::sample::{Sample, SampleVisitor, VisitedSample};
use crate::error::fault;
use crate::sample::Values;
use crate::source::nested::Nesting;
use crate::{ArchiveError, Error, Reason};
use input::Input;
use pages::CheckedGroup;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::TreeBuilder;
use parquet::record::{Field, List, Row};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};
use places::Places;
use serde_json::Value as JsonValue;
use shardtool_decode::catch_library_panic;
use shardtool_format::index::MAX_FEATURE_BYTES;
use shardtool_format::manifest::DType;
use std::borrow::Cow;
use std::sync::Arc;

/// Members of Hugging Face's image struct.
const MEMBERS: [&str; 2] = ["bytes", "path"];
/// Rows per decoding step; images are large.
const ROWS: usize = 16;

/// Visits the rows of a file. After a damaged page, the rest of the file is lost.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened, and those of the visitor.
pub(super) fn read(file: &ArchiveFile, roles: &Roles, _limit: u64, visit: &mut dyn SampleVisitor) -> Result<(), Error> {
    let places = Places::new(visit.needs_places());
    let opened = open(file, &places)?;
    let mut rows = Rows { number: 0, places, visit };
    match guarded(|| SerializedFileReader::new(opened)) {
        Ok(reader) => {
            let schema = reader.metadata().file_metadata().schema_descr_ptr();
            let candidates = candidates(&schema, roles);
            if let Some(column) = twice(&schema) {
                let (file, column) = (file.name.clone(), column.to_owned());
                return Err(Error::Archive(ArchiveError::TwoColumns { file, column }));
            }
            if let Some(column) = image_lists(&schema, roles) {
                let (file, column) = (file.name.clone(), column.to_owned());
                return Err(Error::Archive(ArchiveError::ImageLists { file, column }));
            }
            if candidates.len() > 1 {
                return Err(super::several_images(file, 0, &candidates, false));
            }
            rows.file(&reader, roles)
        }
        Err(damage) => rows.lost(0, damage),
    }
}

fn open(file: &ArchiveFile, places: &Arc<Places>) -> Result<Input, Error> {
    let opened = crate::input::Input::open(&file.path).and_then(|file| Input::new(file, places.clone()));
    opened.map_err(Error::io("read", &file.path))
}

/// Treats a panic of the library, which some unknown types cause, as damage.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let panicked = |message| Err(ParquetError::NYI(format!("a type that cannot be read ({message})")));
    catch_library_panic(read).unwrap_or_else(panicked)
}

struct Rows<'a> {
    number: u64,
    places: Arc<Places>,
    visit: &'a mut dyn SampleVisitor,
}

impl Rows<'_> {
    fn file(&mut self, reader: &dyn FileReader, roles: &Roles) -> Result<(), Error> {
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let image = image(&schema, roles);
        let without = image.as_ref().map_or(Some(schema.clone()), |image| without(&schema, image));
        let mut start = 0u64;
        for (i, group) in reader.metadata().row_groups().iter().enumerate() {
            let (count, bytes) = (group.num_rows().max(0) as u64, group.total_byte_size().max(0) as u64);
            let at = |row: u64| start.saturating_add((u128::from(row) * u128::from(bytes) / u128::from(count)) as u64);
            let wanted = (0..count).any(|row| self.visit.needs_image(at(row)));
            match if wanted { Some(&schema) } else { without.as_ref() } {
                Some(columns) => {
                    let rows = TreeBuilder::new().with_batch_size(ROWS);
                    let rows = guarded(|| {
                        let group = reader.get_row_group(i)?;
                        rows.as_iter(columns.clone(), &CheckedGroup { group: &*group, places: &self.places })
                    });
                    let mut rows = match rows {
                        Ok(rows) => rows,
                        Err(damage) => return self.lost(start, damage),
                    };
                    for row in 0..count {
                        match guarded(|| rows.next().transpose()).transpose() {
                            Some(Ok(values)) => self.row(at(row)..at(row + 1), values, image.as_deref(), roles)?,
                            Some(Err(damage)) => return self.lost(at(row), damage),
                            None => {
                                return self.lost(at(row), ParquetError::EOF("rows end before their count".to_owned()));
                            }
                        }
                    }
                }
                // The schema has only images, which are not needed.
                None => {
                    for row in 0..count {
                        self.row(at(row)..at(row + 1), Row::new(vec![]), image.as_deref(), roles)?;
                    }
                }
            }
            start = start.saturating_add(bytes);
        }
        Ok(())
    }

    fn row(&mut self, range: std::ops::Range<u64>, row: Row, image: Option<&str>, roles: &Roles) -> Result<(), Error> {
        let (mut key, mut stored, mut elsewhere, mut fields, mut wrong) = (None, None, None, vec![], None);
        let mut strings = vec![];
        if self.visit.needs_places() {
            row.get_column_iter().for_each(|(_, field)| byte_strings(field, &mut strings));
        }
        let mut push = |name, field| {
            if let Err(reason) = push(name, field, &roles.nesting, &mut fields) {
                wrong.get_or_insert(reason);
            }
        };
        for (name, field) in row.into_columns() {
            match field {
                Field::Bytes(bytes) if Some(name.as_str()) == image => stored = Some(bytes),
                Field::Group(row) if Some(name.as_str()) == image => {
                    for (member, field) in row.into_columns() {
                        match (member.as_str(), field) {
                            ("bytes", Field::Bytes(bytes)) => stored = Some(bytes),
                            ("path", Field::Str(path)) => key = Some(path).filter(|path| !path.is_empty()),
                            ("bytes", Field::Null) => elsewhere = Some(()),
                            (_, field) => push(format!("{name}/{member}"), field),
                        }
                    }
                }
                field => push(name, field),
            }
        }
        let sample = match (elsewhere, key) {
            _ if wrong.is_some() => Err(wrong.expect("some")),
            (Some(()), Some(path)) => Err(Reason::Elsewhere { path }),
            // An image that was not read counts as present.
            (_, key) => {
                let image = stored.as_ref().map(|bytes| bytes.data());
                let stored = strings.iter().filter_map(|bytes| self.places.find(bytes.data())).collect();
                Ok(Sample { key: key.map(Cow::Owned), image, image_name: None, members: 0, fields, stored })
            }
        };
        self.item(range, sample)
    }

    /// Rejects the row at which the file becomes unreadable.
    fn lost(&mut self, at: u64, damage: ParquetError) -> Result<(), Error> {
        let unsupported = match &damage {
            ParquetError::NYI(_) => true,
            ParquetError::General(text) => text.contains("feature"),
            _ => false,
        };
        let reason = if unsupported { Reason::ParquetFeature } else { Reason::Parquet };
        self.item(at..at, Err(reason(damage.into())))
    }

    fn item(&mut self, range: std::ops::Range<u64>, sample: Result<Sample<'_>, Reason>) -> Result<(), Error> {
        self.visit.item(VisitedSample {
            number: self.number,
            at: range.start,
            bytes: range.end - range.start,
            sample,
        })?;
        self.number += 1;
        Ok(())
    }
}

/// Returns the name of the image column: by its name, otherwise the first one with Hugging Face's struct.
fn image(schema: &SchemaDescPtr, roles: &Roles) -> Option<String> {
    let columns = schema.root_schema().get_fields();
    let named = roles.image(columns.iter().map(|column| column.name()));
    let at = named.or_else(|| columns.iter().position(|column| is_image(column)));
    at.map(|at| columns[at].name().to_owned())
}

/// Returns the columns with Hugging Face's struct, if none has the name of an image.
fn candidates<'s>(schema: &'s SchemaDescPtr, roles: &Roles) -> Vec<&'s str> {
    let columns = schema.root_schema().get_fields();
    match roles.image(columns.iter().map(|column| column.name())) {
        Some(_) => vec![],
        None => columns.iter().filter(|column| is_image(column)).map(|column| column.name()).collect(),
    }
}

/// Returns a name that two columns have.
fn twice(schema: &SchemaDescPtr) -> Option<&str> {
    let mut names: Vec<_> = schema.root_schema().get_fields().iter().map(|column| column.name()).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Returns a column of lists of images, if no column is the image.
fn image_lists<'s>(schema: &'s SchemaDescPtr, roles: &Roles) -> Option<&'s str> {
    let columns = schema.root_schema().get_fields();
    // A list is a group of a repeated group of the element.
    let inner = |column: &Type| column.is_group() && column.get_fields().iter().any(|inner| holds_image(inner));
    let list = columns.iter().find(|column| !is_image(column) && inner(column));
    list.filter(|_| image(schema, roles).is_none()).map(|column| column.name())
}

fn holds_image(column: &Type) -> bool {
    is_image(column) || (column.is_group() && column.get_fields().iter().any(|inner| holds_image(inner)))
}

fn is_image(column: &Type) -> bool {
    column.is_group()
        && column.get_fields().len() == 2
        && column.get_fields().iter().all(|f| MEMBERS.contains(&f.name()))
}

/// Returns the schema without the image's bytes; `None` if no column remains.
fn without(schema: &SchemaDescPtr, image: &str) -> Option<SchemaDescPtr> {
    let root = schema.root_schema();
    let smaller = |column: &Arc<Type>| -> Option<Arc<Type>> {
        if column.name() != image {
            return Some(column.clone());
        }
        if !column.is_group() {
            return None;
        }
        let left: Vec<_> = column.get_fields().iter().filter(|member| member.name() != "bytes").cloned().collect();
        let info = column.get_basic_info();
        let built = Type::group_type_builder(info.name()).with_repetition(info.repetition()).with_fields(left);
        built.build().ok().filter(|group| !group.get_fields().is_empty()).map(Arc::new)
    };
    let left: Vec<_> = root.get_fields().iter().filter_map(smaller).collect();
    if left.is_empty() {
        return None;
    }
    let root = Type::group_type_builder(root.name()).with_fields(left).build().ok()?;
    Some(Arc::new(SchemaDescriptor::new(Arc::new(root))))
}

/// Adds a column's value; members of a struct as `column/member`, nested lists as flat columns.
fn push(
    name: String,
    field: Field,
    nesting: &Nesting,
    fields: &mut Vec<(Cow<'static, str>, Values)>,
) -> Result<(), Reason> {
    match field {
        field if is_nested(&field) || matches!((&*name, &field), ("objects", Field::Group(_))) => {
            let double = holds_double(&field);
            let columns = json::columns([(name, to_json(&field))].into_iter().collect(), nesting)?;
            // The file declares the type.
            let typed = |values| match values {
                Values::Numbers(_) if double => values.fit(DType::Float64).expect("numbers are float64"),
                values => values,
            };
            fields.extend(columns.into_iter().map(|(name, values)| (Cow::Owned(name), typed(values))));
        }
        Field::Group(row) => {
            let image = row.len() == 2 && row.get_column_iter().all(|(member, _)| MEMBERS.contains(&member.as_str()));
            for (member, field) in row.into_columns() {
                let name = if image && member == "bytes" { name.clone() } else { format!("{name}/{member}") };
                push(name, field, nesting, fields)?;
            }
        }
        // An empty list differs from a missing value only if other samples have nested values.
        Field::ListInternal(list) if list.len() == 0 => {
            let columns = json::columns([(name, JsonValue::Array(vec![]))].into_iter().collect(), nesting)?;
            fields.extend(columns.into_iter().map(|(name, values)| (Cow::Owned(name), values)));
        }
        field => fields.push((Cow::Owned(name), values(&field))),
    }
    Ok(())
}

/// Adds the long byte strings of a field, which stay where they are.
fn byte_strings(field: &Field, strings: &mut Vec<ByteArray>) {
    match field {
        Field::Bytes(bytes) if bytes.len() > MAX_FEATURE_BYTES => strings.push(bytes.clone()),
        Field::Group(row) => row.get_column_iter().for_each(|(_, field)| byte_strings(field, strings)),
        Field::ListInternal(list) => list.elements().iter().for_each(|field| byte_strings(field, strings)),
        _ => {}
    }
}

/// Returns whether a value is a list of lists or of structs.
fn is_nested(field: &Field) -> bool {
    let inner = |field: &Field| matches!(field, Field::ListInternal(_) | Field::Group(_));
    matches!(field, Field::ListInternal(list) if list.elements().iter().any(inner))
}

/// Returns whether a nested value holds a float64.
fn holds_double(field: &Field) -> bool {
    match field {
        Field::Double(_) => true,
        Field::ListInternal(list) => list.elements().iter().any(holds_double),
        Field::Group(row) => row.get_column_iter().any(|(_, field)| holds_double(field)),
        _ => false,
    }
}

/// Converts a nested value to JSON.
fn to_json(field: &Field) -> JsonValue {
    match field {
        Field::Group(row) => row.get_column_iter().map(|(name, field)| (name.clone(), to_json(field))).collect(),
        Field::ListInternal(list) => list.elements().iter().map(to_json).collect(),
        Field::Null => JsonValue::Null,
        field => match values(field) {
            Values::Int64(value) => value.into(),
            Values::Float(value) => value.into(),
            Values::Logical(..) => match field {
                Field::Double(value) => (*value).into(),
                Field::ULong(value) => (*value).into(),
                _ => JsonValue::Null,
            },
            Values::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
            _ => field.to_string().into(),
        },
    }
}

/// Converts a value: numbers, texts, bytes and lists of one of them as they are, everything else to text.
fn values(field: &Field) -> Values {
    if let Some(int) = int(field) {
        return Values::Int64(int);
    }
    match field {
        Field::Null => Values::Missing,
        Field::Float16(value) => Values::Float(f32::from(*value)),
        Field::Float(value) => Values::Float(*value),
        Field::Double(value) => Values::logical([*value]),
        Field::ULong(value) => Values::logical([*value]),
        Field::Str(text) => Values::text(text),
        Field::Bytes(bytes) => Values::Bytes(bytes.data().into()),
        Field::Decimal(_) => Values::text(&without_point(field).unwrap_or_else(|| field.to_string())),
        Field::ListInternal(list) if list.len() == 0 => Values::Missing,
        Field::ListInternal(list) => elements(list).unwrap_or_else(|| Values::text(&field.to_string())),
        _ => Values::text(&field.to_string()),
    }
}

/// Returns an integer. Times and dates become nanoseconds, since files may differ in the unit of a column; one beyond
/// the years 1677 to 2262 is not an integer. Decimals without digits behind the point are integers.
fn int(field: &Field) -> Option<i64> {
    const NANOSECONDS: i64 = 1_000_000_000;
    Some(match field {
        Field::Date(days) => i64::from(*days).checked_mul(86_400 * NANOSECONDS)?,
        Field::TimeMillis(value) => i64::from(*value).checked_mul(NANOSECONDS / 1_000)?,
        Field::TimestampMillis(value) => value.checked_mul(NANOSECONDS / 1_000)?,
        Field::TimeMicros(value) | Field::TimestampMicros(value) => value.checked_mul(NANOSECONDS / 1_000_000)?,
        Field::Decimal(_) => without_point(field)?.parse().ok()?,
        Field::Bool(value) => i64::from(*value),
        Field::Byte(value) => i64::from(*value),
        Field::Short(value) => i64::from(*value),
        Field::Int(value) => i64::from(*value),
        Field::Long(value) => *value,
        Field::UByte(value) => i64::from(*value),
        Field::UShort(value) => i64::from(*value),
        Field::UInt(value) => i64::from(*value),
        _ => return None,
    })
}

/// Returns the digits of a decimal without any behind the point, which its text ends with.
fn without_point(field: &Field) -> Option<String> {
    let text = field.to_string();
    let digits = text.strip_suffix('.').unwrap_or(&text);
    (!digits.contains('.')).then(|| digits.to_owned())
}

fn elements(list: &List) -> Option<Values> {
    let all = list.elements();
    let float = |field: &Field| match values(field) {
        Values::Float(value) => Some(value),
        _ => None,
    };
    let bytes = |field: &Field| match values(field) {
        Values::Bytes(value) if matches!(field, Field::Str(_) | Field::Bytes(_)) => Some(value),
        _ => None,
    };
    let double = |field: &Field| if let Field::Double(value) = field { Some(*value) } else { None };
    let unsigned = |field: &Field| if let Field::ULong(value) = field { Some(*value) } else { None };
    let doubles = || all.iter().map(double).collect::<Option<Vec<_>>>().map(Values::logical);
    let unsigneds = || all.iter().map(unsigned).collect::<Option<Vec<_>>>().map(Values::logical);
    let ints = all.iter().map(int).collect::<Option<_>>().map(Values::Int64s);
    let floats = || all.iter().map(float).collect::<Option<_>>().map(Values::Floats);
    ints.or_else(floats)
        .or_else(doubles)
        .or_else(unsigneds)
        .or_else(|| all.iter().map(bytes).collect::<Option<_>>().map(Values::BytesList))
}

/// Returns the label's class names from Hugging Face's metadata, if present.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn class_names(file: &ArchiveFile, roles: &Roles) -> Result<Option<Vec<String>>, Error> {
    let stated = stated(file)?;
    let names = |label: &str| {
        let names = stated.as_ref()?.get("info")?.get("features")?.get(label)?.get("names")?.as_array()?;
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
    };
    // Without labels of images, the classes are those of objects.
    let objects = || {
        let objects = stated.as_ref()?.get("info")?.get("features")?.get("objects")?;
        let class = ["category", "category_id", "label", "labels", "class"].into_iter();
        let names = class.filter_map(|class| find(find(objects, class)?, "names")?.as_array()).next()?;
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
    };
    Ok(roles.labels().find_map(names).or_else(objects))
}

/// Returns the columns that the metadata say to hold class ids with names.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn class_columns(file: &ArchiveFile) -> Result<Vec<String>, Error> {
    let stated = stated(file)?;
    let features = stated.as_ref().and_then(|stated| stated.get("info")?.get("features")?.as_object());
    let is_class = |feature: &JsonValue| feature.get("_type").and_then(JsonValue::as_str) == Some("ClassLabel");
    let columns = features.into_iter().flatten().filter(|(_, feature)| is_class(feature));
    Ok(columns.map(|(name, _)| name.clone()).collect())
}

/// Returns what Hugging Face's datasets state in the metadata of a file.
///
/// # Errors
/// [`Error::Io`].
fn stated(file: &ArchiveFile) -> Result<Option<JsonValue>, Error> {
    let opened = open(file, &Places::new(false))?;
    let reader = match guarded(|| SerializedFileReader::new(opened)) {
        Ok(reader) => reader,
        Err(error) => {
            return match fault::of_file(&error) {
                Some(code) => Err(Error::io("read", &file.path)(std::io::Error::from_raw_os_error(code))),
                None => Ok(None),
            };
        }
    };
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let stated = metadata.and_then(|all| all.iter().find(|pair| pair.key == "huggingface")?.value.as_ref());
    Ok(stated.and_then(|json| serde_json::from_str::<JsonValue>(json).ok()))
}

/// Returns the first member with this name, at any depth.
fn find<'v>(value: &'v JsonValue, name: &str) -> Option<&'v JsonValue> {
    match value {
        JsonValue::Object(members) => members.get(name).or_else(|| members.values().find_map(|v| find(v, name))),
        JsonValue::Array(list) => list.iter().find_map(|v| find(v, name)),
        _ => None,
    }
}
