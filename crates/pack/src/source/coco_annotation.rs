//! Annotations of a COCO file: objects, or captions.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One object, or one caption.
#[derive(Deserialize)]
pub(super) struct Annotation {
    pub(super) image_id: i64,
    #[serde(default)]
    pub(super) id: i64,
    pub(super) category_id: Option<i64>,
    pub(super) bbox: Option<Vec<f64>>,
    pub(super) area: Option<f64>,
    /// 0 or 1; PoseTrack writes true or false.
    #[serde(default, deserialize_with = "truth")]
    pub(super) iscrowd: Option<i64>,
    /// Polygons or a mask, as JSON text: their nesting differs from object to object.
    #[serde(default, deserialize_with = "text")]
    pub(super) segmentation: Option<String>,
    /// x, y and visibility of each point; also lists of three.
    #[serde(default, deserialize_with = "points")]
    pub(super) keypoints: Option<Vec<f64>>,
    /// All other members, such as `score` or `caption`.
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

impl Annotation {
    /// Moves the members that only objects have to the others: a caption has no meaning for them.
    pub(super) fn into_caption(mut self) -> Self {
        let json = |text: String| serde_json::from_str(&text).unwrap_or(Value::from(text));
        let members = [
            ("category_id", self.category_id.take().map(Value::from)),
            ("area", self.area.take().map(Value::from)),
            ("iscrowd", self.iscrowd.take().map(Value::from)),
            ("segmentation", self.segmentation.take().map(json)),
            ("keypoints", self.keypoints.take().map(Value::from)),
        ];
        for (name, value) in members {
            self.others.extend(value.map(|value| (name.to_owned(), value)));
        }
        self
    }

    /// Returns whether it has keypoints, labelled or not.
    pub(super) fn has_keypoints(&self) -> bool {
        self.keypoints.as_ref().is_some_and(|points| !points.is_empty())
    }

    /// Returns whether one of its keypoints is labelled.
    pub(super) fn has_points(&self) -> bool {
        self.keypoints.as_ref().is_some_and(|points| points.iter().any(|number| *number != 0.0))
    }

    /// Returns the category of an object, which has a box.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn category(&self) -> Result<i64, String> {
        let missing = |member: &str| format!("annotation {} has no `{member}`, which every object needs", self.id);
        if self.bbox.is_none() {
            return Err(missing("bbox"));
        }
        self.category_id.ok_or_else(|| missing("category_id"))
    }
}

fn truth<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Truth {
        Number(i64),
        Bool(bool),
    }
    let truth = Option::<Truth>::deserialize(from)?;
    Ok(truth.map(|truth| match truth {
        Truth::Number(number) => number,
        Truth::Bool(is_crowd) => is_crowd.into(),
    }))
}

fn points<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Vec<f64>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Points {
        Flat(Vec<f64>),
        Grouped(Vec<[f64; 3]>),
    }
    let points = Option::<Points>::deserialize(from)
        .map_err(|_| serde::de::Error::custom("`keypoints` is not a list of x, y and visibility of each point"))?;
    Ok(points.map(|points| match points {
        Points::Flat(numbers) => numbers,
        Points::Grouped(groups) => groups.into_iter().flatten().collect(),
    }))
}

fn text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Value::deserialize(from).map(|value| (!value.is_null()).then(|| value.to_string()))
}
