//! The images of a record with everything drawn for them, before anything is decoded.

use super::SampleDraws;
use super::bounded::Bounded;
use super::draws::StepDraws;
use super::image_bytes;
use super::stored::{self, StoredImage};
use crate::bad_samples::SampleError;
use crate::columns::Cell;
use crate::config::{Images, View};
use crate::objects::ObjectColumns;
use shardtool_decode::{EncodedImage, Error, Geometry, LabelMap, Orientation, Plan, RegionOptions};
use shardtool_read::Record;

/// The images of a record, and what is done to them.
pub(crate) struct PlannedImage<'r> {
    pub(super) stored: StoredImage<'r>,
    /// The image with its parsed header, unless it is stored as raw pixels.
    pub(super) encoded: Option<EncodedImage<'r>>,
    /// Its further images.
    pub(super) more: Vec<EncodedImage<'r>>,
    /// Its label maps.
    pub(super) masks: Vec<&'r [u8]>,
    /// What each view does.
    pub(super) views: Vec<PlannedView>,
    /// The resize before the views, if decoded images are cached.
    pub(super) bounded: Option<Bounded>,
    pub(super) geometries: Vec<Geometry>,
    /// The boxes in pixels of the image that the views are made from.
    pub(super) boxes: Vec<[f64; 4]>,
    /// Upper bound in bytes on the memory that decoding and transforming need.
    pub(crate) scratch: u64,
}

/// What one view does, and the streams of its random numbers after the pipeline's draws.
pub(super) struct PlannedView {
    pub(super) plan: Plan,
    pub(super) draws: StepDraws,
}

/// The boxes of a record, if the configuration has any: their columns, and the row's values.
pub(crate) type RowObjects<'c> = Option<(&'c ObjectColumns, &'c [Cell])>;

impl<'r> PlannedImage<'r> {
    /// Plans the images of a record. `views` returns the views of an image of this width and height.
    pub(crate) fn of<'v>(
        record: &'r Record,
        images: &Images,
        views: impl Fn((u32, u32)) -> &'v [View],
        draws: SampleDraws,
        objects: RowObjects<'_>,
    ) -> Result<Self, SampleError> {
        let stored = StoredImage::of(record, images)?;
        match Self::plan(record, stored.clone(), images, views(stored.size), draws, objects) {
            // The index may have the wrong size (as in an adopted file); the image's header is then used.
            Err(SampleError::Decode(Error::SizeMismatch { .. })) if stored.format.is_none() => {
                let stored = stored.with_header(images)?;
                let views = views(stored.size);
                Self::plan(record, stored, images, views, draws, objects)
            }
            result => result,
        }
    }

    fn plan(
        record: &'r Record,
        stored: StoredImage<'r>,
        images: &Images,
        views: &[View],
        draws: SampleDraws,
        objects: RowObjects<'_>,
    ) -> Result<Self, SampleError> {
        let mut boxes = objects.map_or(vec![], |(columns, cells)| columns.boxes(cells, stored.size));
        let (mut size, mut orientation) = (stored.size, Orientation::from_exif(stored.orientation));
        let bounded =
            images.decoded_cache.as_ref().map(|cache| Bounded::of(cache, stored.size, orientation)).transpose()?;
        if let Some(bounded) = &bounded {
            (size, orientation) = (bounded.size, Orientation::default());
            boxes.iter_mut().for_each(|b| *b = bounded.map_box(*b));
        }
        let mut planned = Vec::with_capacity(views.len());
        for (number, view) in views.iter().enumerate() {
            let mut draws = if views.len() == 1 { draws.single() } else { draws.view(number) };
            let plan = view.pipeline.plan(size, orientation, &mut draws, &boxes)?;
            planned.push(PlannedView { plan, draws });
        }
        let views = planned;
        let geometries: Vec<_> = views.iter().map(|view| view.plan.geometry()).collect();
        let read = bounded.as_ref().map_or(&geometries[..], |bounded| &bounded.geometry);
        let mut encoded = None;
        let mut scratch = match stored.format {
            Some(raw) => {
                let decoding = shardtool_decode::raw_scratch_bytes(raw, stored.size, images.pixel_format);
                decoding + geometry_bytes(read, images)
            }
            None => encoded.insert(EncodedImage::parse(stored.bytes)?).scratch_bytes(read, &options(images))?,
        };
        let mut more = vec![];
        for feature in &images.more {
            let bytes = stored::more(record, feature)?;
            let bytes = bytes.ok_or_else(|| SampleError::NoFurtherImage { feature: feature.clone() })?;
            let further = |source| SampleError::FurtherImage { feature: feature.clone(), source };
            let image = EncodedImage::parse(bytes).map_err(further)?;
            // One is decoded after the other, in the same memory.
            scratch = scratch.max(image.scratch_bytes(read, &options(images)).map_err(further)?);
            more.push(image);
        }
        let masks = images.masks.iter().map(|feature| stored::mask(record, feature));
        let masks = masks.collect::<Result<Vec<_>, _>>()?;
        scratch +=
            masks.iter().map(|mask| LabelMap::scratch_bytes(mask, images.mask_dtype, stored.size)).max().unwrap_or(0);
        if let Some(bounded) = &bounded {
            let of_mask = masks.first().map_or(0, |_| bounded.label_bytes(images.mask_dtype));
            scratch += bounded.scratch_bytes(images.pixel_format) + of_mask + geometry_bytes(&geometries, images);
        }
        scratch += views_bytes(&views, images);
        Ok(PlannedImage { stored, encoded, more, masks, views, bounded, geometries, boxes, scratch })
    }

    /// Width and height of the stored image.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.stored.size
    }

    /// Replaces the boxes and points of the row by those of the result. With one view only.
    pub(crate) fn map_objects(&self, columns: &ObjectColumns, cells: &mut [Cell]) {
        let bounded = self.bounded.as_ref();
        let before = |point| bounded.map_or(point, |bounded| bounded.map_point(point));
        columns.apply(&self.views[0].plan, &self.boxes, (self.stored.size, before), cells);
    }
}

/// Returns the bytes that geometries take for decoded pixels, one after the other.
pub(super) fn geometry_bytes(geometries: &[Geometry], images: &Images) -> u64 {
    geometries.iter().map(|geometry| geometry.scratch_bytes(images.pixel_format)).max().unwrap_or(0)
}

/// Returns the bytes that the steps of views take after the geometry, and an image before it is normalised.
pub(super) fn views_bytes(views: &[PlannedView], images: &Images) -> u64 {
    let format = images.pixel_format;
    let stages = views.iter().map(|view| view.plan.scratch_bytes(format)).max().unwrap_or(0);
    let output = |view: &PlannedView| images.output.map_or(0, |_| image_bytes(view.plan.output_size(), format));
    stages + views.iter().map(output).max().unwrap_or(0)
}

/// Returns how regions are decoded.
pub(super) fn options(images: &Images) -> RegionOptions {
    RegionOptions::default()
        .with_limits(images.limits)
        .with_reducing_gap(images.reducing_gap)
        .with_float_range(images.float_range)
        .with_truncated(images.truncated)
        .with_pixel_format(images.pixel_format)
}
