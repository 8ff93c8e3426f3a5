//! Rows of several samples of tokens.

use crate::cell::Cell;
use crate::columns::ResolvedColumn;
use crate::error::{Error, Result, SampleError};
use crate::lengths::{lengths, of_source};
use crate::options::{Config, Longer, Tokens};
use crate::splits::Splits;
use shardtool_order::{PackedPlan, Packing, Replicas, Source, Truncation};
use std::sync::Arc;

/// Creates the plan of a loader that packs.
pub(crate) fn plan(
    tokens: &Tokens,
    config: &Config,
    source: Source,
    splits: &Splits,
    replicas: Replicas,
) -> Result<PackedPlan> {
    let lengths = of_source(&source, lengths(&tokens.feature, splits)?);
    let truncation = match tokens.longer {
        Longer::Error => Truncation::Refuse,
        Longer::Cut => Truncation::Truncate,
    };
    let packing = Packing::new(lengths, tokens.capacity, tokens.window, truncation)?;
    Ok(PackedPlan::new(source, config.order, config.seed, replicas, Arc::new(packing))?)
}

/// Checks that there are tokens, and that every other column has numbers.
pub(crate) fn check_columns(columns: &[ResolvedColumn]) -> Result<()> {
    let reason = if !columns.iter().any(ResolvedColumn::is_ragged) {
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
    columns: &[ResolvedColumn],
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

/// Bytes of a packed row, in its cells and in the batch's arrays, without those of [`ResolvedColumn::row_bytes`].
pub(crate) fn row_bytes(columns: &[ResolvedColumn], packing: &Packing) -> u64 {
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
