//! Masks of objects: what each covers is drawn on a map of the stored image's size, which is moved as the image by nearest neighbour.
//! One map holds eight objects, whose masks are the bits of its values.

use super::planned::{Geometries, PlannedImage};
use super::stored;
use super::write::DecodeScratch;
use super::{pixels, write::ViewScratch};
use crate::error::SampleError;
use crate::objects::{MappedBoxes, ObjectColumns};
use shardtool_decode::{LabelDtype, LabelMap, Segmentation};
use shardtool_read::Record;

/// Objects of one map.
pub(crate) const OBJECTS: usize = 8;
/// Bytes of the numbers of a text, for each of its characters, at most.
const PARSED: u64 = 32;

/// Returns what those objects of a record cover that are left in the result, as texts with the objects' numbers; none without masks.
///
/// # Errors
/// [`SampleError::Values`] if the record does not have a text for each object.
pub(super) fn texts<'r>(
    record: &'r Record,
    columns: &ObjectColumns,
    objects: &MappedBoxes,
) -> Result<Vec<(usize, &'r [u8])>, SampleError> {
    let Some(feature) = columns.segmentation() else { return Ok(vec![]) };
    let texts = stored::texts(record, feature)?;
    if texts.len() != objects.len() {
        let (expected, found) = (objects.len(), texts.len());
        return Err(SampleError::Values { feature: feature.to_owned(), expected, found });
    }
    let left = texts.into_iter().enumerate().zip(objects).filter(|(_, object)| object.is_some());
    Ok(left.map(|(text, _)| text).collect())
}

/// Returns an upper bound on the bytes that writing the maps of these texts takes, and that maps and masks have.
pub(super) fn scratch_bytes(texts: &[(usize, &[u8])], stored: (u32, u32), geometries: &Geometries) -> u64 {
    let Some(longest) = texts.iter().map(|(_, text)| text.len() as u64).max() else { return 0 };
    let result = pixels(geometries.views[0].plan.output_size());
    let bounded = geometries.bounded.as_ref().map_or(0, |bounded| bounded.label_bytes(LabelDtype::U8));
    let results = texts.len() + texts.len().div_ceil(OBJECTS);
    // A map before rows and columns are exchanged.
    LabelMap::drawing_bytes(stored) + bounded + result + PARSED * longest + results as u64 * result
}

/// Writes the maps of the objects that are left of a planned image: each of height times width bytes, whose bits are the masks of eight
/// objects.
///
/// # Errors
/// [`SampleError::Segmentation`].
pub(crate) fn write_object_masks(
    planned: &PlannedImage<'_>,
    columns: &ObjectColumns,
    maps: &mut Vec<u8>,
    scratch: &mut DecodeScratch,
) -> Result<(), SampleError> {
    let Geometries { views, bounded, .. } = &planned.geometries;
    let DecodeScratch { labels, views: ViewScratch { transform, bounded: buffer, .. }, .. } = scratch;
    let plan = &views[0].plan;
    let map = pixels(plan.output_size()) as usize;
    maps.resize(planned.segmentations.len().div_ceil(OBJECTS) * map, 0);
    for (texts, map) in planned.segmentations.chunks(OBJECTS).zip(maps.chunks_exact_mut(map)) {
        labels.clear(planned.stored.size);
        for (bit, (object, text)) in (0..).zip(texts) {
            draw(labels, text, bit).map_err(|problem| {
                let feature = columns.segmentation().unwrap_or_default().to_owned();
                SampleError::Segmentation { feature, object: *object, problem }
            })?;
        }
        if let Some(bounded) = bounded {
            bounded.resize_labels(labels, LabelDtype::U8, (buffer, transform))?;
            labels.set(bounded.size, LabelDtype::U8, buffer)?;
        }
        plan.apply_to_labels(labels, 0, map, transform)?;
    }
    Ok(())
}

/// Draws what an object covers into one bit of a map.
///
/// # Errors
/// What is wrong with the text.
fn draw(labels: &mut LabelMap, text: &[u8], bit: u32) -> Result<(), String> {
    let segmentation: Segmentation = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    labels.draw(&segmentation, bit).map_err(|e| e.to_string())
}
