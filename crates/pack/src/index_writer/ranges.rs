//! The column of the value ranges of a feature with several byte strings.

use super::rows::ByteRows;
use shardtool_format::example::BytesList;
use shardtool_format::index::{MAX_FEATURE_BYTES, ValueRange};

/// The value ranges of a feature. Most features have one value in every record and need none, so ranges are collected
/// from the first record with two values. If earlier records have a value, they are read again at the end.
#[derive(Default)]
pub(super) struct Ranges {
    /// Whether a value is longer than a byte string of a feature column may be.
    long: bool,
    /// Whether a record has two values.
    several: bool,
    state: State,
}

#[derive(Default)]
enum State {
    /// No record has a value.
    #[default]
    Missing,
    /// No record has two values.
    Single,
    /// The rows of all records so far, if shorter padded with empty ones.
    Collected(ByteRows),
    /// A record has two values, and one before it has one.
    Late,
}

/// What a column of value ranges needs to be written.
pub(super) enum Needed {
    Nothing,
    Rows(ByteRows),
    /// All records again.
    SecondPass,
}

impl Ranges {
    /// Collects the ranges of all records, also if none has two values yet.
    pub(super) fn all() -> Self {
        Ranges { state: State::Collected(ByteRows::default()), ..Ranges::default() }
    }

    /// Notes a record with one value.
    pub(super) fn push_one(&mut self, record: u64, data: &[u8], value: &[u8]) {
        self.long |= value.len() > MAX_FEATURE_BYTES;
        match &mut self.state {
            State::Missing => self.state = State::Single,
            State::Single | State::Late => {}
            State::Collected(rows) => {
                rows.pad(record);
                rows.push_with(|row| encode(data, value, row));
            }
        }
    }

    /// Notes a record with several values.
    pub(super) fn push_several(&mut self, record: u64, data: &[u8], values: &BytesList<'_>) {
        self.long = self.long || values.iter().any(|value| value.len() > MAX_FEATURE_BYTES);
        self.several = true;
        if matches!(self.state, State::Missing) {
            self.state = State::Collected(ByteRows::default());
        }
        match &mut self.state {
            State::Collected(rows) => {
                rows.pad(record);
                push_row(rows, data, values);
            }
            state => *state = State::Late,
        }
    }

    pub(super) fn finish(self, records: u64) -> Needed {
        match self.state {
            _ if !self.long || !self.several => Needed::Nothing,
            State::Missing | State::Single => Needed::Nothing,
            State::Late => Needed::SecondPass,
            State::Collected(mut rows) => {
                rows.pad(records);
                Needed::Rows(rows)
            }
        }
    }
}

/// Adds the ranges of all values of a record.
pub(super) fn push_row(rows: &mut ByteRows, data: &[u8], values: &BytesList<'_>) {
    rows.push_with(|row| values.iter().for_each(|value| encode(data, value, row)));
}

fn encode(data: &[u8], value: &[u8], row: &mut Vec<u8>) {
    ValueRange::of(data, value).expect("a value of a record below 4 GiB").encode(row);
}
