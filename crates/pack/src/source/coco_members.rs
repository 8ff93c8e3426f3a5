//! Members of a COCO file that have no meaning here, such as `score` or `license`: they become columns as they are.

use super::infer::Cell;
use crate::sample::{Number, Numbers, Values};
use serde_json::{Map, Value};
use shardtool_format::manifest::DType;
use std::collections::BTreeMap;

/// The members of all images, or of all objects, with one type each.
pub(super) struct Members {
    /// By the names of the members: the columns, and what they hold.
    kinds: BTreeMap<String, (String, Kind)>,
}

/// What the values of a member are.
#[derive(Clone, Copy)]
enum Kind {
    Number(DType),
    Text,
    /// JSON text: values of several types, nested ones, or numbers that no type holds.
    Json,
}

/// What is known of the values of a member.
#[derive(Default)]
struct Seen {
    numbers: Numbers<()>,
    texts: bool,
    others: bool,
    /// How many images or objects have it.
    count: usize,
}

impl Seen {
    fn add(&mut self, value: &Value) {
        self.count += 1;
        match value {
            Value::String(_) => self.texts = true,
            Value::Number(number) => self.numbers.add(Number::of_json(number), &()),
            _ => self.others = true,
        }
    }

    fn kind(&self) -> Kind {
        match self.numbers.dtype() {
            _ if self.others => Kind::Json,
            Ok(None) => Kind::Text,
            Ok(Some(dtype)) if !self.texts => Kind::Number(dtype),
            _ => Kind::Json,
        }
    }
}

impl Kind {
    fn dtype(self) -> DType {
        match self {
            Kind::Number(dtype) => dtype,
            Kind::Text | Kind::Json => DType::Bytes,
        }
    }
}

/// Returns what is known of each member, and the number of maps.
fn members<'a>(maps: impl Iterator<Item = &'a Map<String, Value>>) -> (BTreeMap<String, Seen>, usize) {
    let (mut members, mut count): (BTreeMap<String, Seen>, _) = (BTreeMap::new(), 0);
    for map in maps {
        count += 1;
        for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            match members.get_mut(name) {
                Some(seen) => seen.add(value),
                None => members.entry(name.clone()).or_default().add(value),
            }
        }
    }
    (members, count)
}

impl Members {
    /// Finds the members of images.
    pub(super) fn of_images<'a>(images: impl Iterator<Item = &'a Map<String, Value>>) -> Self {
        let (members, _) = members(images);
        Members { kinds: members.into_iter().map(|(name, seen)| (name.clone(), (name, seen.kind()))).collect() }
    }

    /// Finds the members of objects.
    pub(super) fn of_annotations<'a>(objects: impl Iterator<Item = &'a Map<String, Value>>) -> Self {
        Self::of_lists(objects, |name| format!("image/object/{name}"))
    }

    /// Finds the members of annotations, of which an image has several; `column` names the columns. A member that some annotations
    /// lack is JSON text, so that each has a value.
    pub(super) fn of_lists<'a>(
        annotations: impl Iterator<Item = &'a Map<String, Value>>,
        column: impl Fn(&str) -> String,
    ) -> Self {
        let (members, count) = members(annotations);
        let in_all = |seen: Seen| if seen.count == count { seen.kind() } else { Kind::Json };
        let kinds = members.into_iter().map(|(name, seen)| {
            let column = column(&name);
            (name, (column, in_all(seen)))
        });
        Members { kinds: kinds.collect() }
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = (String, DType)> {
        self.kinds.values().map(|(column, kind)| (column.clone(), kind.dtype()))
    }

    /// Returns the values of an image.
    pub(super) fn of_image<'a>(
        &'a self,
        members: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (String, Values)> + 'a {
        self.kinds.iter().filter_map(|(name, (column, kind))| {
            let value = members.get(name).filter(|value| !value.is_null())?;
            let values = match kind {
                Kind::Number(dtype) => Cell::Json(value).values(*dtype)?,
                Kind::Text => Values::text(value.as_str()?),
                Kind::Json => Values::text(&value.to_string()),
            };
            Some((column.clone(), values))
        })
    }

    /// Returns the values of the objects of an image: of each member a list with one value for each object.
    pub(super) fn of_objects<'a>(
        &'a self,
        objects: impl Iterator<Item = &'a Map<String, Value>> + Clone + 'a,
    ) -> impl Iterator<Item = (String, Values)> + 'a {
        self.kinds.iter().map(move |(name, (column, kind))| {
            let each = objects.clone().map(|members| members.get(name).unwrap_or(&Value::Null));
            let values = match kind {
                Kind::Number(dtype) => {
                    let numbers = each.filter_map(Value::as_number).map(Number::of_json).collect();
                    Values::Numbers(numbers).fit(*dtype).expect("the type holds all numbers")
                }
                Kind::Text => {
                    Values::BytesList(each.map(|value| value.as_str().unwrap_or_default().as_bytes().into()).collect())
                }
                Kind::Json => Values::BytesList(each.map(|value| value.to_string().into_bytes().into()).collect()),
            };
            (column.clone(), values)
        })
    }
}
