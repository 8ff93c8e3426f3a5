//! Objects in an image: converts the boxes, classes and keypoints of common formats to one set of columns.
//!
//! Boxes are read in pixels and stored as fractions of the coded image. They are [`Values::Pixels`] until the record is
//! made, when the image's size is known (`coordinates`).

use crate::Reason;
use crate::sample::{SampleSchema, Values};
use serde_json::{Map, Value};
use shardtool_format::BoxFormat;
use shardtool_format::manifest::{DType, Keypoints};
use std::collections::BTreeMap;

/// Boxes: float, n × 4: left, top, right, bottom, as fractions of the coded image.
pub(crate) const BBOX: &str = "image/object/bbox";
/// Classes: int64, n.
pub(crate) const CLASS: &str = "image/object/class/label";
/// Names of classes: bytes, n.
pub(crate) const CLASS_NAME: &str = "image/object/class/text";
/// Keypoints: float, n × k × 3: x, y as fractions of the coded image, and visibility.
pub(crate) const KEYPOINTS: &str = Keypoints::FEATURE;
/// Areas: float or int64, n.
pub(crate) const AREA: &str = "image/object/area";
/// Columns that are in pixels until their record is made.
pub(crate) const PIXELS: [&str; 2] = [BBOX, KEYPOINTS];
/// Members that hold classes, in order of preference.
const CLASSES: [&str; 5] = ["category", "category_id", "label", "labels", "class"];
/// TensorFlow Object Detection's box columns, in fractions.
pub(crate) const TENSORFLOW: [&str; 4] =
    ["image/object/bbox/xmin", "image/object/bbox/ymin", "image/object/bbox/xmax", "image/object/bbox/ymax"];

/// Returns whether a value describes objects: an object whose members are lists, or a list of objects.
pub(super) fn are(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key("bbox") && members.values().all(Value::is_array),
        Value::Array(list) => !list.is_empty() && list.iter().all(|o| o.get("bbox").is_some()),
        _ => false,
    }
}

/// Adds the columns of objects; `other` adds a column that has no special meaning.
///
/// # Errors
/// [`Reason::Objects`].
pub(super) fn flat(
    value: Value,
    boxes: BoxFormat,
    other: impl Fn(String, Vec<Value>, &mut Map<String, Value>),
    out: &mut Map<String, Value>,
) -> Result<(), Reason> {
    let members = members(value);
    let count = members.get("bbox").map_or(0, Vec::len);
    let wrong = |member: &str, expected| Reason::Objects { member: member.to_owned(), expected };
    let class = CLASSES.into_iter().find(|name| members.contains_key(*name));
    for (name, list) in members {
        if list.len() != count {
            return Err(wrong(&name, "a value for each box"));
        }
        match name.as_str() {
            "bbox" => {
                let found = list.iter().map(|value| numbers(value, 4)).collect::<Option<Vec<_>>>();
                let found = found.ok_or_else(|| wrong("bbox", "four numbers for each object"))?;
                let corners = found.into_iter().flat_map(|b| boxes.corners([b[0], b[1], b[2], b[3]]));
                out.insert(BBOX.to_owned(), corners.map(Value::from).collect());
            }
            "keypoints" => {
                let points = list.first().and_then(Value::as_array).map_or(0, Vec::len);
                let points = if points > 0 && list[0][0].is_array() { points } else { points / 3 };
                let all = list.iter().map(|value| numbers(value, points * 3)).collect::<Option<Vec<_>>>();
                let all =
                    all.ok_or_else(|| wrong("keypoints", "x, y and visibility of the same points for each object"))?;
                out.insert(format!("{KEYPOINTS}/shape"), vec![count, points, 3].into());
                out.insert(KEYPOINTS.to_owned(), all.into_iter().flatten().map(Value::from).collect());
            }
            name if Some(name) == class => {
                let text = list.iter().any(Value::is_string);
                out.insert(if text { CLASS_NAME } else { CLASS }.to_owned(), Value::Array(list));
            }
            name => {
                let name = format!("image/object/{name}");
                // Polygons, masks and similar values: one JSON text for each object.
                let deep = |v: &Value| {
                    v.is_object() || v.as_array().is_some_and(|l| l.iter().any(|v| v.is_array() || v.is_object()))
                };
                match list.iter().any(deep) {
                    true => drop(out.insert(name, list.iter().map(|value| Value::from(value.to_string())).collect())),
                    false => other(name, list, out),
                }
            }
        }
    }
    Ok(())
}

/// Returns the members of objects, each as a list with one value per object.
fn members(value: Value) -> BTreeMap<String, Vec<Value>> {
    match value {
        Value::Object(members) => {
            let list = |(name, value)| match value {
                Value::Array(list) => Some((name, list)),
                _ => None,
            };
            members.into_iter().filter_map(list).collect()
        }
        Value::Array(objects) => {
            let mut members: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for (at, object) in objects.iter().enumerate() {
                for (name, value) in object.as_object().into_iter().flatten() {
                    let list = members.entry(name.clone()).or_default();
                    list.resize(at, Value::Null);
                    list.push(value.clone());
                }
            }
            members.values_mut().for_each(|list| list.resize(objects.len(), Value::Null));
            members
        }
        _ => BTreeMap::new(),
    }
}

/// Returns the numbers of a list, nested or not, if there are exactly `count`.
fn numbers(value: &Value, count: usize) -> Option<Vec<f64>> {
    let mut found = vec![];
    for value in value.as_array()? {
        match value {
            Value::Array(group) => found.extend(group.iter().map(Value::as_f64).collect::<Option<Vec<_>>>()?),
            value => found.push(value.as_f64()?),
        }
    }
    (found.len() == count).then_some(found)
}

/// Returns the type of a column of numbers: boxes, keypoints and areas are float32 (format-spec.md), whatever holds them exactly.
pub(super) fn dtype(column: &str, exact: DType) -> DType {
    match exact {
        DType::Float64 if [BBOX, KEYPOINTS, AREA].contains(&column) => DType::Float,
        exact => exact,
    }
}

/// Checks that the ids of the classes of objects are those of classes of the dataset, if it names some and images have no labels; and that a
/// sample has ids and names of the classes of its objects, if samples have both.
///
/// # Errors
/// [`Reason::Objects`].
pub(super) fn check_classes(schema: &SampleSchema, values: &[Values]) -> Result<(), Reason> {
    let of = |wanted: &str| {
        let at = schema.columns.iter().position(|(name, _)| name == wanted)?;
        Some(!matches!(&values[at], Values::Missing) && !values[at].is_empty_list())
    };
    if let (Some(ids), Some(names)) = (of(CLASS), of(CLASS_NAME))
        && ids != names
    {
        let (there, expected) = match ids {
            true => (CLASS, "names of the classes of objects as other samples have, or ids in all of them"),
            false => (CLASS_NAME, "ids of the classes of objects as other samples have, or names in all of them"),
        };
        return Err(Reason::Objects { member: there.to_owned(), expected });
    }
    if schema.labelled || schema.classes.is_empty() {
        return Ok(());
    }
    let unknown = |id: &&i64| **id >= schema.classes.len() as i64;
    for ((name, _), values) in schema.columns.iter().zip(values).filter(|((name, _), _)| name == CLASS) {
        let found = match values {
            Values::Int64(id) => Some(id).filter(unknown),
            Values::Int64s(ids) => ids.iter().find(unknown),
            _ => None,
        };
        if let Some(id) = found {
            return Err(Reason::Objects {
                member: format!("{name} {id}"),
                expected: "the id of a class of the dataset",
            });
        }
    }
    Ok(())
}

/// Marks the columns that are in pixels.
pub(crate) fn in_pixels(column: &str, values: Values) -> Values {
    match (PIXELS.contains(&column), values) {
        (true, Values::Floats(numbers)) => Values::Pixels(numbers),
        // Boxes and keypoints are float32 (format-spec.md).
        (true, values) => match values.numbers() {
            Some(numbers) => Values::Pixels(numbers.iter().map(|number| number.to_f64() as f32).collect()),
            None => values,
        },
        (false, values) => values,
    }
}

/// Replaces TensorFlow Object Detection's four box columns by one.
pub(crate) fn join_tensorflow(columns: &mut BTreeMap<String, Values>) {
    // Boxes are float32 (format-spec.md).
    let list = |values: &Values| match values {
        Values::Missing => Some(vec![]),
        values => values.numbers().map(|list| list.iter().map(|number| number.to_f64() as f32).collect::<Vec<_>>()),
    };
    let four: Option<Vec<_>> = TENSORFLOW.iter().map(|name| columns.get(*name).and_then(list)).collect();
    let Some(four) = four.filter(|four| four.iter().all(|list| list.len() == four[0].len())) else { return };
    let boxes = (0..four[0].len()).flat_map(|at| four.iter().map(move |list| list[at]));
    let boxes = Values::Floats(boxes.collect());
    TENSORFLOW.iter().for_each(|name| drop(columns.remove(*name)));
    columns.insert(BBOX.to_owned(), boxes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn columns(value: Value) -> Result<Value, Reason> {
        let mut out = Map::new();
        flat(value, BoxFormat::Xywh, |name, list, out| drop(out.insert(name, list.into())), &mut out)
            .map(|()| Value::Object(out))
    }

    #[test]
    fn object_of_lists_and_list_of_objects_give_equal_columns() {
        let lists = json!({"bbox": [[1, 2, 3, 4], [5.5, 6, 7, 8]], "category": [3, 0], "area": [12, 56],
            "segmentation": [[[1, 2, 3]], [[4]]], "keypoints": [[1, 2, 0, 3, 4, 2], [0, 0, 0, 9, 9, 1]]});
        let list = json!([
            {"bbox": [1, 2, 3, 4], "category": 3, "area": 12, "segmentation": [[1, 2, 3]], "keypoints": [[1, 2, 0], [3, 4, 2]]},
            {"bbox": [5.5, 6, 7, 8], "category": 0, "area": 56, "segmentation": [[4]], "keypoints": [[0, 0, 0], [9, 9, 1]]},
        ]);
        let expected = json!({"image/object/bbox": [1.0, 2.0, 4.0, 6.0, 5.5, 6.0, 12.5, 14.0],
            "image/object/class/label": [3, 0], "image/object/area": [12, 56],
            "image/object/segmentation": ["[[1,2,3]]", "[[4]]"], "image/object/keypoints/shape": [2, 2, 3],
            "image/object/keypoints": [1.0, 2.0, 0.0, 3.0, 4.0, 2.0, 0.0, 0.0, 0.0, 9.0, 9.0, 1.0]});
        assert!(are(&lists) && are(&list));
        assert_eq!(columns(lists).unwrap(), expected);
        assert_eq!(columns(list).unwrap(), expected);
        assert!(columns(json!({"bbox": [[1, 2, 3]]})).is_err());
        assert!(columns(json!({"bbox": [[1, 2, 3, 4]], "category": []})).is_err());
    }
}
