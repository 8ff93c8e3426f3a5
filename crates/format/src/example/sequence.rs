//! Parses a `tf.train.SequenceExample`. Each feature list NAME becomes two features: NAME with the values of all steps, and
//! the integers `NAME/lengths` with the number of values of each step.

use super::Example;
use super::feature::{BytesList, Feature, FloatList, Int64List, Source, parse_feature};
use super::parse::{last_of_each_name, parse_entry, parse_features};
use crate::manifest::DType;
use crate::wire::{Reader, Value};
use crate::{Error, Result};
use std::borrow::Cow;

/// What follows the name of a feature list in the name of the number of values of its steps.
const LENGTHS: &str = "/lengths";

/// A feature list of which every step is checked.
struct FeatureList<'a> {
    /// Offset in the record, for errors.
    offset: usize,
    steps: &'a [u8],
    /// Type of the values; `None` if no step has a value.
    dtype: Option<DType>,
}

impl<'a> Example<'a> {
    /// Parses a record's data as a SequenceExample. Context features are those of [`Example::parse`].
    ///
    /// # Errors
    /// [`Error::MalformedExample`], also if a feature list has values of several types, or if two features have the same
    /// name.
    pub fn parse_sequence(data: &'a [u8]) -> Result<Self> {
        let (mut features, mut lists) = (Vec::with_capacity(16), vec![]);
        let mut example = Reader::new(data);
        while let Some((number, value)) = example.field()? {
            match (number, value) {
                (1, Value::Delimited(entries)) => parse_features(entries, &mut features)?,
                (2, Value::Delimited(entries)) => parse_lists(entries, &mut lists)?,
                _ => {}
            }
        }
        last_of_each_name(&mut features);
        last_of_each_name(&mut lists);
        for (name, list) in &lists {
            features
                .push((Cow::Owned(format!("{name}{LENGTHS}")), Feature::Int64(Int64List(Source::Lengths(list.steps)))));
            features.push((name.clone(), list.values()));
        }
        features.sort_by(|(a, _), (b, _)| a.cmp(b));
        match features.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            None => Ok(Example { features }),
            Some(pair) => {
                let of = |name: &str, list: &str| name == list || name.strip_suffix(LENGTHS) == Some(list);
                let list = lists.iter().find(|(list, _)| of(&pair[0].0, list));
                let offset = list.map_or(0, |(_, list)| list.offset);
                Err(Error::MalformedExample { offset, problem: "a feature list with the name of another feature" })
            }
        }
    }
}

impl<'a> FeatureList<'a> {
    /// Parses a FeatureList message.
    fn parse(message: Reader<'a>) -> Result<Self> {
        let (mut steps, mut dtype) = (message, None);
        loop {
            let before = steps;
            let Some((number, value)) = steps.field()? else { break };
            let (1, Value::Delimited(step)) = (number, value) else { continue };
            let feature = parse_feature::<true>(step)?;
            let of_step = feature.dtype().filter(|_| feature.count() > 0);
            if dtype.is_some() && of_step.is_some() && dtype != of_step {
                return Err(before.error("a feature list with values of several types"));
            }
            dtype = dtype.or(of_step);
        }
        Ok(FeatureList { offset: message.offset(), steps: message.bytes(), dtype })
    }

    /// Returns the feature of the values of all steps; a missing feature if there are none.
    fn values(&self) -> Feature<'a> {
        let source = Source::Steps(self.steps);
        match self.dtype {
            None => Feature::Empty,
            Some(DType::Bytes | DType::Float64 | DType::Uint64) => Feature::Bytes(BytesList(source)),
            Some(DType::Float) => Feature::Float(FloatList(source)),
            Some(DType::Int64) => Feature::Int64(Int64List(source)),
        }
    }
}

/// Appends the feature lists of a FeatureLists message.
fn parse_lists<'a>(mut entries: Reader<'a>, lists: &mut Vec<(Cow<'a, str>, FeatureList<'a>)>) -> Result<()> {
    while let Some((number, value)) = entries.field()? {
        if let (1, Value::Delimited(entry)) = (number, value) {
            let (name, list) = parse_entry(entry, FeatureList::parse)?;
            let list = list.map_or_else(|| FeatureList::parse(Reader::new(&[])), Ok)?;
            lists.push((Cow::Borrowed(name), list));
        }
    }
    Ok(())
}

/// Returns whether a record has feature lists: a field 2 that parses as FeatureLists with at least one list. In a dataset
/// of Examples, readers ignore it.
pub fn has_feature_lists(data: &[u8]) -> bool {
    let mut example = Reader::new(data);
    while let Ok(Some((number, value))) = example.field() {
        if let (2, Value::Delimited(entries)) = (number, value) {
            let mut lists = vec![];
            if parse_lists(entries, &mut lists).is_ok() && !lists.is_empty() {
                return true;
            }
        }
    }
    false
}
