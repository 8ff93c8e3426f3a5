//! The objects of one record.

use super::boxes::Measured;
use crate::picture::Stored;
use crate::text;
use shardtool_format::example::{Example, Feature};
use shardtool_format::names;
use shardtool_load::{BOXES, CLASS_NAMES, CLASSES, KEYPOINTS};
use shardtool_read::{Error, Record};

/// What a record says of its objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) key: String,
    pub(super) boxes: Vec<Measured>,
    pub(super) labels: Vec<i64>,
    /// Names of the classes, if there are no labels.
    pub(super) class_names: Vec<String>,
    /// Keypoints of the visibilities 0, 1 and 2, and of another one.
    pub(super) keypoints: [u64; 4],
    /// Whether the record has not four numbers and one label for each object.
    pub(super) misfit: bool,
    /// Labels of the column that was named.
    pub(super) listed: Vec<i64>,
}

impl Objects {
    /// Reads the objects of a record, and the labels in the feature `listed`.
    ///
    /// # Errors
    /// [`Error::Record`] if it is not an Example, [`Error::Index`].
    pub(super) fn of(record: &Record, listed: Option<&str>) -> Result<Self, Error> {
        let example = record.example()?;
        let corners = example.floats(BOXES).unwrap_or_default();
        let labels = example.int64s(CLASSES);
        let (corners, rest) = corners.as_chunks::<4>();
        let class_names = match labels {
            None => example.byte_strings(CLASS_NAMES).unwrap_or_default().into_iter().map(text::printable).collect(),
            Some(_) => vec![],
        };
        let of_classes = labels.as_ref().map(Vec::len).or((!class_names.is_empty()).then_some(class_names.len()));
        let misfit = !rest.is_empty()
            || of_classes.is_some_and(|classes| example.get(BOXES).is_some() && classes != corners.len());
        let size = if corners.is_empty() { None } else { size(record, &example) };
        Ok(Objects {
            key: text::printable(&record.key()?),
            boxes: corners.iter().map(|corners| Measured::of(*corners, size)).collect(),
            labels: labels.unwrap_or_default(),
            class_names,
            keypoints: visibilities(&example),
            misfit,
            listed: listed.and_then(|name| example.int64s(name)).unwrap_or_default(),
        })
    }

    /// Returns the number of objects: of boxes, or of labels if it has no boxes.
    pub(super) fn number(&self) -> u64 {
        (if self.boxes.is_empty() { self.labels.len().max(self.class_names.len()) } else { self.boxes.len() }) as u64
    }
}

/// Returns width and height of the stored image in pixels: those of its header or, if it cannot be read, those of the record.
fn size(record: &Record, example: &Example<'_>) -> Option<(u32, u32)> {
    let side = |name| example.int64(name).and_then(|side| u32::try_from(side).ok()).filter(|side| *side > 0);
    let said = || Some((side(names::IMAGE_WIDTH)?, side(names::IMAGE_HEIGHT)?));
    Stored::of(record).ok().map(|stored| stored.size).or_else(said)
}

/// Returns the number of keypoints of each visibility.
fn visibilities(example: &Example<'_>) -> [u64; 4] {
    let mut counts = [0; 4];
    if let Some(Feature::Float(points)) = example.get(KEYPOINTS) {
        for visibility in points.iter().skip(2).step_by(3) {
            let kind = [0.0, 1.0, 2.0].iter().position(|known| *known == visibility);
            counts[kind.unwrap_or(3)] += 1;
        }
    }
    counts
}
