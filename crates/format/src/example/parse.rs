//! Parses Features and checks everything in them.

use super::Example;
use super::feature::{BytesList, Feature, FloatList, Int64List, Source};
use crate::wire::{Reader, Value};
use crate::{Error, Result};
use std::borrow::Cow;

impl<'a> Example<'a> {
    /// Parses a record's data as an Example. Accepts any order of features, unpacked lists and unknown fields; of
    /// features with the same name the last one is used, as in TensorFlow.
    ///
    /// # Errors
    /// [`Error::MalformedExample`].
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let mut features = Vec::with_capacity(16);
        let mut example = Reader::new(data);
        while let Some((number, value)) = example.field()? {
            if let (1, Value::Delimited(entries)) = (number, value) {
                parse_features(entries, &mut features)?;
            }
        }
        last_of_each_name(&mut features);
        Ok(Example { features })
    }
}

/// Appends the features of a Features message.
pub(super) fn parse_features<'a>(
    mut entries: Reader<'a>,
    features: &mut Vec<(Cow<'a, str>, Feature<'a>)>,
) -> Result<()> {
    while let Some((number, value)) = entries.field()? {
        if let (1, Value::Delimited(entry)) = (number, value) {
            let (name, value) = parse_entry(entry, parse_feature::<true>)?;
            features.push((Cow::Borrowed(name), value.unwrap_or(Feature::Empty)));
        }
    }
    Ok(())
}

/// Sorts entries by name, and keeps the last one of each name. Canonical records are sorted already.
pub(super) fn last_of_each_name<T>(entries: &mut Vec<(Cow<'_, str>, T)>) {
    if entries.is_sorted_by(|(a, _), (b, _)| a < b) {
        return;
    }
    entries.reverse();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    entries.dedup_by(|(a, _), (b, _)| a == b);
}

/// Returns the name and the value of an entry of a map: the last ones, if there are several. Parses, and so checks, each
/// value.
pub(super) fn parse_entry<'a, T>(
    mut entry: Reader<'a>,
    parse: impl Fn(Reader<'a>) -> Result<T>,
) -> Result<(&'a str, Option<T>)> {
    let (mut name, mut value) = ("", None);
    while let Some((number, field)) = entry.field()? {
        match (number, field) {
            (1, Value::Delimited(key)) => {
                name = std::str::from_utf8(key.bytes()).map_err(|_| key.error("a feature name that is not UTF-8"))?;
            }
            (2, Value::Delimited(message)) => value = Some(parse(message)?),
            _ => {}
        }
    }
    Ok((name, value))
}

/// Parses a Feature message. With `CHECK`, checks the values of all lists.
pub(super) fn parse_feature<const CHECK: bool>(mut message: Reader<'_>) -> Result<Feature<'_>> {
    let (mut feature, mut kind, mut first) = (Feature::Empty, 0, message);
    loop {
        let before = message;
        let Some((number, value)) = message.field()? else { return Ok(feature) };
        let (Value::Delimited(mut list), 1..=3) = (value, number) else {
            return Err(before.error("a Feature that is not a list of bytes, floats or integers"));
        };
        if CHECK {
            loop {
                let offset = list.offset();
                let Some((field, value)) = list.field()? else { break };
                check_value(offset, number, field, value)?;
            }
        }
        // As in every protobuf library, lists of one kind are joined and a list of another kind replaces the previous ones.
        if number != kind {
            (kind, first) = (number, before);
        }
        let lists = Source::Lists(&first.bytes()[..message.offset() - first.offset()]);
        feature = match kind {
            1 => Feature::Bytes(BytesList(lists)),
            2 => Feature::Float(FloatList(lists)),
            _ => Feature::Int64(Int64List(lists)),
        };
    }
}

fn check_value(offset: usize, kind: u64, field: u64, value: Value<'_>) -> Result<()> {
    match (kind, field, value) {
        (2, 1, Value::Delimited(packed)) if packed.bytes().len() % 4 != 0 => {
            Err(packed.error("packed floats that are not a multiple of four bytes"))
        }
        (1, 1, Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64)
        | (2, 1, Value::Varint(_) | Value::Fixed64)
        | (3, 1, Value::Fixed32(_) | Value::Fixed64) => {
            Err(Error::MalformedExample { offset, problem: "a value of another type than its list" })
        }
        (3, 1, Value::Delimited(mut packed)) => {
            while !packed.is_empty() {
                packed.varint()?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
