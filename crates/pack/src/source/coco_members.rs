//! Members of a COCO file that have no meaning here, such as `score` or `license`: they become columns as they are.

use crate::sample::Values;
use serde_json::{Map, Value};
use shardtool_format::manifest::DType;
use std::collections::BTreeMap;

/// The members of all images, or of all objects, with one type each.
pub(super) struct Members {
    prefix: &'static str,
    kinds: BTreeMap<String, Kind>,
}

/// What the values of a member are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    /// Numbers that have the same text as float32.
    Float,
    Text,
    /// JSON text: values of several types, nested ones, or numbers that float32 would round.
    Json,
}

impl Kind {
    fn of(value: &Value) -> Kind {
        match value {
            Value::String(_) => Kind::Text,
            Value::Number(number) if number.is_i64() => Kind::Int,
            Value::Number(number) => match number.as_f64() {
                Some(exact) if (exact as f32).to_string() == exact.to_string() => Kind::Float,
                _ => Kind::Json,
            },
            _ => Kind::Json,
        }
    }

    fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (a, b) if a == b => a,
            (Kind::Int, Kind::Float) | (Kind::Float, Kind::Int) => Kind::Float,
            _ => Kind::Json,
        }
    }

    fn dtype(self) -> DType {
        match self {
            Kind::Int => DType::Int64,
            Kind::Float => DType::Float,
            Kind::Text | Kind::Json => DType::Bytes,
        }
    }
}

/// Returns the kind of each member, and how many of the `maps` have it; and the number of maps.
fn kinds<'a>(maps: impl Iterator<Item = &'a Map<String, Value>>) -> (BTreeMap<String, (Kind, usize)>, usize) {
    let (mut kinds, mut count): (BTreeMap<String, (Kind, usize)>, _) = (BTreeMap::new(), 0);
    for map in maps {
        count += 1;
        for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            let kind = Kind::of(value);
            match kinds.get_mut(name) {
                Some((known, found)) => (*known, *found) = (known.join(kind), *found + 1),
                None => drop(kinds.insert(name.clone(), (kind, 1))),
            }
        }
    }
    (kinds, count)
}

impl Members {
    /// Finds the members of images.
    pub(super) fn of_images<'a>(images: impl Iterator<Item = &'a Map<String, Value>>) -> Self {
        let (kinds, _) = kinds(images);
        Members { prefix: "", kinds: kinds.into_iter().map(|(name, (kind, _))| (name, kind)).collect() }
    }

    /// Finds the members of objects. One that some objects lack is JSON text, so that each object has a value.
    pub(super) fn of_annotations<'a>(objects: impl Iterator<Item = &'a Map<String, Value>>) -> Self {
        let (kinds, count) = kinds(objects);
        let in_all = |kind, found| if found == count { kind } else { Kind::Json };
        let kinds = kinds.into_iter().map(|(name, (kind, found))| (name, in_all(kind, found)));
        Members { prefix: "image/object/", kinds: kinds.collect() }
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = (String, DType)> {
        self.kinds.iter().map(|(name, kind)| (self.column(name), kind.dtype()))
    }

    fn column(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Returns the values of an image.
    pub(super) fn of_image<'a>(
        &'a self,
        members: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (String, Values)> + 'a {
        self.kinds.iter().filter_map(|(name, kind)| {
            let value = members.get(name).filter(|value| !value.is_null())?;
            let values = match kind {
                Kind::Int => Values::Int64(value.as_i64()?),
                Kind::Float => Values::Float(value.as_f64()? as f32),
                Kind::Text => Values::text(value.as_str()?),
                Kind::Json => Values::text(&value.to_string()),
            };
            Some((self.column(name), values))
        })
    }

    /// Returns the values of the objects of an image: of each member a list with one value for each object.
    pub(super) fn of_objects<'a>(
        &'a self,
        objects: impl Iterator<Item = &'a Map<String, Value>> + Clone + 'a,
    ) -> impl Iterator<Item = (String, Values)> + 'a {
        self.kinds.iter().map(move |(name, kind)| {
            let each = objects.clone().map(|members| members.get(name).unwrap_or(&Value::Null));
            let values = match kind {
                Kind::Int => Values::Int64s(each.filter_map(Value::as_i64).collect()),
                Kind::Float => Values::Floats(each.filter_map(|value| Some(value.as_f64()? as f32)).collect()),
                Kind::Text => {
                    Values::BytesList(each.map(|value| value.as_str().unwrap_or_default().as_bytes().into()).collect())
                }
                Kind::Json => Values::BytesList(each.map(|value| value.to_string().into_bytes().into()).collect()),
            };
            (self.column(name), values)
        })
    }
}
