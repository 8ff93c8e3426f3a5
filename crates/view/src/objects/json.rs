//! Counts of objects as JSON.

use super::boxes::SHARES;
use super::classes::ClassCounts;
use super::problems::Problem;
use super::{Counts, Examined};
use serde_json::{Map, Value, json};

/// Pairs of labels that are listed.
const PAIRS: usize = 100;

impl Examined {
    /// Adds the counts of a split to its document: `objects` and `label_lists`, `null` if they were not counted. Adds nothing if there
    /// is nothing to count.
    pub(crate) fn add_to(&self, document: &mut Value, labels: Option<&str>, class_name: impl Fn(i64) -> String) {
        let Some(document) = document.as_object_mut() else { return };
        match self {
            Examined::Nothing => {}
            Examined::InStore { has_objects } => {
                if *has_objects {
                    document.insert("objects".to_owned(), Value::Null);
                }
                if labels.is_some() {
                    document.insert("label_lists".to_owned(), Value::Null);
                }
            }
            Examined::Counted(counts) => {
                if counts.has_objects {
                    document.insert("objects".to_owned(), counts.json(&class_name));
                }
                if let Some((column, classes)) = &counts.lists {
                    let name = |label: i64| label.to_string();
                    let mut lists =
                        json!({ "column": column, "records": counts.records, "unreadable": counts.unreadable });
                    add_classes(&mut lists, classes, "values", name);
                    document.insert("label_lists".to_owned(), lists);
                }
            }
        }
    }
}

impl Counts {
    fn json(&self, class_name: impl Fn(i64) -> String) -> Value {
        let per_image = &self.per_image;
        let images: Vec<_> =
            per_image.counts().map(|(objects, images)| json!({ "objects": objects, "images": images })).collect();
        let bounds = SHARES.iter().map(|bound| Some(*bound)).chain([None]);
        let shares: Vec<_> =
            bounds.zip(self.boxes.shares).map(|(below, boxes)| json!({ "below": below, "boxes": boxes })).collect();
        let problems: Map<_, _> = Problem::ALL
            .iter()
            .map(|problem| {
                let (number, keys) = self.problems.of(*problem);
                (problem.name().to_owned(), json!({ "number": number, "keys": keys }))
            })
            .collect();
        let [not_labelled, not_visible, visible, other] = self.keypoints;
        let keypoints =
            json!({ "not_labelled": not_labelled, "not_visible": not_visible, "visible": visible, "other": other });
        let mut document = json!({
            "records": self.records, "unreadable": self.unreadable, "objects": per_image.objects(),
            "per_image": { "mean": per_image.mean(), "median": per_image.median(), "most": per_image.most(), "counts": images },
            "keypoints": self.has_keypoints.then_some(keypoints),
            "problems": problems,
        });
        if self.has_boxes {
            let boxes = &self.boxes;
            document["boxes"] = json!({
                "number": boxes.boxes, "small": boxes.small, "medium": boxes.medium, "large": boxes.large,
                "unknown": boxes.unknown, "shares": shares,
            });
        }
        add_classes(&mut document, &self.classes, "objects", |label| self.class_name(label, &class_name));
        document
    }
}

/// Adds `classes` and `together` to a document; `null` if there are too many to count.
fn add_classes(document: &mut Value, counts: &ClassCounts, unit: &str, name: impl Fn(i64) -> String) {
    document["classes"] = counts.labels().map_or(Value::Null, |labels| {
        let class = |(label, class): (&i64, &super::classes::Class)| {
            json!({ "label": label, "name": name(*label), unit: class.objects, "images": class.images })
        };
        labels.iter().map(class).collect()
    });
    document["pairs"] = json!(counts.pairs());
    document["together"] = counts.pairs().map_or(Value::Null, |_| {
        let pairs = counts.top_pairs(PAIRS).into_iter();
        pairs
            .map(|([a, b], images)| json!({ "labels": [a, b], "names": [name(a), name(b)], "images": images }))
            .collect()
    });
}
