//! Summaries of columns: missing values, histograms, the most frequent values.

use crate::columns::{Cell, Column, Values};
use crate::text;
use rayon::prelude::*;
use shardtool_format::names;
use shardtool_read::Split;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Bars of a histogram, and values that are listed.
pub(crate) const BARS: usize = 32;
const LISTED: usize = 20;
/// Distinct numbers that are counted one by one, and distinct texts.
const DISTINCT_NUMBERS: usize = 24;
const DISTINCT_TEXTS: usize = 4096;
/// Cells of the scatter in each direction.
pub(crate) const CELLS: usize = 32;

/// A column, summarised.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    pub(crate) column: Column,
    pub(crate) missing: u64,
    pub(crate) records: u64,
    pub(crate) content: Content,
    /// Shards whose index could not be read.
    pub(crate) problem: Option<String>,
}

/// What a column holds.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Counts of equal ranges between the smallest and the largest value. The last range includes its end.
    Histogram { low: f64, high: f64, counts: Vec<u64>, integer: bool },
    /// Values with their counts. Numbers in their order; texts by count, the most frequent first.
    Values { values: Vec<(String, u64)>, distinct: u64 },
    /// More distinct texts than are counted.
    Distinct,
    /// The indexes do not hold it.
    NotIndexed,
    /// No values.
    Empty,
}

impl Summary {
    /// Describes the values in a few words.
    pub(crate) fn words(&self) -> String {
        match &self.content {
            Content::Histogram { low, high, integer, .. } => {
                format!("{} to {}", text::number(*low), text::number(if *integer { high - 1.0 } else { *high }))
            }
            Content::Values { values, distinct } => {
                let shown: Vec<_> = values
                    .iter()
                    .take(3)
                    .map(|(value, count)| format!("{} ({})", text::fit(value, 40), text::count(*count)))
                    .collect();
                format!("{}: {}", text::plural(*distinct, "distinct value"), shown.join(", "))
            }
            Content::Distinct => "more than 4,096 distinct values".to_owned(),
            Content::NotIndexed => "several or long values".to_owned(),
            Content::Empty => "none".to_owned(),
        }
    }
}

/// What the first reading of a column finds.
#[derive(Default)]
struct Survey<'s> {
    missing: u64,
    low: Option<f64>,
    high: Option<f64>,
    integer: bool,
    numbers: Counts<i64>,
    texts: Counts<&'s [u8]>,
}

/// Counts of distinct values; `None` once there are too many.
struct Counts<K>(Option<HashMap<K, u64>>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Counts(Some(HashMap::new()))
    }
}

impl<K: Hash + Eq> Counts<K> {
    fn add(&mut self, key: K, count: u64, most: usize) {
        if let Some(counts) = &mut self.0 {
            *counts.entry(key).or_default() += count;
            if counts.len() > most {
                self.0 = None;
            }
        }
    }

    fn join<L: Hash + Eq>(&mut self, other: Counts<L>, most: usize, key: impl Fn(L) -> K) {
        match other.0 {
            Some(counts) => counts.into_iter().for_each(|(k, count)| self.add(key(k), count, most)),
            None => self.0 = None,
        }
    }
}

/// Summarises a column of a split. Opens every shard.
pub(crate) fn summarize(split: &Split, column: &Column) -> Summary {
    let mut summary = Summary {
        column: column.clone(),
        missing: 0,
        records: split.len(),
        content: Content::NotIndexed,
        problem: None,
    };
    if !column.indexed {
        return summary;
    }
    let shards = 0..split.entry().shards.len();
    let surveys = shards.clone().into_par_iter().map(|number| survey(split, number, column));
    let whole = surveys.reduce(Whole::default, Whole::join);
    summary.missing = whole.missing;
    summary.problem = whole.problem;
    summary.content = match (whole.low, whole.high) {
        (Some(low), Some(high)) => match whole.numbers.0.filter(|_| whole.integer) {
            Some(counts) => {
                let ordered: BTreeMap<_, _> = counts.into_iter().collect();
                let distinct = ordered.len() as u64;
                Content::Values { values: ordered.into_iter().map(|(n, c)| (n.to_string(), c)).collect(), distinct }
            }
            None => histogram(split, column, (low, high), whole.integer),
        },
        _ => match whole.texts.0 {
            None => Content::Distinct,
            Some(counts) if counts.is_empty() => Content::Empty,
            Some(counts) => {
                let distinct = counts.len() as u64;
                let mut values: Vec<_> = counts.into_iter().collect();
                values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                values.truncate(LISTED);
                Content::Values { values, distinct }
            }
        },
    };
    summary
}

/// The surveys of all shards.
#[derive(Default)]
struct Whole {
    missing: u64,
    low: Option<f64>,
    high: Option<f64>,
    integer: bool,
    numbers: Counts<i64>,
    texts: Counts<String>,
    problem: Option<String>,
}

impl Whole {
    fn join(mut self, other: Whole) -> Whole {
        self.missing += other.missing;
        self.low = smaller(self.low, other.low);
        self.high = larger(self.high, other.high);
        self.integer |= other.integer;
        self.numbers.join(other.numbers, DISTINCT_NUMBERS, |n| n);
        self.texts.join(other.texts, DISTINCT_TEXTS, |t| t);
        self.problem = self.problem.or(other.problem);
        self
    }
}

fn smaller(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::min)
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

fn survey(split: &Split, number: usize, column: &Column) -> Whole {
    let surveyed = || -> shardtool_read::Result<Whole> {
        let shard = split.shard(number)?;
        let values = Values::of(&shard, column)?;
        let mut survey = Survey::default();
        for (_, row) in split.rows(number)? {
            survey.add(values.get(row));
        }
        let mut whole = Whole {
            missing: survey.missing,
            low: survey.low,
            high: survey.high,
            integer: survey.integer,
            numbers: survey.numbers,
            ..Whole::default()
        };
        whole.texts.join(survey.texts, DISTINCT_TEXTS, text::printable);
        shard.check_index_readable()?;
        Ok(whole)
    };
    surveyed().unwrap_or_else(|error| Whole { problem: Some(error.to_string()), ..Whole::default() })
}

impl<'s> Survey<'s> {
    #[inline]
    fn add(&mut self, value: Option<Cell<'s>>) {
        let number = match value {
            None => return self.missing += 1,
            Some(Cell::Int(n)) => {
                self.integer = true;
                self.numbers.add(n, 1, DISTINCT_NUMBERS);
                n as f64
            }
            // NaN and infinities are in no range of a histogram.
            Some(Cell::Float(x)) if !x.is_finite() => return,
            Some(Cell::Float64(x)) if !x.is_finite() => return,
            Some(Cell::Float(x)) => x.into(),
            Some(Cell::Float64(x)) => x,
            Some(Cell::Uint64(n)) => n as f64,
            Some(Cell::Bytes(text)) => return self.texts.add(text, 1, DISTINCT_TEXTS),
        };
        self.low = smaller(self.low, Some(number));
        self.high = larger(self.high, Some(number));
    }
}

/// Returns the bounds and the width of the ranges of a histogram: whole numbers for integers.
fn ranges((low, high): (f64, f64), integer: bool) -> (f64, f64) {
    let width = (high - low) / BARS as f64;
    if integer {
        (low, ((high - low + 1.0) / BARS as f64).ceil().max(1.0))
    } else {
        (low, width.max(f64::MIN_POSITIVE))
    }
}

fn histogram(split: &Split, column: &Column, bounds: (f64, f64), integer: bool) -> Content {
    let (low, width) = ranges(bounds, integer);
    let bars = (((bounds.1 - low) / width).floor() as usize + usize::from(integer)).clamp(1, BARS);
    let counts = |number: usize| {
        let mut counts = vec![0u64; bars];
        let Ok(shard) = split.shard(number) else { return counts };
        let Ok(values) = Values::of(&shard, column) else { return counts };
        let Ok(rows) = split.rows(number) else { return counts };
        for (_, row) in rows {
            let number = match values.get(row) {
                Some(Cell::Int(n)) => n as f64,
                Some(Cell::Float(x)) if x.is_finite() => x.into(),
                Some(Cell::Float64(x)) if x.is_finite() => x,
                Some(Cell::Uint64(n)) => n as f64,
                _ => continue,
            };
            counts[(((number - low) / width) as usize).min(bars - 1)] += 1;
        }
        counts
    };
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let shards = (0..split.entry().shards.len()).into_par_iter();
    let counts = shards.map(counts).reduce(|| vec![0; bars], add);
    Content::Histogram { low, high: low + width * bars as f64, counts, integer }
}

/// Distinct labels that are counted, at most: a hostile dataset may have one for each record.
const MAX_LABELS: usize = 1 << 16;

/// Returns the number of records of each stored label, in ascending order; `None` if the indexes do not hold the labels, or
/// there are more than [`MAX_LABELS`].
pub(crate) fn labels(split: &Split, columns: &[Column]) -> Option<BTreeMap<i64, u64>> {
    let name = split.manifest().label.as_ref()?;
    let column = columns.iter().find(|column| column.name == *name && column.indexed)?;
    let of_shard = |number: usize| {
        let mut counts = Counts::default();
        if let Ok(shard) = split.shard(number)
            && let Ok(Values::I64(column)) = Values::of(&shard, column)
            && let Ok(rows) = split.rows(number)
        {
            rows.filter_map(|(_, row)| column.get(row)).for_each(|label| counts.add(label, 1, MAX_LABELS));
        }
        counts
    };
    let join = |mut a: Counts<i64>, b: Counts<i64>| {
        a.join(b, MAX_LABELS, |label| label);
        a
    };
    let counts = (0..split.entry().shards.len()).into_par_iter().map(of_shard).reduce(Counts::default, join);
    Some(counts.0?.into_iter().collect())
}

/// Sides of images that are drawn, at most, in pixels. Larger ones are mistakes.
const MAX_SIDE: i64 = 1 << 20;

/// Counts of images by width and height.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// Pixels of a cell in each direction.
    pub(crate) cell: (i64, i64),
    /// `[CELLS × CELLS]`, the smallest height first.
    pub(crate) counts: Vec<u64>,
}

/// Returns the sizes of the images of a split; `None` if the indexes do not hold them.
pub(crate) fn sizes(split: &Split, columns: &[Column]) -> Option<Sizes> {
    let column = |name| columns.iter().find(|c: &&Column| c.name == name && c.indexed);
    let (width, height) = (column(names::IMAGE_WIDTH)?, column(names::IMAGE_HEIGHT)?);
    let each = |number: usize, f: &mut dyn FnMut(i64, i64)| {
        if let Ok(shard) = split.shard(number)
            && let (Ok(Values::I64(width)), Ok(Values::I64(height))) =
                (Values::of(&shard, width), Values::of(&shard, height))
            && let Ok(rows) = split.rows(number)
        {
            let known = rows.filter_map(|(_, row)| width.get(row).zip(height.get(row)));
            known.filter(|(w, h)| (1..=MAX_SIDE).contains(w) && (1..=MAX_SIDE).contains(h)).for_each(|(w, h)| f(w, h));
        }
    };
    let shards = || (0..split.entry().shards.len()).into_par_iter();
    let largest = shards().map(|number| {
        let mut largest = (0, 0);
        each(number, &mut |w, h| largest = (largest.0.max(w), largest.1.max(h)));
        largest
    });
    let largest = largest.reduce(|| (0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    let cell = |most: i64| (most / CELLS as i64 + 1).max(1);
    let cell = (cell(largest.0), cell(largest.1));
    let counts = shards().map(|number| {
        let mut counts = vec![0u64; CELLS * CELLS];
        each(number, &mut |w, h| {
            let at = |side: i64, cell: i64| (side.max(0) / cell) as usize;
            counts[at(h, cell.1) * CELLS + at(w, cell.0)] += 1;
        });
        counts
    });
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let counts = counts.reduce(|| vec![0; CELLS * CELLS], add);
    (largest != (0, 0)).then_some(Sizes { cell, counts })
}
