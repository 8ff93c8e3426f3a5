//! The images of a record with everything drawn for them, before anything is decoded.

use super::SampleDraws;
use super::bounded::Bounded;
use super::draws::StepDraws;
use super::object_masks::ObjectTexts;
use super::stored::{self, StoredImage, StoredMask};
use super::{image_bytes, pixels};
use crate::cell::Cell;
use crate::error::SampleError;
use crate::groups::{Images, Labels};
use crate::objects::{MappedBoxes, ObjectColumns};
use crate::options::View;
use shardtool_decode::{EncodedImage, Error, Geometry, LabelMap, Orientation, PixelFormat, Plan, RegionOptions};
use shardtool_read::Record;

/// The images of a record, and what is done to them.
pub(crate) struct PlannedImage<'r> {
    pub(super) stored: StoredImage<'r>,
    /// The image with its parsed header, unless it is stored as raw pixels.
    pub(super) encoded: Option<EncodedImage<'r>>,
    /// Its further images.
    pub(super) more: Vec<EncodedImage<'r>>,
    /// What is done to those that hold values; `None` if none does.
    pub(super) by_nearest: Option<Geometries>,
    /// What its masks are made of, in the order of [`Images::masks`].
    pub(super) masks: Vec<StoredMask<'r>>,
    pub(super) geometries: Geometries,
    /// Where its objects lie in the result.
    objects: MappedBoxes,
    /// What those that are left cover.
    pub(super) segmentations: ObjectTexts<'r>,
    /// Upper bound in bytes on the memory that decoding and transforming need.
    pub(crate) scratch: u64,
}

/// What is done to the pixels of an image: perhaps a resize, then each view.
pub(super) struct Geometries {
    /// What each view does.
    pub(super) views: Vec<PlannedView>,
    /// The resize before the views, if decoded images are cached.
    pub(super) bounded: Option<Bounded>,
    /// The geometry of each view.
    pub(super) of_views: Vec<Geometry>,
}

impl Geometries {
    fn new(views: Vec<PlannedView>, bounded: Option<Bounded>) -> Self {
        let of_views = views.iter().map(|view| view.plan.geometry()).collect();
        Geometries { views, bounded, of_views }
    }

    /// Returns those for values, which must not be mixed.
    fn by_nearest(&self) -> Self {
        let view = |view: &PlannedView| PlannedView { plan: view.plan.by_nearest(), draws: view.draws.clone() };
        Self::new(self.views.iter().map(view).collect(), self.bounded.as_ref().map(Bounded::by_nearest))
    }

    /// Returns the geometries for which the stored image is decoded.
    pub(super) fn decoded(&self) -> &[Geometry] {
        self.bounded.as_ref().map_or(&self.of_views, |bounded| &bounded.geometry)
    }

    /// Returns the bytes that they take for decoded pixels of a format, in addition to decoding.
    fn scratch_bytes(&self, format: PixelFormat, output: bool) -> u64 {
        let bounded = self.bounded.as_ref();
        let resized = |bounded: &Bounded| bounded.scratch_bytes(format) + geometry_bytes(&self.of_views, format);
        bounded.map_or(0, resized) + views_bytes(&self.views, format, output)
    }
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
        let bounded = images
            .pixels
            .decoded_cache
            .as_ref()
            .map(|cache| Bounded::of(cache, stored.size, orientation))
            .transpose()?;
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
        let format = images.pixel_format();
        let geometries = Geometries::new(planned, bounded);
        let read = geometries.decoded();
        let mut encoded = None;
        let mut decoding = match stored.format {
            Some(raw) => {
                let decoding = shardtool_decode::raw_scratch_bytes(raw, stored.size, format);
                decoding + geometry_bytes(read, format)
            }
            None => encoded.insert(EncodedImage::parse(stored.bytes)?).scratch_bytes(read, &options(images, format))?,
        };
        let values = images.more.iter().any(|further| further.values.is_some());
        let by_nearest = values.then(|| geometries.by_nearest());
        let mut after = geometries.scratch_bytes(format, images.output.is_some());
        let mut more = vec![];
        for further in &images.more {
            let feature = &further.feature;
            let bytes = stored::further(record, feature)?;
            let bytes = bytes.ok_or_else(|| SampleError::NoFurtherImage { feature: feature.clone() })?;
            let failed = |error| SampleError::FurtherImage { feature: feature.clone(), source: of_image(error) };
            let image = EncodedImage::parse(bytes).map_err(failed)?;
            further.check(&image, images, views)?;
            // One is decoded after the other, in the same memory.
            let needed = match (further.values, &by_nearest) {
                (Some(values), Some(by_nearest)) => {
                    after = after.max(by_nearest.scratch_bytes(values, false));
                    image.scratch_bytes(by_nearest.decoded(), &value_options(images, values))
                }
                _ => image.scratch_bytes(read, &options(images, format)),
            };
            decoding = decoding.max(needed.map_err(failed)?);
            more.push(image);
        }
        let masks = images.masks.iter().map(|mask| StoredMask::of(record, mask)).collect::<Result<Vec<_>, _>>()?;
        let of_mask = |(mask, labels): (&StoredMask<'_>, &Labels)| {
            match mask {
                StoredMask::Map(map) => {
                    let resized = geometries.bounded.as_ref().map_or(0, |bounded| bounded.label_bytes(labels.dtype));
                    LabelMap::scratch_bytes(map, labels.dtype, stored.size) + resized
                }
                // The map, and the result before rows and columns are exchanged.
                StoredMask::Whole => pixels(stored.size) + pixels(geometries.views[0].plan.output_size()),
            }
        };
        let of_masks = masks.iter().zip(&images.masks).map(of_mask).max().unwrap_or(0);
        let objects = objects.map(|(columns, _)| (columns, columns.mapped(&geometries.views[0].plan, &boxes)));
        let (segmentations, objects) = match objects {
            Some((columns, objects)) => (ObjectTexts::of(record, columns, &objects)?, objects),
            None => Default::default(),
        };
        // Objects have one view.
        let moves = (&geometries.views[0].plan, geometries.bounded.as_ref());
        let of_objects = segmentations.scratch_bytes(stored.size, moves);
        let scratch = decoding + after + of_masks + of_objects;
        Ok(PlannedImage { stored, encoded, more, by_nearest, masks, geometries, objects, segmentations, scratch })
    }

    /// Width and height of the stored image.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.stored.size
    }

    /// Returns the size of the image that the steps get: width and height.
    pub(super) fn planned_size(&self) -> (u32, u32) {
        self.geometries.bounded.as_ref().map_or(self.stored.size, |bounded| bounded.size)
    }

    /// Returns how many objects have masks, and the bytes that these take.
    pub(crate) fn object_masks(&self) -> (usize, u64) {
        let moves = (&self.geometries.views[0].plan, self.geometries.bounded.as_ref());
        (self.segmentations.len(), self.segmentations.scratch_bytes(self.stored.size, moves))
    }

    /// Returns whether a view shows a pixel elsewhere than it is stored.
    pub(crate) fn moves_pixels(&self) -> bool {
        let Geometries { views, bounded, .. } = &self.geometries;
        let resized = bounded.as_ref().is_some_and(|bounded| bounded.size != self.stored.size);
        resized || views.iter().any(|view| view.plan.moves_pixels())
    }

    /// Replaces the boxes and points of the row by those of the result. With one view only.
    pub(crate) fn map_objects(&self, columns: &ObjectColumns, cells: &mut [Cell]) {
        let Geometries { views, bounded, .. } = &self.geometries;
        let before = |point| bounded.as_ref().map_or(point, |bounded| bounded.map_point(point));
        columns.apply(&views[0].plan, &self.objects, (self.stored.size, before), cells);
    }
}

/// Says that what belongs to an image has another size than it: no index is wrong.
pub(super) fn of_image(error: Error) -> Error {
    match error {
        Error::SizeMismatch { expected, found } => Error::MaskSize { expected, found },
        error => error,
    }
}

/// Returns the bytes that geometries take for decoded pixels of a format, one after the other.
pub(super) fn geometry_bytes(geometries: &[Geometry], format: PixelFormat) -> u64 {
    geometries.iter().map(|geometry| geometry.scratch_bytes(format)).max().unwrap_or(0)
}

/// Returns the bytes that the steps of views take after the geometry, and an image before it is normalised, if it is.
pub(super) fn views_bytes(views: &[PlannedView], format: PixelFormat, normalized: bool) -> u64 {
    let stages = views.iter().map(|view| view.plan.scratch_bytes(format)).max().unwrap_or(0);
    let image = |view: &PlannedView| if normalized { image_bytes(view.plan.output_size(), format) } else { 0 };
    stages + views.iter().map(image).max().unwrap_or(0)
}

/// How many times as large as its result a crop of a JPEG that is decoded at a fraction of its size still is: pixels differ little
/// from the exact ones.
const SCALED_DECODE_GAP: f64 = 2.0;

/// Returns how regions are decoded to colours of a format.
pub(super) fn options(images: &Images, format: PixelFormat) -> RegionOptions {
    value_options(images, format)
        .with_reducing_gap(images.pixels.scaled_decode.then_some(SCALED_DECODE_GAP))
        .with_float_range(images.pixels.float_range)
        .with_truncated(images.pixels.truncated)
}

/// Returns how regions are decoded to the stored values, of a format that holds them.
pub(super) fn value_options(images: &Images, format: PixelFormat) -> RegionOptions {
    RegionOptions::default().with_limits(images.pixels.limits).with_pixel_format(format)
}
