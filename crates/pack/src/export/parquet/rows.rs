//! The rows of a row group, column by column.

use super::schema::Schema;
use crate::export::destination::NewFile;
use crate::export::sample::Sample;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use shardtool_format::example::Feature;
use shardtool_format::manifest::DType;

/// The rows of a row group, column by column.
pub(super) struct Rows {
    pub(super) count: usize,
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
    Float64(Vec<f64>),
}

impl LeafValues {
    /// Returns no values of a type. Unsigned integers are the signed ones of the same bits, as Parquet stores them.
    fn new(dtype: DType) -> Self {
        match dtype {
            DType::Bytes => LeafValues::Bytes(vec![]),
            DType::Int64 | DType::Uint64 => LeafValues::Int64(vec![]),
            DType::Float => LeafValues::Float(vec![]),
            DType::Float64 => LeafValues::Float64(vec![]),
        }
    }

    /// Returns the values of a field; none if they are of another type.
    fn of(feature: Feature<'_>, dtype: DType) -> Self {
        match (feature, dtype) {
            (Feature::Int64(list), DType::Int64) => LeafValues::Int64(list.iter().collect()),
            (Feature::Float(list), DType::Float) => LeafValues::Float(list.iter().collect()),
            (Feature::Bytes(list), DType::Bytes) => {
                LeafValues::Bytes(list.iter().map(|bytes| ByteArray::from(bytes.to_vec())).collect())
            }
            (Feature::Bytes(list), DType::Float64) => LeafValues::Float64(list.numbers().unwrap_or_default()),
            (Feature::Bytes(list), DType::Uint64) => {
                LeafValues::Int64(list.numbers().unwrap_or_default().into_iter().map(u64::cast_signed).collect())
            }
            _ => LeafValues::new(dtype),
        }
    }
}

impl Rows {
    pub(super) fn new(schema: &Schema) -> Self {
        let leaf = |dtype, list: bool| Leaf {
            values: LeafValues::new(dtype),
            definitions: vec![],
            repetitions: list.then(Vec::new),
        };
        let image = [leaf(DType::Bytes, false), leaf(DType::Bytes, false)];
        let label = schema.labelled.then(|| leaf(DType::Int64, false));
        let others = schema.columns.iter().map(|shape| leaf(shape.dtype, shape.list));
        Rows { count: 0, columns: image.into_iter().chain(label).chain(others).collect() }
    }

    pub(super) fn push(&mut self, schema: &Schema, sample: &Sample<'_>) {
        self.count += 1;
        let mut leaves = self.columns.iter_mut();
        let mut next = || leaves.next().expect("a leaf for each column");
        // Level 2: the struct and its member are present.
        next().one(LeafValues::Bytes(vec![ByteArray::from(sample.image.to_vec())]), 2);
        next().one(LeafValues::Bytes(vec![ByteArray::from(sample.key.as_str())]), 2);
        if schema.labelled {
            next().many(LeafValues::Int64(sample.label.into_iter().collect()));
        }
        for shape in &schema.columns {
            let name = shape.name.as_str();
            // The fields are in byte order of their names.
            let field = |name: &str| sample.fields.binary_search_by(|(field, _)| (**field).cmp(name)).ok();
            let field = name.strip_suffix('_').and_then(field).or_else(|| field(name));
            next().many(LeafValues::of(field.map_or(Feature::Empty, |at| sample.fields[at].1), shape.dtype));
        }
    }

    /// Writes the rows as a row group.
    pub(super) fn flush(&mut self, writer: &mut SerializedFileWriter<NewFile>) -> Result<(), ParquetError> {
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
    /// Adds one value with this definition level.
    fn one(&mut self, value: LeafValues, level: i16) {
        self.definitions.push(level);
        self.values.append(value);
    }

    /// Adds the values of a row; no value is null.
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
            (ColumnWriter::DoubleColumnWriter(column), LeafValues::Float64(values)) => {
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
            LeafValues::Float64(values) => values.len(),
        }
    }

    fn append(&mut self, more: LeafValues) {
        match (self, more) {
            (LeafValues::Bytes(all), LeafValues::Bytes(more)) => all.extend(more),
            (LeafValues::Int64(all), LeafValues::Int64(more)) => all.extend(more),
            (LeafValues::Float(all), LeafValues::Float(more)) => all.extend(more),
            (LeafValues::Float64(all), LeafValues::Float64(more)) => all.extend(more),
            _ => {}
        }
    }
}
