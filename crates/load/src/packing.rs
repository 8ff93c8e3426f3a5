//! Rows of several samples of tokens.

use crate::bad_samples::SampleError;
use crate::buckets::{lengths, of_source};
use crate::columns::{Cell, Column};
use crate::config::{Config, Content};
use crate::error::{Error, Result};
use crate::splits::Splits;
use shardtool_order::{PackedPlan, Packing, Replicas, Source, Truncation};
use std::num::NonZeroU32;
use std::sync::Arc;

/// How the tokens of several samples fill a row. Every column of numbers with any number of values per record is packed, and
/// all of these have one value for each token.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SequencePacking {
    /// An integer feature of the index with the number of tokens of each sample.
    pub feature: String,
    /// Tokens of a row.
    pub capacity: NonZeroU32,
    /// Samples that are packed together, 1 to 65,536: see [`Packing::new`].
    pub window: NonZeroU32,
    /// What happens to samples that are longer than a row.
    pub truncation: Truncation,
}

impl SequencePacking {
    /// Returns packing in windows of 4096 samples, which truncates longer samples.
    pub fn new(feature: impl Into<String>, capacity: NonZeroU32) -> Self {
        let window = const { NonZeroU32::new(4096).expect("not 0") };
        SequencePacking { feature: feature.into(), capacity, window, truncation: Truncation::default() }
    }

    /// Creates the plan of a loader that packs.
    pub(crate) fn plan(
        &self,
        config: &Config,
        source: Source,
        splits: &Splits,
        replicas: Replicas,
    ) -> Result<PackedPlan> {
        let reason = match () {
            () if config.buckets.is_some() => {
                Some("`buckets` divide samples by their lengths instead: leave one of them out")
            }
            () if !matches!(config.content, Content::Columns) || !config.arrays.is_empty() => {
                Some("only columns are packed: leave out images, records and arrays")
            }
            () => None,
        };
        if let Some(reason) = reason {
            return Err(Error::Packing { reason });
        }
        let lengths = of_source(&source, lengths(&self.feature, splits)?);
        let packing = Packing::new(lengths, self.capacity, self.window, self.truncation)?;
        Ok(PackedPlan::new(source, config.order, config.seed, replicas, Arc::new(packing))?)
    }
}

/// Checks that there are tokens, and that every other column has numbers.
pub(crate) fn check_columns(columns: &[Column]) -> Result<()> {
    let reason = if !columns.iter().any(Column::is_ragged) {
        "no column has tokens: expected one of numbers, any number of them per record (`Layout::Ragged`)"
    } else if columns.iter().any(|column| matches!(column.cell(), Cell::Bytes(_))) {
        "a column has byte strings: leave it out"
    } else {
        return Ok(());
    };
    Err(Error::Packing { reason })
}

/// Checks that each packed column of a sample has a value for each of its tokens, which are `expected`, or more if that is
/// `capacity`.
pub(crate) fn check_lengths(
    columns: &[Column],
    cells: &[Cell],
    expected: usize,
    capacity: usize,
) -> std::result::Result<(), SampleError> {
    let cells = columns.iter().zip(cells).filter(|(column, _)| column.is_ragged());
    let wrong = |found: usize| if expected == capacity { found < expected } else { found != expected };
    match cells.map(|(column, cell)| (column, cell.len())).find(|(_, found)| wrong(*found)) {
        Some((column, found)) => Err(SampleError::Values { feature: column.feature.clone(), expected, found }),
        None => Ok(()),
    }
}

/// Bytes of a packed row, in its cells and in the batch's arrays, without those of [`Column::row_bytes`].
pub(crate) fn row_bytes(columns: &[Column], packing: &Packing) -> u64 {
    let samples = samples_per_row(packing);
    let values = columns.iter().map(|column| match (column.is_ragged(), column.cell()) {
        (true, Cell::Float(_)) => 4 * u64::from(packing.capacity()),
        (true, _) => 8 * u64::from(packing.capacity()),
        // Stored per sample.
        (false, _) => 8 * samples * column.width().unwrap_or(1) as u64,
    });
    // Vectors grow by doubling; id and tokens of each sample.
    4 * values.sum::<u64>() + 64 * samples
}

/// Returns the mean number of samples of a full row, rounded up.
pub(crate) fn samples_per_row(packing: &Packing) -> u64 {
    let per_token = u128::from(packing.len()) * u128::from(packing.capacity());
    per_token.div_ceil(packing.total().max(1).into()).clamp(1, packing.window().into()) as u64
}

/// The samples of a batch's packed rows.
#[derive(Clone, Copy, Debug)]
pub struct PackedSamples<'b> {
    /// `[N + 1]`: the samples of row i are `offsets[i]..offsets[i + 1]`, in the order of
    /// [`Batch::ids`](crate::Batch::ids).
    pub offsets: &'b [i64],
    /// `[S]`: the tokens of each sample.
    pub tokens: &'b [i64],
    /// V, the tokens of a row.
    pub capacity: usize,
}

impl PackedSamples<'_> {
    /// Returns the number of each token's sample in its row, from 1, and 0 after the last one: `[N, V]`.
    pub fn segment_ids(&self) -> Vec<i32> {
        self.by_token(|segment, _| segment)
    }

    /// Returns the position of each token in its sample, from 0, and 0 after the last sample: `[N, V]`.
    pub fn position_ids(&self) -> Vec<i32> {
        self.by_token(|_, position| position)
    }

    fn by_token(&self, value: impl Fn(i32, i32) -> i32) -> Vec<i32> {
        let mut array = vec![0; self.offsets.len().saturating_sub(1) * self.capacity];
        for (row, ends) in array.chunks_mut(self.capacity.max(1)).zip(self.offsets.windows(2)) {
            let samples = &self.tokens[ends[0] as usize..ends[1] as usize];
            let tokens =
                (1..).zip(samples).flat_map(|(segment, &tokens)| (0..tokens as i32).map(move |t| (segment, t)));
            row.iter_mut().zip(tokens).for_each(|(out, (segment, position))| *out = value(segment, position));
        }
        array
    }
}
