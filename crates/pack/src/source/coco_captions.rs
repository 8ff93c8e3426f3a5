//! Captions of a COCO file, such as `captions_train2017.json`: several texts for each image, in the order of the file.

use super::coco_annotation::Annotation;
use super::coco_members::Members;
use crate::sample::Values;
use serde_json::{Map, Value};
use shardtool_format::manifest::DType;
use std::collections::HashMap;

/// The texts of an image.
const CAPTION: &str = "caption";
/// The ids of its annotations.
const ID: &str = "caption/id";
const IMAGE_ID: &str = "image/id";

/// Returns whether the annotations of a file are captions: each has a text, and none a box.
pub(super) fn are(annotations: &[Annotation]) -> bool {
    let is = |annotation: &Annotation| {
        annotation.bbox.is_none() && annotation.others.get(CAPTION).is_some_and(Value::is_string)
    };
    !annotations.is_empty() && annotations.iter().all(is)
}

/// Finds the members of captions: `caption` itself, and others as `caption/NAME`.
pub(super) fn members<'a>(captions: impl Iterator<Item = &'a Map<String, Value>>) -> Members {
    Members::of_lists(captions, |name| if name == CAPTION { name.to_owned() } else { format!("{CAPTION}/{name}") })
}

/// Returns the columns of a file, in byte order of their names.
pub(super) fn columns(further: [&Members; 2]) -> Vec<(String, DType)> {
    let own = [(ID.to_owned(), DType::Int64), (IMAGE_ID.to_owned(), DType::Int64)];
    let mut columns: Vec<_> = own.into_iter().chain(further.into_iter().flat_map(Members::columns)).collect();
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    columns
}

/// Returns the values of an image, in the order of `columns`.
pub(super) fn values(
    id: i64,
    captions: &[Annotation],
    further: Vec<(String, Values)>,
    columns: &[(String, DType)],
) -> Box<[Values]> {
    let mut found: HashMap<String, Values> = further.into_iter().collect();
    found.insert(IMAGE_ID.to_owned(), Values::Int64(id));
    found.insert(ID.to_owned(), Values::Int64s(captions.iter().map(|caption| caption.id).collect()));
    columns.iter().map(|(name, _)| found.remove(name).unwrap_or(Values::Missing)).collect()
}
