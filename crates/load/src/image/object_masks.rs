//! Masks of objects: what each covers is drawn on a map of the stored image's size, which is moved as the image by nearest neighbour.
//! One map holds as many objects as its values have bits.

use super::planned::{Geometries, PlannedImage};
use super::stored;
use super::write::DecodeScratch;
use super::{pixels, write::ViewScratch};
use crate::error::SampleError;
use crate::objects::{MappedBoxes, ObjectColumns};
use shardtool_decode::{LabelDtype, LabelMap, Segmentation};
use shardtool_read::Record;

/// Objects of one map, at most.
const OBJECTS: usize = 16;
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

/// Returns an upper bound on the bytes that writing the masks of these texts takes, and that the masks have.
pub(super) fn scratch_bytes(texts: &[(usize, &[u8])], stored: (u32, u32), geometries: &Geometries) -> u64 {
    let Some(longest) = texts.iter().map(|(_, text)| text.len() as u64).max() else { return 0 };
    let (dtype, result) = (dtype(texts.len()), pixels(geometries.views[0].plan.output_size()));
    let bounded = geometries.bounded.as_ref().map_or(0, |bounded| bounded.label_bytes(dtype));
    // A map of the result, and the same before rows and columns are exchanged.
    let maps = LabelMap::drawing_bytes(stored, dtype) + bounded + 2 * result * dtype.bytes() as u64;
    maps + PARSED * longest + texts.len() as u64 * result
}

/// Returns the type of the map of this many objects.
fn dtype(objects: usize) -> LabelDtype {
    if objects > 8 { LabelDtype::U16 } else { LabelDtype::U8 }
}

/// Writes the masks of the objects that are left of a planned image: height times width bytes for each.
///
/// # Errors
/// [`SampleError::Segmentation`].
pub(crate) fn write_object_masks(
    planned: &PlannedImage<'_>,
    columns: &ObjectColumns,
    masks: &mut Vec<u8>,
    scratch: &mut DecodeScratch,
) -> Result<(), SampleError> {
    let Geometries { views, bounded, .. } = &planned.geometries;
    let DecodeScratch { labels, views: ViewScratch { transform, bounded: buffer, pixels: map, .. }, .. } = scratch;
    let plan = &views[0].plan;
    let mask = pixels(plan.output_size()) as usize;
    masks.clear();
    masks.reserve_exact(planned.segmentations.len() * mask);
    for texts in planned.segmentations.chunks(OBJECTS) {
        let dtype = dtype(texts.len());
        labels.clear(planned.stored.size, dtype);
        for (bit, (object, text)) in texts.iter().enumerate() {
            let drawn = draw(labels, text, bit);
            drawn.map_err(|problem| {
                let feature = columns.segmentation().unwrap_or_default().to_owned();
                SampleError::Segmentation { feature, object: *object, problem }
            })?;
        }
        if let Some(bounded) = bounded {
            bounded.resize_labels(labels, dtype, (buffer, transform))?;
            labels.set(bounded.size, dtype, buffer)?;
        }
        map.resize(mask * dtype.bytes(), 0);
        plan.apply_to_labels(labels, 0, map, transform)?;
        for bit in 0..texts.len() {
            match dtype {
                LabelDtype::U8 => masks.extend(map.iter().map(|value| value >> bit & 1)),
                LabelDtype::U16 => {
                    masks.extend(map.as_chunks::<2>().0.iter().map(|value| value[bit / 8] >> (bit % 8) & 1));
                }
            }
        }
    }
    Ok(())
}

/// Draws what an object covers into one bit of a map.
///
/// # Errors
/// What is wrong with the text.
fn draw(labels: &mut LabelMap, text: &[u8], bit: usize) -> Result<(), String> {
    let segmentation: Segmentation = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    labels.draw(&segmentation, bit).map_err(|e| e.to_string())
}
