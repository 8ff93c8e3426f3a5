//! What the categories of a COCO file say of their keypoints.

use super::keypoints::common;
use serde_json::Value;
use shardtool_format::manifest::Keypoints;

/// The members of a category: names of points, and the pairs of them that a line joins, from 1.
pub(super) const MEMBERS: [&str; 2] = ["keypoints", "skeleton"];

/// Returns the keypoints that all categories with such names have.
///
/// # Errors
/// Why they are left out, for people.
pub(super) fn of_categories<'c>(
    categories: impl Iterator<Item = [Option<&'c Value>; 2]>,
) -> Result<Option<Keypoints>, String> {
    let described = categories.filter_map(|[names, skeleton]| match names {
        None | Some(Value::Null) => None,
        Some(Value::Array(names)) if names.is_empty() => None,
        Some(names) => Some(keypoints(names, skeleton)),
    });
    common(described.collect::<Option<Vec<_>>>().ok_or("which are not lists of names, and of pairs from 1")?)
}

fn keypoints(names: &Value, skeleton: Option<&Value>) -> Option<Keypoints> {
    let names = names.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    // From 0, as arrays count.
    let end = |number: &Value| usize::try_from(number.as_u64()?.checked_sub(1)?).ok();
    let pair = |pair: &Value| match &pair.as_array()?[..] {
        [a, b] => Some([end(a)?, end(b)?]),
        _ => None,
    };
    let skeleton = match skeleton {
        None | Some(Value::Null) => vec![],
        Some(pairs) => pairs.as_array()?.iter().map(pair).collect::<Option<_>>()?,
    };
    Some(Keypoints { names, skeleton, ..Keypoints::default() })
}
