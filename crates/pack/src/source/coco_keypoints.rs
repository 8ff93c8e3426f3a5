//! What the categories of a COCO file say of their keypoints.

use crate::sample::DescribedKeypoints;
use serde_json::Value;
use shardtool_format::manifest::Keypoints;
use std::collections::BTreeSet;

/// The members of a category: names of points, and the pairs of them that a line joins, from 1.
pub(super) const MEMBERS: [&str; 2] = ["keypoints", "skeleton"];

/// A category, as far as keypoints are concerned.
pub(super) struct Described<'c> {
    pub(super) name: &'c str,
    /// The values of [`MEMBERS`].
    pub(super) members: [Option<&'c Value>; 2],
    /// Whether its objects have points.
    pub(super) has_points: bool,
}

/// Returns the keypoints of the categories whose objects have points, and what is left out, for people: names that are not the same of
/// all, or of no object's number of points, and lines that do not join two of the points. `counts` are the numbers of points of the
/// objects.
pub(super) fn of_categories(
    categories: &[Described<'_>],
    counts: &BTreeSet<usize>,
) -> (DescribedKeypoints, Vec<String>) {
    let mut left_out = vec![];
    let is_given =
        |value: &Option<&Value>| value.is_some_and(|value| !value.is_null() && *value != Value::Array(vec![]));
    let mut leave_out = |member: &str, why: &str| {
        let text = format!("`{member}` of the categories, {why}");
        left_out.push(text.clone());
        text
    };
    let given = |at: usize| categories.iter().any(|category| is_given(&category.members[at]));
    let used: Vec<_> = categories.iter().filter(|category| category.has_points).collect();
    let first = used.iter().find(|category| is_given(&category.members[0]));
    let Some(first) = first else {
        let why =
            if used.is_empty() { "since no annotation has keypoints" } else { "whose objects have none, or no names" };
        (0..2).filter(|at| given(*at)).for_each(|at| drop(leave_out(MEMBERS[at], why)));
        return (DescribedKeypoints::default(), left_out);
    };
    let other = used.iter().find(|category| category.members[0] != first.members[0]);
    let names = match (other, first.members[0].and_then(names)) {
        (Some(other), _) => Err(format!("which are not the same of {} and {}", first.name, other.name)),
        (None, None) => Err("which are not a list of names".to_owned()),
        (None, Some(names)) if !counts.contains(&names.len()) => {
            Err(format!("which are {} names, and no object has as many points", names.len()))
        }
        (None, Some(names)) => {
            let described = Keypoints { names, ..Keypoints::default() };
            described.problem().map_or(Ok(described), |problem| Err(format!("which have {problem}")))
        }
    };
    let mut known = match names {
        Ok(known) => known,
        Err(why) => {
            let why = leave_out(MEMBERS[0], &why);
            if given(1) {
                leave_out(MEMBERS[1], "without names");
            }
            return (DescribedKeypoints { known: None, left_out: Some(why) }, left_out);
        }
    };
    if used.iter().any(|category| category.members[1] != first.members[1]) {
        leave_out(MEMBERS[1], "which is not the same of all");
    } else if let Some(pairs) = first.members[1].filter(|_| is_given(&first.members[1])) {
        match skeleton(pairs, known.count()) {
            Ok(pairs) => known.skeleton = pairs,
            Err(found) => {
                let why = format!("which has {found}: pairs of two numbers from 1 to {} are expected", known.count());
                leave_out(MEMBERS[1], &why);
            }
        }
    }
    (DescribedKeypoints { known: Some(known), left_out: None }, left_out)
}

fn names(names: &Value) -> Option<Vec<String>> {
    names.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns pairs of points, which count from 0.
///
/// # Errors
/// The first value, unless it is a pair of points.
fn skeleton(pairs: &Value, count: usize) -> Result<Vec<[usize; 2]>, String> {
    let end = |number: &Value| {
        let number = usize::try_from(number.as_u64()?).ok()?;
        (1..=count).contains(&number).then(|| number - 1)
    };
    let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
        Some([a, b]) => match (end(a), end(b)) {
            (Some(a), Some(b)) if a != b => Ok([a, b]),
            _ => Err(pair.to_string()),
        },
        _ => Err(pair.to_string()),
    };
    pairs.as_array().ok_or_else(|| pairs.to_string())?.iter().map(pair).collect()
}
