//! Converts nested JSON values to flat columns, since a record cannot hold nested ones.
//!
//! | value of NAME | columns |
//! |---|---|
//! | number, text, list of one of them | `NAME` |
//! | rectangular lists of lists | `NAME`, the leaves in order; `NAME/shape` |
//! | lists of lists of different lengths | `NAME`, the leaves in order; `NAME/lengths` |
//! | object | `NAME/MEMBER` for each member |
//! | `objects`: an object of lists, or a list of objects | `image/object/…`, see [`super::objects`] |
//! | anything else | `NAME` as JSON text |

use super::objects;
use crate::Reason;
use serde_json::map::Entry;
use serde_json::{Map, Value};
use shardtool_format::BoxFormat;
use std::collections::BTreeSet;

/// The member that describes the objects in an image.
const OBJECTS: &str = "objects";

/// How nested values become columns. The same for all samples of a source.
#[derive(Debug, Clone)]
pub(crate) struct Nesting {
    boxes: BoxFormat,
    /// Columns that are ragged in some sample. They have lengths, not shapes, in all samples.
    pub(crate) ragged: BTreeSet<String>,
    /// Columns that have a shape in some sample. Empty lists then have one too.
    pub(crate) shaped: BTreeSet<String>,
}

/// Suffix of a column that holds shapes.
const SHAPE: &str = "/shape";
/// Suffix of a column that holds lengths.
const LENGTHS: &str = "/lengths";

impl Nesting {
    pub(crate) fn new(boxes: BoxFormat) -> Nesting {
        Nesting { boxes, ragged: BTreeSet::new(), shaped: BTreeSet::new() }
    }

    /// Learns from the names of all columns which ones are ragged and which have shapes.
    pub(crate) fn learn<'a>(&mut self, columns: impl Iterator<Item = &'a String>) {
        for name in columns {
            if let Some(base) = name.strip_suffix(LENGTHS) {
                self.ragged.insert(base.to_owned());
            } else if let Some(base) = name.strip_suffix(SHAPE) {
                self.shaped.insert(base.to_owned());
            }
        }
        self.shaped.retain(|name| !self.ragged.contains(name));
    }

    /// Returns whether this is the shape of a ragged column, which has lengths instead.
    pub(crate) fn is_replaced(&self, column: &str) -> bool {
        column.strip_suffix(SHAPE).is_some_and(|base| self.ragged.contains(base))
    }

    /// Returns the members of a JSON object as flat columns: numbers, texts, or lists of them. Boxes and keypoints of
    /// `objects` are in pixels, see [`objects::PIXELS`].
    ///
    /// # Errors
    /// [`Reason::Objects`].
    pub(crate) fn flat(&self, members: Map<String, Value>) -> Result<Map<String, Value>, Reason> {
        let mut out = Map::new();
        self.members(members, &mut out)?;
        Ok(out)
    }

    /// Adds the columns of members, of which no two may have the same name.
    fn members(
        &self,
        members: impl IntoIterator<Item = (String, Value)>,
        out: &mut Map<String, Value>,
    ) -> Result<(), Reason> {
        let mut add = |name, value| match out.entry(name) {
            Entry::Vacant(place) => {
                place.insert(value);
                Ok(())
            }
            Entry::Occupied(there) => Err(Reason::TwoValues { name: there.key().clone() }),
        };
        for (name, value) in members {
            if !is_nested(&value) {
                add(name, value)?;
                continue;
            }
            let mut columns = Map::new();
            self.member(name, value, &mut columns)?;
            columns.into_iter().try_for_each(|(name, value)| add(name, value))?;
        }
        Ok(())
    }

    /// Adds the columns of one member.
    ///
    /// # Errors
    /// [`Reason::Objects`].
    pub(crate) fn member(&self, name: String, value: Value, out: &mut Map<String, Value>) -> Result<(), Reason> {
        match value {
            value if name == OBJECTS && objects::are(&value) => {
                objects::flat(value, self.boxes, |name, list, out| self.list(name, list, out), out)?
            }
            Value::Object(members) => {
                let named = members.into_iter().map(|(member, value)| (format!("{name}/{member}"), value));
                self.members(named, out)?;
            }
            Value::Array(list) => self.list(name, list, out),
            value => drop(out.insert(name, value)),
        }
        Ok(())
    }

    /// Adds the columns of a list.
    fn list(&self, name: String, list: Vec<Value>, out: &mut Map<String, Value>) {
        let nested = list.iter().any(Value::is_array);
        if list.is_empty() && self.ragged.contains(&name) {
            out.insert(name.clone() + LENGTHS, Value::Array(vec![]));
        } else if !nested && self.shaped.contains(&name) {
            out.insert(name.clone() + SHAPE, vec![list.len()].into());
        }
        if !nested {
            out.insert(name, Value::Array(list));
            return;
        }
        let shape = shape(&list);
        match shape {
            Some(shape) if shape.len() != 2 || !self.ragged.contains(&name) => {
                out.insert(name.clone() + SHAPE, shape.into());
                out.insert(name, leaves(list).into());
            }
            _ if list.iter().all(|row| row.as_array().is_some_and(|row| !row.iter().any(is_nested))) => {
                let lengths: Vec<_> = list.iter().filter_map(Value::as_array).map(Vec::len).collect();
                out.insert(name.clone() + LENGTHS, lengths.into());
                out.insert(name, leaves(list).into());
            }
            _ => drop(out.insert(name, Value::Array(list).to_string().into())),
        }
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Returns the shape of nested lists; `None` if they are not rectangular or contain an object.
fn shape(list: &[Value]) -> Option<Vec<usize>> {
    let mut inner: Option<Vec<usize>> = None;
    for value in list {
        let this = match value {
            Value::Array(list) => shape(list)?,
            Value::Object(_) => return None,
            _ => vec![],
        };
        match &inner {
            Some(inner) if *inner != this => return None,
            _ => inner = Some(this),
        }
    }
    Some([vec![list.len()], inner.unwrap_or_default()].concat())
}

/// Returns the leaves of nested lists, in order.
fn leaves(list: Vec<Value>) -> Vec<Value> {
    let leaf = |value| match value {
        Value::Array(list) => leaves(list),
        value => vec![value],
    };
    list.into_iter().flat_map(leaf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn flat(nesting: &Nesting, value: Value) -> Value {
        let Value::Object(members) = value else { panic!() };
        Value::Object(nesting.flat(members).unwrap())
    }

    #[test]
    fn nested_lists_have_shapes_or_lengths() {
        let nesting = Nesting::new(BoxFormat::Xywh);
        let value = json!({"a": [1, 2], "b": [[1, 2], [3, 4], [5, 6]], "c": [[1], [2, 3]], "d": [[[1, 2]], [[3, 4]]],
            "e": {"f": 1, "g": {"h": [[]]}}, "i": [[[1], [2, 3]]], "j": [[1], 2], "k": [], "l": null});
        let expected = json!({"a": [1, 2], "b": [1, 2, 3, 4, 5, 6], "b/shape": [3, 2], "c": [1, 2, 3], "c/lengths": [1, 2],
            "d": [1, 2, 3, 4], "d/shape": [2, 1, 2], "e/f": 1, "e/g/h": [], "e/g/h/shape": [1, 0],
            "i": "[[[1],[2,3]]]", "j": "[[1],2]", "k": [], "l": null});
        assert_eq!(flat(&nesting, value), expected);
    }

    #[test]
    fn a_column_is_ragged_or_shaped_in_all_samples() {
        let mut nesting = Nesting::new(BoxFormat::Xywh);
        let names = ["c", "c/lengths", "c/shape", "b", "b/shape"].map(str::to_owned);
        nesting.learn(names.iter());
        assert!(nesting.is_replaced("c/shape") && !nesting.is_replaced("b/shape"));
        let value = json!({"c": [[1, 2], [3, 4]], "b": [], "a": []});
        assert_eq!(
            flat(&nesting, value),
            json!({"c": [1, 2, 3, 4], "c/lengths": [2, 2], "b": [], "b/shape": [0], "a": []})
        );
        assert_eq!(flat(&nesting, json!({"c": []})), json!({"c": [], "c/lengths": []}));
    }
}
