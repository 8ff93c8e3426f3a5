//! Images of a bounded size, from which a cache of decoded images serves later epochs.

use super::SampleDraws;
use super::{image_bytes, pixels};
use crate::decoded_cache::{CachedPixels, DecodedImages};
use crate::options::DecodedCache;
use shardtool_decode::{
    DecodedRegion, Error, Filter, Geometry, LabelDtype, LabelMap, Orientation, Pipeline, PixelFormat, PixelsRef, Plan,
    Transform, TransformScratch,
};
use shardtool_read::Record;

/// How an image, and what belongs to it, is resized before its views are made from it.
pub(super) struct Bounded {
    plan: Plan,
    pub(super) geometry: [Geometry; 1],
    /// Width and height after it.
    pub(super) size: (u32, u32),
}

impl Bounded {
    /// Plans the resize of an image of this width and height.
    pub(super) fn of(cache: &DecodedCache, stored: (u32, u32), orientation: Orientation) -> Result<Self, Error> {
        let size = cache.bounded(orientation.size(stored));
        let resize = Transform::ResizeTo { size: [size.1, size.0], interpolation: Filter::Bilinear };
        // It draws nothing.
        let mut draws = SampleDraws { seed: 0, epoch: 0, source_position: 0 }.single();
        let plan = Pipeline::new(vec![resize])?.plan(stored, orientation, &mut draws, &[])?;
        Ok(Bounded { geometry: [plan.geometry()], plan, size })
    }

    /// Returns the resize of values, which must not be mixed.
    pub(super) fn by_nearest(&self) -> Self {
        let plan = self.plan.by_nearest();
        Bounded { geometry: [plan.geometry()], plan, size: self.size }
    }

    /// Returns what is done to the stored image.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the bytes that the result and the resize take.
    pub(super) fn scratch_bytes(&self, format: PixelFormat) -> u64 {
        image_bytes(self.size, format) + self.plan.scratch_bytes(format)
    }

    /// Returns the bytes that a label map after the resize takes.
    pub(super) fn label_bytes(&self, dtype: LabelDtype) -> u64 {
        pixels(self.size) * dtype.bytes() as u64
    }

    /// Resizes a label map to `out`.
    pub(super) fn resize_labels(
        &self,
        labels: &mut LabelMap,
        dtype: LabelDtype,
        (out, transform): (&mut Vec<u8>, &mut TransformScratch),
    ) -> Result<(), Error> {
        out.resize(self.label_bytes(dtype) as usize, 0);
        // The resize reads nothing outside the map.
        self.plan.apply_to_labels(labels, 0, out, transform)
    }

    /// Returns where a point of the stored image lies in the resized one: x and y in pixels.
    pub(super) fn map_point(&self, point: [f64; 2]) -> [f64; 2] {
        self.plan.map_point(point)
    }

    /// Returns where a box of the stored image lies in the resized one: left, top, right, bottom in pixels. Does not clip it.
    pub(super) fn map_box(&self, [left, top, right, bottom]: [f64; 4]) -> [f64; 4] {
        let ([a, b], [c, d]) = (self.map_point([left, top]), self.map_point([right, bottom]));
        [a.min(c), b.min(d), a.max(c), b.max(d)]
    }
}

/// The cache of decoded images, for one sample.
#[derive(Clone, Copy)]
pub(crate) struct SampleCache<'c> {
    pub(crate) images: &'c DecodedImages,
    /// The id of the sample.
    pub(crate) id: u64,
    /// The record that the images lie in, unless their bytes were copied.
    pub(crate) record: Option<&'c Record>,
}

impl<'c> SampleCache<'c> {
    /// Returns the place of an image of the sample.
    pub(super) fn image(self, number: u32, bounded: &'c Bounded) -> CachedImage<'c> {
        CachedImage { cache: self, number, bounded }
    }
}

/// An image of bounded size, and its place in the cache.
pub(super) struct CachedImage<'c> {
    cache: SampleCache<'c>,
    /// The number of the image in its sample.
    number: u32,
    bounded: &'c Bounded,
}

impl CachedImage<'_> {
    /// Calls `write` with the whole image of bounded size, from the cache or as `decode` returns at least the pixels of
    /// [`Bounded::geometry`].
    pub(super) fn with_pixels<'d>(
        &self,
        format: PixelFormat,
        decode: impl FnOnce() -> Result<DecodedRegion<'d>, Error>,
        (buffer, transform): (&mut Vec<u8>, &mut TransformScratch),
        write: impl FnOnce(&DecodedRegion<'_>, &mut TransformScratch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let cached = match self.get(buffer) {
            Some(cached) => cached,
            None => {
                let region = decode()?;
                buffer.resize(image_bytes(self.bounded.size, format) as usize, 0);
                self.bounded.plan.apply(&region, buffer, transform)?;
                self.keep(buffer)
            }
        };
        let (width, height) = self.bounded.size;
        let pixels = PixelsRef::with_format(width, height, format, cached.bytes(buffer))?;
        write(&DecodedRegion::whole_image(pixels), transform)
    }

    /// Makes `labels` the label map of bounded size, from the cache or as `decode` decodes it to values of type `dtype`.
    pub(super) fn load_labels(
        &self,
        labels: &mut LabelMap,
        dtype: LabelDtype,
        decode: impl FnOnce(&mut LabelMap) -> Result<(), Error>,
        (buffer, transform): (&mut Vec<u8>, &mut TransformScratch),
    ) -> Result<(), Error> {
        let cached = match self.get(buffer) {
            Some(cached) => cached,
            None => {
                decode(labels)?;
                self.bounded.resize_labels(labels, dtype, (buffer, transform))?;
                self.keep(buffer)
            }
        };
        labels.set(self.bounded.size, dtype, cached.bytes(buffer))
    }

    fn get(&self, buffer: &mut Vec<u8>) -> Option<CachedPixels> {
        self.cache.images.get((self.cache.id, self.number), self.bounded.size, buffer)
    }

    /// Adds the image in `buffer` to the cache.
    fn keep(&self, buffer: &[u8]) -> CachedPixels {
        let SampleCache { images, id, record } = self.cache;
        // What was decoded from a page that cannot be read is wrong: the worker then reads the record again.
        if record.is_none_or(|record| record.check_readable().is_ok()) {
            images.insert((id, self.number), self.bounded.size, buffer);
        }
        CachedPixels::Read
    }
}
