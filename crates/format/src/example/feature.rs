//! One feature: parsed, which checks its values, then read from the checked bytes.

use crate::manifest::DType;
use crate::wire::{Reader, Value};
use crate::{Error, Result};

/// The values of one feature.
#[derive(Debug, Clone, Copy)]
pub enum Feature<'a> {
    /// No list: a missing feature, in TensorFlow's terms.
    Empty,
    /// Byte strings.
    Bytes(BytesList<'a>),
    /// 32-bit floats.
    Float(FloatList<'a>),
    /// 64-bit integers.
    Int64(Int64List<'a>),
}

impl<'a> Feature<'a> {
    /// Parses a message `Feature`, such as a row of a column `encoded:NAME`.
    ///
    /// # Errors
    /// [`Error::MalformedExample`], with an offset in the message.
    pub fn parse(message: &'a [u8]) -> Result<Self> {
        parse_feature::<true>(Reader::new(message))
    }

    /// Returns a feature of one integer.
    pub fn of_int64(value: i64) -> Self {
        Feature::Int64(Int64List(Source::One(Value::Varint(value as u64))))
    }

    /// Returns a feature of one float.
    pub fn of_float(value: f32) -> Self {
        Feature::Float(FloatList(Source::One(Value::Fixed32(value.to_le_bytes()))))
    }

    /// Returns a feature of one byte string.
    pub fn of_bytes(value: &'a [u8]) -> Self {
        Feature::Bytes(BytesList(Source::One(Value::Delimited(Reader::new(value)))))
    }

    /// Returns the type of the values; `None` without a list.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Feature::Empty => None,
            Feature::Bytes(_) => Some(DType::Bytes),
            Feature::Float(_) => Some(DType::Float),
            Feature::Int64(_) => Some(DType::Int64),
        }
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        match self {
            Feature::Empty => 0,
            Feature::Bytes(list) => list.iter().count(),
            Feature::Float(list) => list.iter().count(),
            Feature::Int64(list) => list.iter().count(),
        }
    }

    /// Returns the lists of a feature of one type in an Example; empty for one of another type.
    fn lists(&self, dtype: DType) -> Reader<'a> {
        let source = match self {
            Feature::Bytes(BytesList(source)) if dtype == DType::Bytes => source,
            Feature::Float(FloatList(source)) if dtype == DType::Float => source,
            Feature::Int64(Int64List(source)) if dtype == DType::Int64 => source,
            _ => return Reader::new(&[]),
        };
        match source {
            Source::Lists(lists) => Reader::new(lists),
            Source::Steps(_) | Source::Lengths(_) | Source::One(_) => Reader::new(&[]),
        }
    }
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

/// The checked bytes that hold the values of a feature.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// One or more list fields of a Feature message, all of the feature's type.
    Lists(&'a [u8]),
    /// A FeatureList message: the values of all its steps that are of the feature's type.
    Steps(&'a [u8]),
    /// A FeatureList message: the number of values of each step.
    Lengths(&'a [u8]),
    /// One value, which lies outside of a record.
    One(Value<'a>),
}

/// Byte strings of a feature.
#[derive(Debug, Clone, Copy)]
pub struct BytesList<'a>(pub(super) Source<'a>);

impl<'a> BytesList<'a> {
    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        Values::new(self.0, DType::Bytes).filter_map(|value| match value {
            Value::Delimited(bytes) => Some(bytes.bytes()),
            _ => None,
        })
    }

    /// Returns the value of a list that holds exactly one.
    pub fn single(&self) -> Option<&'a [u8]> {
        self.single_field().or_else(|| single(self.iter()))
    }

    /// Returns the only value of the only list, as nearly all features have it; `None` for anything else.
    fn single_field(&self) -> Option<&'a [u8]> {
        let Source::Lists(lists) = self.0 else { return None };
        let only = |mut message: Reader<'a>| match message.field() {
            Ok(Some((number, Value::Delimited(part)))) if message.is_empty() => Some((number, part)),
            _ => None,
        };
        let (_, list) = only(Reader::new(lists))?;
        let (number, value) = only(list)?;
        (number == 1).then_some(value.bytes())
    }
}

/// Floats of a feature.
#[derive(Debug, Clone, Copy)]
pub struct FloatList<'a>(pub(super) Source<'a>);

impl<'a> FloatList<'a> {
    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = f32> + use<'a> {
        let float = |bytes: &[u8]| f32::from_le_bytes(*bytes.first_chunk().expect("four bytes"));
        Values::new(self.0, DType::Float).flat_map(move |value| {
            let (one, packed) = match value {
                Value::Fixed32(bytes) => (Some(float(&bytes)), &[][..]),
                Value::Delimited(packed) => (None, packed.bytes()),
                _ => (None, &[][..]),
            };
            one.into_iter().chain(packed.chunks_exact(4).map(float))
        })
    }

    /// Returns the value of a list that holds exactly one.
    pub fn single(&self) -> Option<f32> {
        single(self.iter())
    }
}

/// Integers of a feature.
#[derive(Debug, Clone, Copy)]
pub struct Int64List<'a>(pub(super) Source<'a>);

impl<'a> Int64List<'a> {
    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + use<'a> {
        let steps = if let Source::Lengths(steps) = self.0 { steps } else { &[] };
        let lengths = step_features(Reader::new(steps)).map(|step| step.count() as i64);
        let values = Values::new(self.0, DType::Int64).flat_map(|value| {
            let (one, mut packed) = match value {
                Value::Varint(value) => (Some(value as i64), Reader::new(&[])),
                Value::Delimited(packed) => (None, packed),
                _ => (None, Reader::new(&[])),
            };
            let rest = std::iter::from_fn(move || packed.varint().ok().map(|value| value as i64));
            one.into_iter().chain(rest)
        });
        values.chain(lengths)
    }

    /// Returns the value of a list that holds exactly one.
    pub fn single(&self) -> Option<i64> {
        single(self.iter())
    }
}

/// Iterates over the `value` fields of all lists of a feature.
struct Values<'a> {
    dtype: DType,
    /// The rest of the FeatureList, of the lists of a Feature, and of a list.
    steps: Reader<'a>,
    lists: Reader<'a>,
    list: Reader<'a>,
    /// A value that follows.
    one: Option<Value<'a>>,
}

impl<'a> Values<'a> {
    fn new(source: Source<'a>, dtype: DType) -> Self {
        let none = Reader::new(&[]);
        let (steps, lists, one) = match source {
            Source::Lists(lists) => (none, Reader::new(lists), None),
            Source::Steps(steps) => (Reader::new(steps), none, None),
            Source::Lengths(_) => (none, none, None),
            Source::One(value) => (none, none, Some(value)),
        };
        Values { dtype, steps, lists, list: none, one }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        loop {
            while let Ok(Some((number, value))) = self.list.field() {
                if number == 1 {
                    return Some(value);
                }
            }
            if let Ok(Some((_, Value::Delimited(list)))) = self.lists.field() {
                self.list = list;
                continue;
            }
            match next_step(&mut self.steps) {
                Some(step) => self.lists = step.lists(self.dtype),
                None => return self.one.take(),
            }
        }
    }
}

/// Iterates over the Features of a checked FeatureList.
fn step_features<'a>(mut steps: Reader<'a>) -> impl Iterator<Item = Feature<'a>> + use<'a> {
    std::iter::from_fn(move || next_step(&mut steps))
}

fn next_step<'a>(steps: &mut Reader<'a>) -> Option<Feature<'a>> {
    while let Ok(Some((number, value))) = steps.field() {
        if let (1, Value::Delimited(feature)) = (number, value) {
            return parse_feature::<false>(feature).ok();
        }
    }
    None
}

fn single<T>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.next().is_none().then_some(first)
}
