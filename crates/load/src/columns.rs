//! Columns beside the images: from the features of records to arrays over a batch.

use crate::bad::Fault;
use crate::config::{ColumnSpec, Layout};
use crate::error::{Error, Result};
use crate::input::Input;
use shardtool_format::example::{Example, Feature};
use shardtool_format::manifest::Kind;
use shardtool_read::{Record, Split};

/// What loss functions ignore: the label of a masked row.
const MASKED_LABEL: i64 = -100;

/// Values of one column of a batch of N rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Integers, `[N, width]`.
    Int64(Vec<i64>),
    /// Floats, `[N, width]`.
    Float(Vec<f32>),
    /// Integers of all rows, one after the other; row i's end at `offsets[i + 1]`.
    RaggedInt64 {
        /// `[N + 1]`, from 0.
        offsets: Vec<i64>,
        /// Of all rows.
        values: Vec<i64>,
    },
    /// Floats of all rows.
    RaggedFloat {
        /// `[N + 1]`, from 0.
        offsets: Vec<i64>,
        /// Of all rows.
        values: Vec<f32>,
    },
    /// Byte strings of all rows.
    Bytes {
        /// `[N + 1]`, from 0.
        offsets: Vec<i64>,
        /// Of all rows.
        values: Vec<u8>,
    },
}

/// A column as it will be: its feature's type known, its layout chosen.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) feature: String,
    pub(crate) shape: Shape,
    /// What is subtracted from its stored values: 0 but for the label.
    offset: i64,
    /// What masked rows hold.
    masked: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Int64(usize),
    Float(usize),
    RaggedInt64,
    RaggedFloat,
    Bytes,
}

/// One row's values of one column; keeps its memory from batch to batch.
#[derive(Debug)]
pub(crate) enum Cell {
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Bytes(Vec<u8>),
}

impl Column {
    /// Settles the columns of a configuration; without one, the label where the dataset has it.
    pub(crate) fn settle(specs: Option<&[ColumnSpec]>, input: &Input) -> Result<Vec<Column>> {
        let split = &input.splits()[0];
        let manifest = split.manifest();
        let known = Known::new(split);
        match (specs, &manifest.label) {
            (Some(specs), _) => specs.iter().map(|spec| Column::of(spec, split, &known)).collect(),
            (None, Some(label)) if known.kind(label).is_some() => {
                let layout = Layout::Auto;
                Ok(vec![Column::of(&ColumnSpec { feature: label.clone(), layout }, split, &known)?])
            }
            (None, _) => Ok(vec![]),
        }
    }

    fn of(spec: &ColumnSpec, split: &Split, known: &Known) -> Result<Column> {
        let ColumnSpec { feature, layout } = spec;
        let none = || Error::NoFeature { feature: feature.clone(), known: known.names() };
        let (kind, scalar) = known.kind(feature).ok_or_else(none)?;
        let shape = match (*layout, kind) {
            (Layout::Numbers { width: 0 }, _) => return Err(Error::Zero { option: "width" }),
            (Layout::Auto, Kind::Int64) if scalar => Shape::Int64(1),
            (Layout::Auto, Kind::Float) if scalar => Shape::Float(1),
            (Layout::Auto | Layout::Ragged, Kind::Int64) => Shape::RaggedInt64,
            (Layout::Auto | Layout::Ragged, Kind::Float) => Shape::RaggedFloat,
            (Layout::Numbers { width }, Kind::Int64) => Shape::Int64(width),
            (Layout::Numbers { width }, Kind::Float) => Shape::Float(width),
            (Layout::Auto | Layout::Bytes, Kind::Bytes) => Shape::Bytes,
            (Layout::Numbers { .. }, Kind::Bytes) => return Err(wrong(feature, kind, "numbers")),
            (Layout::Ragged, Kind::Bytes) => return Err(wrong(feature, kind, "ragged numbers")),
            (Layout::Bytes, _) => return Err(wrong(feature, kind, "byte strings")),
        };
        let label = split.manifest().label.as_deref() == Some(feature.as_str()) && kind == Kind::Int64;
        let (offset, masked) = if label { (split.manifest().label_offset, MASKED_LABEL) } else { (0, 0) };
        Ok(Column { feature: feature.clone(), shape, offset, masked })
    }

    pub(crate) fn cell(&self) -> Cell {
        match self.shape {
            Shape::Int64(_) | Shape::RaggedInt64 => Cell::Int64(vec![]),
            Shape::Float(_) | Shape::RaggedFloat => Cell::Float(vec![]),
            Shape::Bytes => Cell::Bytes(vec![]),
        }
    }

    /// Bytes that a row takes in every batch; ragged values come on top.
    pub(crate) fn row_bytes(&self) -> u64 {
        match self.shape {
            Shape::Int64(width) => 16 * width as u64,
            Shape::Float(width) => 8 * width as u64,
            Shape::RaggedInt64 | Shape::RaggedFloat | Shape::Bytes => 8,
        }
    }

    /// What of `held` bytes no plan can foresee: all of a ragged column, nothing of another.
    pub(crate) fn unforeseen(&self, held: u64) -> u64 {
        if self.width().is_none() { held } else { 0 }
    }

    /// Numbers a row; ragged columns and byte strings have no such width.
    pub(crate) fn width(&self) -> Option<usize> {
        match self.shape {
            Shape::Int64(width) | Shape::Float(width) => Some(width),
            Shape::RaggedInt64 | Shape::RaggedFloat | Shape::Bytes => None,
        }
    }

    /// Fills a cell from a record: from the shard's index where it has the feature, else from the Example, which is parsed
    /// at most once a record.
    pub(crate) fn read<'r>(
        &self,
        record: &'r Record,
        example: &mut Option<Example<'r>>,
        cell: &mut Cell,
    ) -> std::result::Result<(), Fault> {
        cell.clear();
        if self.width() == Some(1) && self.read_index(record, cell)? {
            return Ok(());
        }
        if example.is_none() {
            *example = Some(record.example()?);
        }
        let feature = example.as_ref().and_then(|e| e.get(&self.feature)).unwrap_or(Feature::Empty);
        match (feature, &mut *cell) {
            (Feature::Int64(list), Cell::Int64(values)) => {
                values.extend(list.iter().map(|v| v.wrapping_sub(self.offset)))
            }
            (Feature::Float(list), Cell::Float(values)) => values.extend(list.iter()),
            (Feature::Bytes(list), Cell::Bytes(values)) => {
                let found = feature.count();
                let one = list.single().ok_or_else(|| self.count(1, found))?;
                values.extend_from_slice(one);
            }
            (Feature::Empty, Cell::Bytes(_)) => return Err(self.count(1, 0)),
            (Feature::Empty, _) => {}
            _ => return Err(Fault::Type { feature: self.feature.clone() }),
        }
        match self.width() {
            Some(width) if cell.len() != width => Err(self.count(width, cell.len())),
            _ => Ok(()),
        }
    }

    fn read_index(&self, record: &Record, cell: &mut Cell) -> std::result::Result<bool, Fault> {
        let (shard, row) = (record.shard(), record.row());
        match cell {
            Cell::Int64(values) => {
                let value = shard.feature::<i64>(&self.feature)?.and_then(|c| c.get(row));
                values.extend(value.map(|v| v.wrapping_sub(self.offset)));
            }
            Cell::Float(values) => values.extend(shard.feature::<f32>(&self.feature)?.and_then(|c| c.get(row))),
            Cell::Bytes(_) => {}
        }
        Ok(cell.len() == 1)
    }

    /// Fills the cell of a row that shows no sample.
    pub(crate) fn mask(&self, cell: &mut Cell) {
        cell.clear();
        let width = self.width().unwrap_or(0);
        match cell {
            Cell::Int64(values) => values.resize(width, self.masked),
            Cell::Float(values) => values.resize(width, 0.0),
            Cell::Bytes(_) => {}
        }
    }

    /// An empty column, to be filled by [`Values::push`].
    pub(crate) fn values(&self) -> Values {
        let offsets = vec![0];
        match self.shape {
            Shape::Int64(_) => Values::Int64(vec![]),
            Shape::Float(_) => Values::Float(vec![]),
            Shape::RaggedInt64 => Values::RaggedInt64 { offsets, values: vec![] },
            Shape::RaggedFloat => Values::RaggedFloat { offsets, values: vec![] },
            Shape::Bytes => Values::Bytes { offsets, values: vec![] },
        }
    }

    fn count(&self, expected: usize, found: usize) -> Fault {
        Fault::Values { feature: self.feature.clone(), expected, found }
    }
}

impl Cell {
    fn clear(&mut self) {
        match self {
            Cell::Int64(values) => values.clear(),
            Cell::Float(values) => values.clear(),
            Cell::Bytes(values) => values.clear(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Cell::Int64(values) => values.len(),
            Cell::Float(values) => values.len(),
            Cell::Bytes(values) => values.len(),
        }
    }

    /// Bytes of memory that it keeps.
    pub(crate) fn held(&self) -> u64 {
        (match self {
            Cell::Int64(values) => 8 * values.capacity(),
            Cell::Float(values) => 4 * values.capacity(),
            Cell::Bytes(values) => values.capacity(),
        }) as u64
    }
}

impl Values {
    /// Appends a row.
    pub(crate) fn push(&mut self, cell: &Cell) {
        match (self, cell) {
            (Values::Int64(values), Cell::Int64(cell)) => values.extend_from_slice(cell),
            (Values::Float(values), Cell::Float(cell)) => values.extend_from_slice(cell),
            (Values::RaggedInt64 { offsets, values }, Cell::Int64(cell)) => append(offsets, values, cell),
            (Values::RaggedFloat { offsets, values }, Cell::Float(cell)) => append(offsets, values, cell),
            (Values::Bytes { offsets, values }, Cell::Bytes(cell)) => append(offsets, values, cell),
            _ => unreachable!("cells are made by the column that they go into"),
        }
    }

    /// Bytes of memory that it keeps.
    pub(crate) fn held(&self) -> u64 {
        (match self {
            Values::Int64(values) => 8 * values.capacity(),
            Values::Float(values) => 4 * values.capacity(),
            Values::RaggedInt64 { offsets, values } => 8 * (offsets.capacity() + values.capacity()),
            Values::RaggedFloat { offsets, values } => 8 * offsets.capacity() + 4 * values.capacity(),
            Values::Bytes { offsets, values } => 8 * offsets.capacity() + values.capacity(),
        }) as u64
    }
}

fn append<T: Copy>(offsets: &mut Vec<i64>, values: &mut Vec<T>, cell: &[T]) {
    values.extend_from_slice(cell);
    offsets.push(values.len() as i64);
}

/// Records of each split that are looked at for how long their ragged values are.
const LOOKED_AT: u64 = 16;

/// Bytes that a row's ragged values and byte strings, and its record where that is read into memory, may be expected to take:
/// the most of a few records.
pub(crate) fn expected(columns: &[Column], input: &Input, keeps_records: bool) -> u64 {
    let ragged: Vec<_> = columns.iter().filter(|c| c.width().is_none()).collect();
    if ragged.is_empty() && !keeps_records {
        return 0;
    }
    let rows = input.splits().iter().flat_map(|split| {
        let step = (split.len() / LOOKED_AT).max(1) as usize;
        (0..split.len()).step_by(step).take(LOOKED_AT as usize).filter_map(|id| split.get(id).ok())
    });
    let bytes = rows.filter_map(|record| {
        let mut example = None;
        let cells = ragged.iter().map(|column| {
            let mut cell = column.cell();
            column.read(&record, &mut example, &mut cell).ok()?;
            // Once in its row, which may be twice as long as what is in it, and once among all, which grew by doubling.
            Some(4 * cell.held())
        });
        let cells: u64 = cells.collect::<Option<Vec<_>>>()?.into_iter().sum();
        let own =
            if keeps_records && record.shard().bytes().mapped().is_none() { record.data().len() as u64 } else { 0 };
        Some(cells + own)
    });
    bytes.max().unwrap_or(0)
}

/// Refuses columns that the first record of a split has another number of values for: each sample would be bad.
pub(crate) fn check_counts(columns: &[Column], input: &Input) -> Result<()> {
    for split in input.splits() {
        // What is wrong with the record itself shows when it is loaded.
        let Ok(record) = split.get(0) else { continue };
        let mut example = None;
        for column in columns {
            if let Err(Fault::Values { feature, expected, found }) =
                column.read(&record, &mut example, &mut column.cell())
            {
                return Err(Error::Values { feature, expected, found, split: split.name().to_owned() });
            }
        }
    }
    Ok(())
}

/// Refuses images of a dataset whose records are Examples without one. Opaque records are images themselves.
pub(crate) fn check_images(input: &Input) -> Result<()> {
    match input.splits().iter().find(|split| !split.manifest().has_images()) {
        Some(split) => Err(Error::NoFeature { feature: "image/encoded".to_owned(), known: Known::new(split).names() }),
        None => Ok(()),
    }
}

/// Refuses a feature for masks that the dataset does not have, or not as byte strings.
pub(crate) fn check_mask(feature: &str, input: &Input) -> Result<()> {
    let known = Known::new(&input.splits()[0]);
    match known.kind(feature) {
        Some((Kind::Bytes, _)) => Ok(()),
        Some((kind, _)) => Err(wrong(feature, kind, "label maps")),
        None => Err(Error::NoFeature { feature: feature.to_owned(), known: known.names() }),
    }
}

fn wrong(feature: &str, kind: Kind, layout: &'static str) -> Error {
    Error::Layout { feature: feature.to_owned(), kind: kind.name(), layout }
}

/// What is known of a split's features: name, type, and whether every record holds exactly one number.
struct Known {
    features: Vec<(String, Kind, bool)>,
}

impl Known {
    /// A manifest tells types, and an index which features are scalar. For bare files, which have neither, the first
    /// record does.
    fn new(split: &Split) -> Self {
        let first = (0..split.entry().shards.len()).find(|n| split.entry().shards[*n].records > 0);
        let shard = first.and_then(|n| split.shard(n).ok());
        let indexed = |name: &str| {
            shard.as_ref().is_some_and(|shard| shard.columns().iter().any(|column| column.feature() == Some(name)))
        };
        let listed = &split.manifest().features;
        let mut features: Vec<_> = listed.iter().map(|f| (f.name.clone(), f.kind, indexed(&f.name))).collect();
        if features.is_empty() {
            let record = first.and_then(|_| split.get(0).ok());
            let example = record.as_ref().and_then(|r| r.example().ok());
            features.extend(example.iter().flat_map(|e| e.features()).filter_map(|(name, feature)| {
                let kind = match feature {
                    Feature::Empty => return None,
                    Feature::Bytes(_) => Kind::Bytes,
                    Feature::Float(_) => Kind::Float,
                    Feature::Int64(_) => Kind::Int64,
                };
                Some(((*name).to_owned(), kind, feature.count() == 1))
            }));
        }
        Known { features }
    }

    fn kind(&self, feature: &str) -> Option<(Kind, bool)> {
        self.features.iter().find(|(name, ..)| name == feature).map(|(_, kind, scalar)| (*kind, *scalar))
    }

    fn names(&self) -> Vec<String> {
        self.features.iter().map(|(name, ..)| name.clone()).collect()
    }
}
