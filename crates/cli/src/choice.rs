//! Options that choose a value of an enum by the name that it has in JSON.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use std::ffi::OsStr;
use std::fmt;
use std::marker::PhantomData;

/// Parses the names of an enum's values.
pub(crate) struct Choice<T> {
    /// Which of them may be chosen.
    allowed: fn(&T) -> bool,
    of: PhantomData<fn() -> T>,
}

/// Returns the parser of all values of an enum without data.
pub(crate) fn choice<T>() -> Choice<T> {
    choice_of(|_| true)
}

/// Returns the parser of those values that are `allowed`.
pub(crate) fn choice_of<T>(allowed: fn(&T) -> bool) -> Choice<T> {
    Choice { allowed, of: PhantomData }
}

/// Returns the name of the default value.
pub(crate) fn default<T: DeserializeOwned + Default + PartialEq>() -> &'static str {
    let is_default = |name: &&str| value::<T>(name).is_some_and(|value| value == T::default());
    names::<T>().iter().copied().find(is_default).expect("the default has a name")
}

impl<T> Clone for Choice<T> {
    fn clone(&self) -> Self {
        Choice { allowed: self.allowed, of: PhantomData }
    }
}

impl<T: DeserializeOwned> Choice<T> {
    fn allowed(&self) -> impl Iterator<Item = &'static str> {
        let allowed = self.allowed;
        names::<T>().iter().copied().filter(move |name| value(name).is_some_and(|value| allowed(&value)))
    }
}

impl<T: DeserializeOwned + Clone + Send + Sync + 'static> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<T, clap::Error> {
        // Its error lists the names, and suggests one.
        let text = PossibleValuesParser::new(self.allowed()).parse_ref(command, arg, text)?;
        let ignore_case = arg.is_some_and(Arg::is_ignore_case_set);
        let is_name = |name: &&str| if ignore_case { name.eq_ignore_ascii_case(&text) } else { *name == text };
        let name = self.allowed().find(is_name);
        name.and_then(value).ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidValue).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.allowed().map(PossibleValue::new)))
    }
}

/// Returns the value of a name.
fn value<T: DeserializeOwned>(name: &str) -> Option<T> {
    let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
    T::deserialize(name).ok()
}

/// Returns the names of an enum's values, as its implementation of `Deserialize` states them.
fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    T::deserialize(AsksForNames).err().map_or(&[], |Names(names)| names)
}

/// A deserializer that has no value, and fails with the names of those that it could have.
struct AsksForNames;

#[derive(Debug)]
struct Names(&'static [&'static str]);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl std::error::Error for Names {}

impl serde::de::Error for Names {
    fn custom<M: fmt::Display>(_: M) -> Self {
        Names(&[])
    }
}

impl<'de> Deserializer<'de> for AsksForNames {
    type Error = Names;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Names> {
        Err(Names(&[]))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Names> {
        Err(Names(names))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardtool_load::{Mode, PixelDtype};
    use shardtool_order::Policy;

    #[test]
    fn names_are_those_in_json() {
        assert_eq!(names::<Policy>(), ["sample", "shard", "off"]);
        assert_eq!((default::<Policy>(), default::<Mode>()), ("sample", "RGB"));
        assert_eq!((value("off"), value::<Policy>("Off")), (Some(Policy::Off), None));
    }

    #[test]
    fn parses_names_in_any_case_if_the_option_does() {
        let parsed = |ignore_case: bool, text: &str| {
            let parser = choice_of(|dtype: &PixelDtype| *dtype != PixelDtype::Uint16);
            let arg = Arg::new("dtype").value_parser(parser).ignore_case(ignore_case);
            let matches = Command::new("test").arg(arg).try_get_matches_from(["test", text]);
            matches.map(|matches| *matches.get_one::<PixelDtype>("dtype").unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(parsed(false, "bfloat16"), Ok(PixelDtype::Bfloat16));
        assert_eq!(parsed(true, "Float16"), Ok(PixelDtype::Float16));
        for (ignore_case, text) in [(false, "Float16"), (true, "uint16"), (true, "half")] {
            let error = parsed(ignore_case, text).unwrap_err();
            assert!(error.contains("[possible values: float32, float16, bfloat16]"), "{error}");
        }
    }
}
