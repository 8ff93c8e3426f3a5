//! Columns of a batch: how the features of records become arrays.

use crate::buffer::OwnedBytes;
use crate::cell::Cell;
use crate::classes::{ResolvedClasses, describe};
use crate::column_values::Values;
use crate::error::{Error, Result, SampleError};
use crate::features::{Features, wrong_layout};
use crate::image::SampleDraws;
use crate::options::{CLASS_NAMES, CLASSES, Classes, Column, InvalidOptions, Layout};
use crate::splits::Splits;
use shardtool_format::example::{Example, Feature, Logical};
use shardtool_format::manifest::DType;
use shardtool_read::{Record, Shard};
use std::sync::Arc;

/// The label of a masked row, which loss functions ignore.
const MASKED_LABEL: i64 = -100;

/// Bytes of a name that an error shows, at most.
const MAX_SHOWN: usize = 200;

/// A column with its type and layout resolved.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedColumn {
    pub(crate) feature: String,
    pub(crate) shape: Shape,
    /// Whether one of the values is drawn.
    draws: bool,
    /// Whether its texts are names of classes, and their ids are delivered.
    class_names: bool,
    /// Which class ids it holds; they are mapped from those of each split.
    class_ids: Option<ClassIds>,
}

/// The class ids of a column.
#[derive(Debug, Clone)]
struct ClassIds {
    classes: Arc<ResolvedClasses>,
    of: ClassesOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassesOf {
    /// Of the record: the feature that the manifest names.
    Records,
    /// Of the objects in its image.
    Objects,
    /// Of texts.
    Names,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Int64(usize),
    Float(usize),
    Float64(usize),
    Uint64(usize),
    RaggedInt64,
    RaggedFloat,
    RaggedFloat64,
    RaggedUint64,
    /// 1 at each class id of a record, 0 at the other classes.
    MultiHot(usize),
    /// Masks of objects, which are drawn from texts.
    Masks,
    Bytes,
}

impl ResolvedColumn {
    /// Returns the column of the label, if the splits have one.
    ///
    /// # Errors
    /// [`Error::Labels`] if the splits do not agree about it.
    pub(crate) fn labels(splits: &Splits) -> Result<Vec<Column>> {
        let known: Vec<_> = splits.as_slice().iter().map(Features::new).collect();
        Ok(common_label(splits, &known)?.map(Column::new).into_iter().collect())
    }

    /// Resolves the columns of a batch. The splits must agree about the type of each, and about the classes if one holds class ids. The
    /// names of the classes of objects are `of_objects`, if these are not those of the other columns.
    ///
    /// # Errors
    /// Those of classes and types, [`Error::NoClassNames`], [`Error::OtherClasses`].
    pub(crate) fn resolve(
        specs: &[Column],
        splits: &Splits,
        (classes, of_objects): (&Classes, Option<&[String]>),
    ) -> Result<Vec<ResolvedColumn>> {
        let known: Vec<_> = splits.as_slice().iter().map(Features::new).collect();
        let label = common_label(splits, &known)?;
        let mut columns =
            specs.iter().map(|spec| ResolvedColumn::of(spec, splits, &known)).collect::<Result<Vec<_>>>()?;
        let of = |column: &ResolvedColumn| match column.dtype() {
            _ if column.class_names => Some(ClassesOf::Names),
            DType::Int64 if label == Some(&column.feature) => Some(ClassesOf::Records),
            DType::Int64 if column.feature == CLASSES => Some(ClassesOf::Objects),
            _ => None,
        };
        let is_own = |column: &ResolvedColumn| of_objects.is_some() && column.feature == CLASS_NAMES;
        let uses: Vec<_> = columns.iter().filter(|column| !is_own(column)).filter_map(of).collect();
        let ids = uses.iter().any(|of| *of != ClassesOf::Names);
        let shared = match (uses.is_empty(), uses.contains(&ClassesOf::Names)) {
            (true, _) => None,
            (false, true) => Some(Arc::new(ResolvedClasses::of_names(splits.as_slice(), classes, ids)?)),
            (false, false) => Some(Arc::new(ResolvedClasses::new(splits.as_slice(), classes)?)),
        };
        let own = of_objects.map(|names| Classes::Names(names.to_vec()));
        let own = own.map(|own| ResolvedClasses::of_names(splits.as_slice(), &own, false)).transpose()?.map(Arc::new);
        for column in &mut columns {
            let Some(of) = of(column) else { continue };
            let Some(resolved) = (if is_own(column) { own.clone() } else { shared.clone() }) else { continue };
            if column.class_names && !is_own(column) {
                check_names(column, &resolved, (splits, classes))?;
            }
            column.class_ids = Some(ClassIds { classes: resolved, of });
        }
        Ok(columns)
    }

    fn of(spec: &Column, splits: &Splits, known: &[Features<'_>]) -> Result<ResolvedColumn> {
        let Column { feature, draw, multi_hot, layout } = spec;
        let (dtype, scalar) = common_type(feature, splits, known)?;
        let scalar = scalar || *draw;
        if let Some(classes) = *multi_hot {
            return match (dtype, classes) {
                (_, 0) => Err(Error::Zero { option: "multi_hot" }),
                _ if *draw => Err(InvalidOptions::DrawnMultiHot { feature: feature.clone() }.into()),
                (DType::Int64 | DType::Bytes, _) => {
                    let (shape, class_names) = (Shape::MultiHot(classes as usize), dtype == DType::Bytes);
                    Ok(ResolvedColumn { feature: feature.clone(), shape, draws: false, class_names, class_ids: None })
                }
                (dtype, _) => Err(wrong_layout(feature, dtype, "class ids, or names of classes")),
            };
        }
        let shape = match (*layout, dtype) {
            (Layout::Numbers { width: 0 }, _) => return Err(Error::Zero { option: "width" }),
            (Layout::Auto, DType::Int64) if scalar => Shape::Int64(1),
            (Layout::Auto, DType::Float) if scalar => Shape::Float(1),
            (Layout::Auto, DType::Float64) if scalar => Shape::Float64(1),
            (Layout::Auto, DType::Uint64) if scalar => Shape::Uint64(1),
            (Layout::Auto | Layout::Ragged, DType::Int64) => Shape::RaggedInt64,
            (Layout::Auto | Layout::Ragged, DType::Float) => Shape::RaggedFloat,
            (Layout::Auto | Layout::Ragged, DType::Float64) => Shape::RaggedFloat64,
            (Layout::Auto | Layout::Ragged, DType::Uint64) => Shape::RaggedUint64,
            (Layout::Numbers { width }, DType::Int64) => Shape::Int64(width),
            (Layout::Numbers { width }, DType::Float) => Shape::Float(width),
            (Layout::Numbers { width }, DType::Float64) => Shape::Float64(width),
            (Layout::Numbers { width }, DType::Uint64) => Shape::Uint64(width),
            (Layout::Auto | Layout::Bytes, DType::Bytes) => Shape::Bytes,
            (Layout::Numbers { .. }, DType::Bytes) => return Err(wrong_layout(feature, dtype, "numbers")),
            (Layout::Ragged, DType::Bytes) if feature == CLASS_NAMES => Shape::RaggedInt64,
            (Layout::Ragged, DType::Bytes) => return Err(wrong_layout(feature, dtype, "ragged numbers")),
            (Layout::Bytes, _) => return Err(wrong_layout(feature, dtype, "byte strings")),
        };
        let class_names = shape == Shape::RaggedInt64 && dtype == DType::Bytes;
        Ok(ResolvedColumn { feature: feature.clone(), shape, draws: *draw, class_names, class_ids: None })
    }

    /// Returns whether it is the label: one integer, masked as loss functions expect.
    pub(crate) fn is_label(&self) -> bool {
        self.class_ids.as_ref().is_some_and(|ids| ids.of == ClassesOf::Records) && self.shape == Shape::Int64(1)
    }

    /// Returns the classes of the splits, if the column holds class ids.
    pub(crate) fn classes(&self) -> Option<&Arc<ResolvedClasses>> {
        self.class_ids.as_ref().map(|ids| &ids.classes)
    }

    /// Returns the type of its values.
    pub(crate) fn dtype(&self) -> DType {
        match self.cell() {
            _ if self.is_multi_hot() => DType::Int64,
            Cell::Int64(_) => DType::Int64,
            Cell::Float(_) => DType::Float,
            Cell::Float64(_) => DType::Float64,
            Cell::Uint64(_) => DType::Uint64,
            // Of what masks are drawn from.
            Cell::Maps(_) | Cell::Bytes(_) => DType::Bytes,
        }
    }

    /// Returns an empty cell.
    pub(crate) fn cell(&self) -> Cell {
        match self.shape {
            Shape::Int64(_) | Shape::RaggedInt64 => Cell::Int64(vec![]),
            Shape::Float(_) | Shape::RaggedFloat | Shape::MultiHot(_) => Cell::Float(vec![]),
            Shape::Float64(_) | Shape::RaggedFloat64 => Cell::Float64(vec![]),
            Shape::Uint64(_) | Shape::RaggedUint64 => Cell::Uint64(vec![]),
            Shape::Masks => Cell::Maps(vec![]),
            Shape::Bytes => Cell::Bytes(vec![]),
        }
    }

    /// Returns whether it has any number of numbers per record.
    pub(crate) fn is_ragged(&self) -> bool {
        self.width().is_none() && self.shape != Shape::Bytes
    }

    /// Returns the bytes that a row takes in every batch, without ragged values.
    pub(crate) fn row_bytes(&self) -> u64 {
        match self.shape {
            Shape::Int64(width) | Shape::Float64(width) | Shape::Uint64(width) => 16 * width as u64,
            Shape::Float(width) | Shape::MultiHot(width) => 8 * width as u64,
            _ => 8,
        }
    }

    /// Returns how many of `held` bytes cannot be planned: all if the column is ragged or holds byte strings, otherwise
    /// 0.
    pub(crate) fn unforeseen(&self, held: u64) -> u64 {
        if self.width().is_none() { held } else { 0 }
    }

    /// Returns the numbers per row; `None` for ragged columns and byte strings.
    pub(crate) fn width(&self) -> Option<usize> {
        match self.shape {
            Shape::Int64(width) | Shape::Float(width) | Shape::Float64(width) | Shape::Uint64(width) => Some(width),
            Shape::MultiHot(width) => Some(width),
            _ => None,
        }
    }

    /// Fills a cell from a record of the split with number `split`: from the shard's index if it has the feature, else from the
    /// Example, which is parsed at most once per record. Masks are left to the image that they belong to. Of several values the first
    /// is taken where one is to be drawn and there are no draws.
    pub(crate) fn read<'r>(
        &self,
        split: usize,
        record: &'r Record,
        example: &mut Option<Example<'r>>,
        (draws, cell): (Option<SampleDraws>, &mut Cell),
    ) -> std::result::Result<(), SampleError> {
        if self.read_index(split, record.shard(), record.row(), cell)? || self.shape == Shape::Masks {
            return Ok(());
        }
        // A column of the version needs no record.
        let feature = match record.shard().changed_feature(record.row(), &self.feature)? {
            Some(changed) => changed,
            None => {
                if example.is_none() {
                    *example = Some(record.example()?);
                }
                example.as_ref().and_then(|e| e.get(&self.feature))
            }
        };
        let feature = feature.unwrap_or(Feature::Empty);
        let (skipped, most) = match (self.draws, feature.count()) {
            (true, several @ 1..) => (draws.map_or(0, |draws| draws.value(several)), 1),
            _ => (0, usize::MAX),
        };
        match (feature, &mut *cell) {
            (Feature::Int64(list), Cell::Int64(values)) => {
                values.extend(list.iter().skip(skipped).take(most));
                self.map_classes(split, values)?;
            }
            (Feature::Int64(list), Cell::Float(values)) if self.is_multi_hot() => {
                let mut ids: Vec<_> = list.iter().collect();
                self.map_classes(split, &mut ids)?;
                self.set_hot(&ids, values)?;
            }
            (Feature::Bytes(list), Cell::Int64(values)) if self.class_names => {
                list.iter().try_for_each(|name| self.class_id(name).map(|id| values.push(id)))?
            }
            (Feature::Bytes(list), Cell::Float(values)) if self.class_names => {
                let ids = list.iter().map(|name| self.class_id(name)).collect::<std::result::Result<Vec<_>, _>>()?;
                self.set_hot(&ids, values)?;
            }
            (Feature::Empty, Cell::Float(values)) if self.is_multi_hot() => self.set_hot(&[], values)?,
            (Feature::Float(list), Cell::Float(values)) => values.extend(list.iter().skip(skipped).take(most)),
            (Feature::Bytes(list), Cell::Float64(values)) => {
                self.extend(values, list.iter().skip(skipped).take(most))?
            }
            (Feature::Bytes(list), Cell::Uint64(values)) => {
                self.extend(values, list.iter().skip(skipped).take(most))?
            }
            (Feature::Bytes(list), Cell::Bytes(values)) => match feature.count() {
                0 => {}
                1 => values.extend_from_slice(list.single().unwrap_or_default()),
                _ if self.draws => values.extend_from_slice(list.iter().nth(skipped).unwrap_or_default()),
                found => return Err(self.count(1, found)),
            },
            // A missing text is empty.
            (Feature::Empty, _) => {}
            _ => return Err(SampleError::Type { feature: self.feature.clone() }),
        }
        match self.width() {
            Some(width) if cell.len() != width => Err(self.count(width, cell.len())),
            _ => Ok(()),
        }
    }

    /// Returns the cells of a record, with class ids as they are stored; `None` if it lacks one.
    pub(crate) fn cells(columns: &[ResolvedColumn], record: &Record) -> Option<Vec<Cell>> {
        let mut example = None;
        let cells = columns.iter().map(|column| {
            let (mut cell, column) = (column.cell(), ResolvedColumn { class_ids: None, ..column.clone() });
            column.read(0, record, &mut example, (None, &mut cell)).ok()?;
            Some(cell)
        });
        cells.collect()
    }

    /// Returns whether it has a number for each class.
    pub(crate) fn is_multi_hot(&self) -> bool {
        matches!(self.shape, Shape::MultiHot(_))
    }

    /// Writes 1 at each class id, 0 elsewhere.
    fn set_hot(&self, ids: &[i64], values: &mut Vec<f32>) -> std::result::Result<(), SampleError> {
        let classes = self.width().unwrap_or(0);
        values.resize(classes, 0.0);
        for id in ids {
            let value = usize::try_from(*id).ok().and_then(|id| values.get_mut(id));
            *value.ok_or_else(|| SampleError::MultiHot { feature: self.feature.clone(), id: *id, classes })? = 1.0;
        }
        Ok(())
    }

    /// Adds the numbers of a logical type.
    fn extend<'b, T: Logical>(
        &self,
        values: &mut Vec<T>,
        list: impl Iterator<Item = &'b [u8]>,
    ) -> std::result::Result<(), SampleError> {
        for bytes in list {
            values.push(T::from_bytes(bytes).ok_or_else(|| SampleError::Type { feature: self.feature.clone() })?);
        }
        Ok(())
    }

    /// Returns the id of a class by its name; 0 where class ids are not mapped.
    fn class_id(&self, name: &[u8]) -> std::result::Result<i64, SampleError> {
        let Some(ids) = &self.class_ids else { return Ok(0) };
        ids.classes.id(name).ok_or_else(|| SampleError::ClassName {
            feature: self.feature.clone(),
            // A hostile record may have a file there.
            name: String::from_utf8_lossy(&name[..name.len().min(MAX_SHOWN)]).into_owned(),
        })
    }

    /// Replaces stored labels by class ids, if the column holds these.
    fn map_classes(&self, split: usize, values: &mut [i64]) -> std::result::Result<(), SampleError> {
        match &self.class_ids {
            None | Some(ClassIds { of: ClassesOf::Names, .. }) => Ok(()),
            Some(ClassIds { classes, of: ClassesOf::Records }) => classes.map_labels(split, values),
            Some(ClassIds { classes, of: ClassesOf::Objects }) => classes.map_objects(split, values),
        }
    }

    /// Fills a cell of one value from the index. Returns whether the index has the value; if not, the cell is empty.
    pub(crate) fn read_index(
        &self,
        split: usize,
        shard: &Shard,
        row: u64,
        cell: &mut Cell,
    ) -> std::result::Result<bool, SampleError> {
        let found = self.stored_in_index(shard, row, cell)?;
        if let Cell::Int64(values) = cell {
            self.map_classes(split, values)?;
        }
        Ok(found)
    }

    /// As [`ResolvedColumn::read_index`], without mapping labels to class ids.
    fn stored_in_index(&self, shard: &Shard, row: u64, cell: &mut Cell) -> std::result::Result<bool, SampleError> {
        cell.clear();
        if (self.shape != Shape::Bytes && self.width() != Some(1)) || self.is_multi_hot() {
            return Ok(false);
        }
        let bytes = || Ok::<_, SampleError>(shard.feature_bytes(&self.feature)?.and_then(|c| c.get(row)));
        match cell {
            Cell::Int64(values) => {
                let value = shard.feature::<i64>(&self.feature)?.and_then(|c| c.get(row));
                values.extend(value);
            }
            Cell::Float(values) => values.extend(shard.feature::<f32>(&self.feature)?.and_then(|c| c.get(row))),
            // A value of another length is found again in the record, and reported.
            Cell::Float64(values) => values.extend(bytes()?.and_then(f64::from_bytes)),
            Cell::Uint64(values) => values.extend(bytes()?.and_then(u64::from_bytes)),
            Cell::Bytes(values) => {
                let value = bytes()?;
                values.extend_from_slice(value.unwrap_or_default());
                return Ok(value.is_some());
            }
            Cell::Maps(_) => {}
        }
        Ok(cell.len() == 1)
    }

    /// Returns whether the index has the values of all these columns, so that they do not need the record.
    pub(crate) fn all_in_index(columns: &[ResolvedColumn], shard: &Shard, row: u64) -> bool {
        columns.iter().all(|column| matches!(column.stored_in_index(shard, row, &mut column.cell()), Ok(true)))
    }

    /// Fills the cell of a row without a sample.
    pub(crate) fn mask(&self, cell: &mut Cell) {
        cell.clear();
        let width = self.width().unwrap_or(0);
        let label = self.class_ids.as_ref().is_some_and(|ids| ids.of == ClassesOf::Records);
        match cell {
            Cell::Int64(values) => values.resize(width, if label { MASKED_LABEL } else { 0 }),
            Cell::Float(values) => values.resize(width, 0.0),
            Cell::Float64(values) => values.resize(width, 0.0),
            Cell::Uint64(values) => values.resize(width, 0),
            Cell::Maps(_) | Cell::Bytes(_) => {}
        }
    }

    /// Returns an empty array, for [`Values::push`].
    pub(crate) fn values(&self) -> Values {
        let offsets = vec![0];
        match self.shape {
            Shape::Int64(_) => Values::Int64(vec![]),
            Shape::Float(_) | Shape::MultiHot(_) => Values::Float(vec![]),
            Shape::Float64(_) => Values::Float64(vec![]),
            Shape::Uint64(_) => Values::Uint64(vec![]),
            Shape::RaggedInt64 => Values::RaggedInt64 { offsets, values: vec![] },
            Shape::RaggedFloat => Values::RaggedFloat { offsets, values: vec![] },
            Shape::RaggedFloat64 => Values::RaggedFloat64 { offsets, values: vec![] },
            Shape::RaggedUint64 => Values::RaggedUint64 { offsets, values: vec![] },
            Shape::Masks => Values::RaggedUint8 { offsets, values: OwnedBytes::default() },
            Shape::Bytes => Values::Bytes { offsets, values: vec![] },
        }
    }

    /// Returns an empty array of any number of values per row.
    pub(crate) fn ragged_values(&self) -> Values {
        let offsets = vec![0];
        match self.cell() {
            Cell::Int64(_) => Values::RaggedInt64 { offsets, values: vec![] },
            Cell::Float(_) => Values::RaggedFloat { offsets, values: vec![] },
            Cell::Float64(_) => Values::RaggedFloat64 { offsets, values: vec![] },
            Cell::Uint64(_) => Values::RaggedUint64 { offsets, values: vec![] },
            Cell::Maps(_) => Values::RaggedUint8 { offsets, values: OwnedBytes::default() },
            Cell::Bytes(_) => Values::Bytes { offsets, values: vec![] },
        }
    }

    fn count(&self, expected: usize, found: usize) -> SampleError {
        SampleError::Values { feature: self.feature.clone(), expected, found }
    }
}

/// Checks that the names of a column can be those of the classes.
///
/// # Errors
/// [`Error::NoClassNames`], [`Error::OtherClasses`].
fn check_names(column: &ResolvedColumn, names: &ResolvedClasses, (splits, classes): (&Splits, &Classes)) -> Result<()> {
    let feature = column.feature.clone();
    if names.names().is_empty() {
        return Err(Error::NoClassNames { feature });
    }
    let labelled = splits.as_slice().iter().find(|split| split.manifest().label.is_some());
    match labelled.filter(|_| !matches!(classes, Classes::Names(_))) {
        Some(split) => Err(Error::OtherClasses { feature, split: describe(split) }),
        None => Ok(()),
    }
}

/// Returns the feature that holds the label in all splits; `None` if none has a label.
fn common_label<'s>(splits: &'s Splits, known: &[Features<'_>]) -> Result<Option<&'s str>> {
    let labels = splits.as_slice().iter().zip(known).map(|(split, known)| {
        let label = split.manifest().label.as_deref();
        (split, label.filter(|label| known.dtype(label).is_some()))
    });
    let labels: Vec<_> = labels.collect();
    let (first, label) = labels[0];
    match labels.iter().find(|(_, other)| *other != label) {
        None => Ok(label),
        Some((other, found)) => Err(Error::Labels {
            first: (describe(first), label.map(str::to_owned)),
            second: (describe(other), found.map(str::to_owned)),
        }),
    }
}

/// Returns the type of a feature, which all splits must have, and whether it is scalar in all of them.
fn common_type(feature: &str, splits: &Splits, known: &[Features<'_>]) -> Result<(DType, bool)> {
    let splits = splits.as_slice();
    let types = splits.iter().zip(known).map(|(split, known)| {
        let none = || Error::NoFeature { split: describe(split), feature: feature.to_owned(), known: known.names() };
        known.dtype(feature).ok_or_else(none)
    });
    let types = types.collect::<Result<Vec<_>>>()?;
    let (dtype, _) = types[0];
    match types.iter().position(|(other, _)| *other != dtype) {
        None => Ok((dtype, types.iter().all(|(_, scalar)| *scalar))),
        Some(other) => Err(Error::Types {
            feature: feature.to_owned(),
            first: (describe(&splits[0]), dtype.name()),
            second: (describe(&splits[other]), types[other].0.name()),
        }),
    }
}
