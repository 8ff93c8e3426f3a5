//! Masks of objects: what each covers is drawn on a map of the stored image's size, which is moved as the image by nearest neighbour.
//! One map holds eight objects, whose masks are the bits of its values.

use super::bounded::Bounded;
use super::{pixels, stored};
use crate::error::SampleError;
use crate::objects::{MappedBoxes, ObjectColumns};
use shardtool_decode::{LabelDtype, LabelMap, Plan, Segmentation, TransformScratch};
use shardtool_read::Record;

/// Objects of one map.
pub(crate) const OBJECTS: usize = 8;
/// Bytes of the numbers of a text, for each of its characters, at most.
const PARSED: u64 = 32;

/// What the objects of a record cover that are left in the result, as texts with the objects' numbers; none without masks.
#[derive(Default)]
pub(super) struct ObjectTexts<'r>(Vec<(usize, &'r [u8])>);

/// What is done to the stored image.
pub(super) type Moves<'p> = (&'p Plan, Option<&'p Bounded>);

impl<'r> ObjectTexts<'r> {
    /// Finds the texts of a record.
    ///
    /// # Errors
    /// [`SampleError::Values`] if the record does not have a text for each object.
    pub(super) fn of(record: &'r Record, columns: &ObjectColumns, objects: &MappedBoxes) -> Result<Self, SampleError> {
        let Some(feature) = columns.segmentation() else { return Ok(ObjectTexts::default()) };
        let texts = stored::texts(record, feature)?;
        if texts.len() != objects.len() {
            let (expected, found) = (objects.len(), texts.len());
            return Err(SampleError::Values { feature: feature.to_owned(), expected, found });
        }
        let left = texts.into_iter().enumerate().zip(objects).filter(|(_, object)| object.is_some());
        Ok(ObjectTexts(left.map(|(text, _)| text).collect()))
    }

    /// Returns the number of objects.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns an upper bound on the bytes that writing the maps takes, and that maps and masks have.
    pub(super) fn scratch_bytes(&self, stored: (u32, u32), (plan, bounded): Moves<'_>) -> u64 {
        let Some(longest) = self.0.iter().map(|(_, text)| text.len() as u64).max() else { return 0 };
        let (objects, result) = (self.0.len(), pixels(plan.output_size()));
        let bounded = bounded.map_or(0, |bounded| bounded.label_bytes(LabelDtype::U8));
        let results = (objects + objects.div_ceil(OBJECTS)) as u64;
        // One map more before rows and columns are exchanged.
        LabelMap::drawing_bytes(stored) + bounded + PARSED * longest + (results + 1) * result
    }

    /// Writes the maps: each of height times width bytes, whose bits are the masks of eight objects.
    ///
    /// # Errors
    /// The number of the object and what is wrong with its text, or why the map cannot be moved.
    pub(super) fn write(
        &self,
        stored: (u32, u32),
        (plan, bounded): Moves<'_>,
        maps: &mut Vec<u8>,
        (labels, buffer, transform): (&mut LabelMap, &mut Vec<u8>, &mut TransformScratch),
    ) -> Result<(), NotWritten> {
        let map = pixels(plan.output_size()) as usize;
        maps.resize(self.0.len().div_ceil(OBJECTS) * map, 0);
        for (texts, map) in self.0.chunks(OBJECTS).zip(maps.chunks_exact_mut(map)) {
            labels.fill(stored, 0);
            for (bit, (object, text)) in (0..).zip(texts) {
                draw(labels, text, bit).map_err(|problem| NotWritten::Text { object: *object, problem })?;
            }
            if let Some(bounded) = bounded {
                bounded.resize_labels(labels, LabelDtype::U8, (buffer, transform))?;
                labels.set(bounded.size, LabelDtype::U8, buffer)?;
            }
            plan.apply_to_labels(labels, 0, map, transform)?;
        }
        Ok(())
    }
}

/// Why maps were not written.
pub(super) enum NotWritten {
    /// An object's text cannot be drawn.
    Text { object: usize, problem: String },
    /// A map cannot be moved.
    Moved(shardtool_decode::Error),
}

impl From<shardtool_decode::Error> for NotWritten {
    fn from(error: shardtool_decode::Error) -> Self {
        NotWritten::Moved(error)
    }
}

/// Draws what an object covers into one bit of a map.
///
/// # Errors
/// What is wrong with the text.
fn draw(labels: &mut LabelMap, text: &[u8], bit: u32) -> Result<(), String> {
    let segmentation: Segmentation = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    labels.draw(&segmentation, bit).map_err(|e| e.to_string())
}
