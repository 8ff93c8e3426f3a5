//! Images of a bounded size, from which a cache of decoded images serves later epochs.

use super::SampleDraws;
use super::image_bytes;
use super::stored::StoredImage;
use crate::decoded_cache::DecodedCache;
use shardtool_decode::{
    DecodedRegion, Error, Filter, Geometry, Orientation, Pipeline, PixelFormat, Plan, Transform, TransformScratch,
};

/// How an image is resized before its views are made from it.
pub(super) struct Bounded {
    plan: Plan,
    pub(super) geometry: [Geometry; 1],
    /// Width and height after it.
    pub(super) size: (u32, u32),
}

impl Bounded {
    /// Plans the resize of a stored image.
    pub(super) fn of(cache: &DecodedCache, stored: &StoredImage<'_>, orientation: Orientation) -> Result<Self, Error> {
        let size = cache.bounded(orientation.size(stored.size));
        let resize = Transform::ResizeTo { size: [size.1, size.0], interpolation: Filter::Bilinear };
        // It draws nothing.
        let mut draws = SampleDraws { seed: 0, epoch: 0, source_position: 0 }.single();
        let plan = Pipeline::new(vec![resize])?.plan(stored.size, orientation, &mut draws, &[])?;
        Ok(Bounded { geometry: [plan.geometry()], plan, size })
    }

    /// Returns the bytes that the result and the resize take.
    pub(super) fn scratch_bytes(&self, format: PixelFormat) -> u64 {
        image_bytes(self.size, format) + self.plan.scratch_bytes(format)
    }

    /// Writes the resized image into `out`.
    pub(super) fn write(
        &self,
        decoded: &DecodedRegion<'_>,
        out: &mut Vec<u8>,
        scratch: &mut TransformScratch,
    ) -> Result<(), Error> {
        out.resize(image_bytes(self.size, decoded.pixels.format()) as usize, 0);
        self.plan.apply(decoded, out, scratch)
    }
}
