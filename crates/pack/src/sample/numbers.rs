//! Numbers of sources whose types are inferred, and the type that holds all numbers of a column exactly.

use super::Values;
use serde::{Deserialize, Serialize};
use shardtool_format::manifest::DType;
use std::fmt;

/// Significant decimal digits that float32 holds: a number with at most these reads back as the same text.
const FLOAT32_DIGITS: usize = f32::DIGITS as usize;

/// A number of a text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Number {
    Int64(i64),
    /// An integer above those of int64.
    Uint64(u64),
    Float64(f64),
}

impl Number {
    /// Returns a JSON number.
    pub(crate) fn of_json(number: &serde_json::Number) -> Self {
        let float = || Number::Float64(number.as_f64().unwrap_or(f64::NAN));
        number.as_i64().map(Number::Int64).or_else(|| number.as_u64().map(Number::Uint64)).unwrap_or_else(float)
    }

    /// Returns an unsigned integer.
    pub(crate) fn of_uint64(value: u64) -> Self {
        i64::try_from(value).map_or(Number::Uint64(value), Number::Int64)
    }

    /// Parses a number; `None` for other text, and for integers and floats that no type holds.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let int = text.parse().map(Number::Int64).ok().or_else(|| text.parse().map(Number::Uint64).ok());
        // Without a full stop or an exponent it is an integer.
        let float = || text.parse().ok().filter(|_| text.contains(['.', 'e', 'E'])).map(Number::Float64);
        int.or_else(float).filter(|number| number.to_f64().is_finite())
    }

    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Int64(value) => value as f64,
            Number::Uint64(value) => value as f64,
            Number::Float64(value) => value,
        }
    }

    /// Returns the integer; `None` for floats.
    pub(crate) fn int(self) -> Option<i128> {
        match self {
            Number::Int64(value) => Some(value.into()),
            Number::Uint64(value) => Some(value.into()),
            Number::Float64(_) => None,
        }
    }

    /// Returns an integer for a float that is one, so that a column of integers takes it: in a column with 7.5, 8 is read as 8.0. Floats of 2⁵³ and
    /// more stay floats: the integers between them are lost.
    pub(crate) fn whole(self) -> Self {
        match self {
            Number::Float64(value) if value.fract() == 0.0 && value.abs() < (1u64 << f64::MANTISSA_DIGITS) as f64 => {
                Number::Int64(value as i64)
            }
            number => number,
        }
    }

    /// Returns whether a type holds the number: exactly, or a float so that it reads back as the same text.
    pub(crate) fn fits(self, dtype: DType) -> bool {
        match dtype {
            DType::Int64 => self.int().is_some_and(|int| i64::try_from(int).is_ok()),
            DType::Uint64 => self.int().is_some_and(|int| u64::try_from(int).is_ok()),
            DType::Float => self.fits_float32(),
            DType::Float64 => self.fits_float64(),
            DType::Bytes => true,
        }
    }

    /// Returns whether float64 holds the number exactly.
    fn fits_float64(self) -> bool {
        self.int().is_none_or(|int| self.to_f64() as i128 == int)
    }

    /// Returns whether float32 holds the number: exactly, or so that it reads back as the same text.
    fn fits_float32(self) -> bool {
        self.fits_float64() && fits_float32(self.to_f64())
    }
}

/// Returns whether float32 holds a number: exactly, or so that it reads back as the same text.
pub(crate) fn fits_float32(number: f64) -> bool {
    let narrow = number as f32;
    f64::from(narrow).to_bits() == number.to_bits()
        || number.is_nan()
        || (narrow.is_normal() && significant_digits(number) <= FLOAT32_DIGITS)
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int64(value) => value.fmt(f),
            Number::Uint64(value) => value.fmt(f),
            // With a full stop or an exponent, as floats are written.
            Number::Float64(value) => write!(f, "{value:?}"),
        }
    }
}

/// Returns the number of digits of the shortest decimal that reads back as the number.
fn significant_digits(number: f64) -> usize {
    let text = format!("{number:e}");
    text.split('e').next().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count()
}

/// Which types hold all numbers of a column. `P` is the place of a number, for messages.
#[derive(Debug, Clone)]
pub(crate) struct Numbers<P> {
    /// Whether there are numbers at all.
    any: bool,
    /// The first negative integer, the first one above int64 or of a column of uint64, the first that float64 would round,
    /// and the first float.
    negative: Option<(Number, P)>,
    unsigned: Option<(Number, P)>,
    rounded: Option<(Number, P)>,
    float: Option<(Number, P)>,
    /// Whether float32 would round a number.
    wide: bool,
}

/// Two numbers that no type holds exactly, and their places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conflict<P> {
    pub(crate) first: (Number, P),
    pub(crate) second: (Number, P),
}

impl<P> Default for Numbers<P> {
    fn default() -> Self {
        Numbers { any: false, negative: None, unsigned: None, rounded: None, float: None, wide: false }
    }
}

impl<P: Clone> Numbers<P> {
    /// Adds a number of a text.
    pub(crate) fn add(&mut self, number: Number, place: &P) {
        let first = |seen: &mut Option<(Number, P)>| {
            seen.get_or_insert_with(|| (number, place.clone()));
        };
        self.any = true;
        match number {
            Number::Int64(..0) => first(&mut self.negative),
            Number::Int64(_) => {}
            Number::Uint64(_) => first(&mut self.unsigned),
            Number::Float64(_) => first(&mut self.float),
        }
        if !number.fits_float64() {
            first(&mut self.rounded);
        }
        self.wide = self.wide || !number.fits_float32();
    }

    /// Adds the numbers of a sample. Those of a type that the source declares count with that type, whatever their values are.
    pub(crate) fn add_values(&mut self, values: &Values, place: &P) {
        let mut float = |value: f32| self.add(Number::Float64(value.into()), place);
        match values {
            Values::Float(value) => float(*value),
            Values::Floats(list) | Values::Pixels(list) | Values::Fractions(list) => {
                list.iter().for_each(|value| float(*value))
            }
            Values::Int64(value) => self.add(Number::Int64(*value), place),
            Values::Int64s(list) => list.iter().for_each(|value| self.add(Number::Int64(*value), place)),
            Values::Numbers(list) => list.iter().for_each(|number| self.add(*number, place)),
            Values::Logical(DType::Uint64, list) => {
                for number in list.iter().map(|stored| Number::Uint64(u64::from_le_bytes(*stored))) {
                    self.add(number, place);
                }
            }
            Values::Logical(_, list) => {
                for number in list.iter().map(|stored| Number::Float64(f64::from_le_bytes(*stored))) {
                    self.add(number, place);
                    self.wide = true;
                }
            }
            _ => {}
        }
        // An empty list has a type too.
        match values.dtype() {
            Some(DType::Float) => drop(self.float.get_or_insert_with(|| (Number::Float64(0.0), place.clone()))),
            Some(DType::Float64) => {
                self.float.get_or_insert_with(|| (Number::Float64(0.0), place.clone()));
                self.wide = true;
            }
            Some(DType::Uint64) => drop(self.unsigned.get_or_insert_with(|| (Number::Uint64(0), place.clone()))),
            Some(DType::Int64) => {}
            Some(DType::Bytes) | None => return,
        }
        self.any = true;
    }

    /// Adds the numbers of another part of the source.
    pub(crate) fn join(&mut self, other: Numbers<P>) {
        self.any |= other.any;
        self.negative = self.negative.take().or(other.negative);
        self.unsigned = self.unsigned.take().or(other.unsigned);
        self.rounded = self.rounded.take().or(other.rounded);
        self.float = self.float.take().or(other.float);
        self.wide |= other.wide;
    }

    /// Returns the type that holds all numbers exactly, or floats so that they read back as the same text: int64, else uint64;
    /// with floats float32, else float64. `None` without numbers.
    ///
    /// # Errors
    /// Two numbers that no type holds.
    pub(crate) fn dtype(&self) -> Result<Option<DType>, Conflict<P>> {
        let conflict =
            |first: &(Number, P), second: &(Number, P)| Err(Conflict { first: first.clone(), second: second.clone() });
        Ok(match (&self.float, &self.rounded, &self.negative, &self.unsigned) {
            _ if !self.any => None,
            (Some(float), Some(int), ..) => return conflict(int, float),
            (Some(_), None, ..) if self.wide => Some(DType::Float64),
            (Some(_), None, ..) => Some(DType::Float),
            (None, _, Some(negative), Some(unsigned)) => return conflict(negative, unsigned),
            (None, _, None, Some(_)) => Some(DType::Uint64),
            (None, _, _, None) => Some(DType::Int64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dtype(texts: &[&str]) -> Result<Option<DType>, (String, String)> {
        let mut numbers = Numbers::default();
        texts.iter().for_each(|text| numbers.add(Number::parse(text).unwrap(), &()));
        numbers.dtype().map_err(|c| (c.first.0.to_string(), c.second.0.to_string()))
    }

    #[test]
    fn the_type_holds_all_numbers() {
        let (int64, uint64, float, float64) = (DType::Int64, DType::Uint64, DType::Float, DType::Float64);
        for (texts, expected) in [
            (&["1", "-9223372036854775808"][..], int64),
            (&["9223372036854775807"], int64),
            (&["0", "9223372036854775808"], uint64),
            (&["18446744073709551615"], uint64),
            // Exact, or of six digits.
            (&["0.5", "0.1", "123456.0", "1e-30", "3.40282e38", "16777216.0", "0.333333"], float),
            (&["1", "0.1"], float),
            // float32 gives 1700000000, 16777216, infinity, 0, and another text.
            (&["1700000000.123"], float64),
            (&["16777217.0"], float64),
            (&["16777217", "0.5"], float64),
            (&["1e300"], float64),
            (&["1e-42"], float64),
            (&["1e-300"], float64),
            (&["0.3333333"], float64),
        ] {
            assert_eq!(dtype(texts), Ok(Some(expected)), "{texts:?}");
        }
        assert_eq!(dtype(&[]), Ok(None));
    }

    #[test]
    fn numbers_that_no_type_holds_are_named() {
        for (texts, first, second) in [
            (["-1", "9223372036854775808"], "-1", "9223372036854775808"),
            (["18446744073709551615", "-2"], "-2", "18446744073709551615"),
            (["0.5", "9007199254740993"], "9007199254740993", "0.5"),
            (["18446744073709551615", "1.5"], "18446744073709551615", "1.5"),
        ] {
            assert_eq!(dtype(&texts), Err((first.to_owned(), second.to_owned())), "{texts:?}");
        }
    }

    #[test]
    fn text_that_no_type_holds_is_no_number() {
        for text in ["18446744073709551616", "-9223372036854775809", "1e400", "nan", "inf", "0x10", "", "1 2"] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }
}
