//! Parses Examples: messages of features, whose entries are those of a map.

use super::Example;
use super::feature::{Feature, parse_feature};
use crate::Result;
use crate::wire::{Reader, Value};
use std::borrow::Cow;

impl<'a> Example<'a> {
    /// Parses a record's data as an Example. Accepts any order of features, unpacked lists and unknown fields; of
    /// features with the same name the last one is used, as in TensorFlow.
    ///
    /// # Errors
    /// [`crate::Error::MalformedExample`].
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
