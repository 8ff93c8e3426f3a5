//! What a `data.yaml` says of keypoints: `flip_idx`, and `kpt_names` of each class.

use crate::sample::DescribedKeypoints;
use serde_json::{Map, Value};
use shardtool_format::manifest::{self, Keypoints};

/// Takes the members that describe the points of objects of these classes. Each object has `count` points, if it has some. Returns also
/// what is left out, for people.
pub(super) fn take(
    members: &mut Map<String, Value>,
    count: Option<usize>,
    classes: &[String],
) -> (DescribedKeypoints, Vec<String>) {
    let mut given =
        |name: &str| members.remove(name).filter(|value| !value.is_null() && *value != Value::Array(vec![]));
    let (flips, names) = (given("flip_idx"), given("kpt_names"));
    let Some(count) = count else {
        let unused = [("flip_idx", flips), ("kpt_names", names)].into_iter().filter(|(_, value)| value.is_some());
        return (
            DescribedKeypoints::default(),
            unused.map(|(name, _)| format!("`{name}`, without `kpt_shape`")).collect(),
        );
    };
    let mut left_out = vec![];
    let flip_index = flips.map_or(Ok(vec![]), |flips| order(&flips, count)).unwrap_or_else(|why| {
        left_out.push(format!("`flip_idx`, {why}"));
        vec![]
    });
    let names = names.map_or(Ok(vec![]), |names| of_classes(&names, count, classes)).unwrap_or_else(|why| {
        left_out.push(format!("`kpt_names`, {why}"));
        vec![]
    });
    let by_names = manifest::flip_index(&names).unwrap_or_default();
    let has_sides = by_names.iter().enumerate().any(|(number, other)| number != *other);
    if has_sides && !flip_index.is_empty() && flip_index != by_names {
        let why = format!("`flip_idx` {flip_index:?} and `kpt_names` {names:?}, which exchange different points");
        return (DescribedKeypoints { known: None, left_out: Some(why.clone()) }, vec![why]);
    }
    let known = Keypoints { names, flip_index, skeleton: vec![] };
    match known.problem() {
        None => (DescribedKeypoints { known: Some(known), left_out: None }, left_out),
        Some(_) => (DescribedKeypoints { known: None, left_out: left_out.first().cloned() }, left_out),
    }
}

/// Returns the number of each point in a mirrored object.
///
/// # Errors
/// What is wrong with it.
fn order(flips: &Value, count: usize) -> Result<Vec<usize>, String> {
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let numbers = flips.as_array().and_then(|list| list.iter().map(number).collect::<Option<Vec<_>>>());
    let order = numbers.filter(|numbers| numbers.len() == count);
    let order = order.ok_or_else(|| format!("which is {flips}: expected {count} numbers of points"))?;
    match (Keypoints { flip_index: order.clone(), ..Keypoints::default() }).problem() {
        None => Ok(order),
        Some(_) => Err(format!("which is {flips}: two flips do not restore the order")),
    }
}

/// Returns the names of the points, which are those of all classes.
///
/// # Errors
/// Why they are left out.
fn of_classes(names: &Value, count: usize, classes: &[String]) -> Result<Vec<String>, String> {
    let text = |name: &Value| match name {
        Value::String(name) => Some(name.clone()),
        // YAML takes these names for other values.
        Value::Number(_) | Value::Bool(_) => Some(name.to_string()),
        _ => None,
    };
    let list = |names: &Value| names.as_array()?.iter().map(text).collect::<Option<Vec<_>>>();
    let lists: Option<Vec<_>> = match names {
        Value::Object(members) => {
            let without = |number: &usize| !members.contains_key(&number.to_string());
            if let Some(class) = (0..classes.len()).find(without) {
                return Err(format!("which the class {} does not have", classes[class]));
            }
            members.values().map(list).collect()
        }
        names => list(names).map(|names| vec![names]),
    };
    let mut lists = lists.ok_or("which is not a list of names for each class")?.into_iter();
    let first = lists.next().unwrap_or_default();
    if lists.any(|other| other != first) {
        return Err("which are not the same of all classes".to_owned());
    }
    if first.len() != count {
        return Err(format!("which has {} names, and `kpt_shape` {count} points", first.len()));
    }
    match (Keypoints { names: first.clone(), ..Keypoints::default() }).problem() {
        None => Ok(first),
        Some(problem) => Err(format!("which has {problem}")),
    }
}
