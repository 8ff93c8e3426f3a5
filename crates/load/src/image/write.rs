//! Decodes the planned images of a record, once each, and writes every view into its row.

use super::bounded::{CachedImage, SampleCache};
use super::image_bytes;
use super::object_masks::NotWritten;
use super::planned::{Geometries, PlannedImage, PlannedView, of_image, options, value_options};
use super::stored::{StoredImage, StoredMask};
use crate::arrays::ArrayScratch;
use crate::buffer::RowPixels;
use crate::error::SampleError;
use crate::groups::{Images, Labels};
use crate::meters::WorkerMeters;
use crate::objects::ObjectColumns;
use shardtool_decode::{
    DecodedRegion, Decoder, Draws, EncodedImage, Error, Geometry, LabelDtype, LabelMap, Normalizer, PixelFn,
    PixelFormat, PixelsMut, TransformScratch,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Memory that a worker reuses from one image to the next.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    pub(super) decoder: Decoder,
    unpacked: Vec<u8>,
    pub(super) views: ViewScratch,
    pub(super) labels: LabelMap,
    /// For the arrays of a record.
    pub(crate) arrays: ArrayScratch,
    /// Upper bounds on the memory of `arrays`, and of all others, in bytes.
    bounds: ScratchBytes,
}

/// Memory between a decoded image and the rows of its views.
#[derive(Default)]
pub(super) struct ViewScratch {
    pub(super) transform: TransformScratch,
    /// The finished image in its pixel format, if the batch holds other numbers.
    pixels: Vec<u8>,
    /// An image or a label map of bounded size, or a label map before it is resized.
    pub(super) bounded: Vec<u8>,
}

/// Bytes of scratch of a record.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScratchBytes {
    pub(crate) images: u64,
    pub(crate) arrays: u64,
}

impl ScratchBytes {
    pub(crate) fn sum(self) -> u64 {
        self.images + self.arrays
    }
}

impl DecodeScratch {
    /// Prepares for a record that needs `bytes`: drops what earlier records left if the larger of both exceeds `most`.
    pub(crate) fn prepare(&mut self, bytes: ScratchBytes, most: u64) {
        let larger = |bounds: ScratchBytes| ScratchBytes {
            images: bounds.images.max(bytes.images),
            arrays: bounds.arrays.max(bytes.arrays),
        };
        if larger(self.bounds).sum() > most {
            self.free();
        }
        self.bounds = larger(self.bounds);
    }

    /// Drops the memory if it exceeds `most` bytes.
    pub(crate) fn trim(&mut self, most: u64) {
        if self.bounds.sum() > most {
            self.free();
        }
    }

    /// Drops all memory but the decoder's tables, which no budget counts and which most images share.
    fn free(&mut self) {
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.shrink_to(0);
        *self = DecodeScratch { decoder, ..DecodeScratch::default() };
    }
}

/// How the images of a record are decoded.
#[derive(Clone, Copy)]
pub(crate) struct Decoding<'c> {
    pub(crate) images: &'c Images,
    pub(crate) normalizer: Option<&'c Normalizer>,
    /// Called on each finished image.
    pub(crate) custom: Option<&'c PixelFn>,
    /// The format of the decoded pixels.
    pub(crate) format: PixelFormat,
    /// The cache of decoded images, if there is one.
    pub(crate) cache: Option<SampleCache<'c>>,
    pub(crate) meters: &'c WorkerMeters,
}

/// Decodes the images of a record and their label maps, transforms them, and writes them into `out`. In the cache, the images are
/// numbered in this order.
pub(crate) fn write_row(
    planned: PlannedImage<'_>,
    decoding: Decoding<'_>,
    out: &mut RowPixels<'_>,
    scratch: &mut DecodeScratch,
) -> Result<(), SampleError> {
    let Decoding { images, cache, meters, format, .. } = decoding;
    let Geometries { views: planned_views, bounded, .. } = &planned.geometries;
    let cached = |number: usize| Some(cache?.image(number as u32, bounded.as_ref()?));
    let geometries = planned.geometries.decoded();
    let (stored, encoded) = (&planned.stored, planned.encoded.as_ref());
    let mut all_rows = out.images.chunks_mut(planned_views.len());
    let mut rows = || all_rows.next().unwrap_or_default().iter_mut().map(|row| &mut **row);
    let DecodeScratch { decoder, unpacked, views, .. } = &mut *scratch;
    decoding.write_views(
        planned_views,
        || decode(stored, encoded, geometries, images, decoder, unpacked),
        (cached(0), rows(), views),
    )?;
    for (number, (image, further)) in (1..).zip(planned.more.iter().zip(&images.more)) {
        let written = match (further.values, &planned.by_nearest) {
            (Some(format), Some(by_nearest)) => {
                let cached = cache.zip(by_nearest.bounded.as_ref());
                let cached = cached.map(|(cache, bounded)| cache.image(number as u32, bounded));
                let (geometries, options) = (by_nearest.decoded(), value_options(images, format));
                decoding.of_values(format).write_views(
                    &by_nearest.views,
                    || decoder.decode_parsed_region(image, None, geometries, &options),
                    (cached, rows(), views),
                )
            }
            _ => decoding.write_views(
                planned_views,
                || decoder.decode_parsed_region(image, None, geometries, &options(images, format)),
                (cached(number), rows(), views),
            ),
        };
        let failed = |error| SampleError::FurtherImage { feature: further.feature.clone(), source: of_image(error) };
        written.map_err(failed)?;
    }
    if planned.masks.is_empty() {
        return Ok(());
    }
    let start = Instant::now();
    let masks = planned.masks.iter().zip(&images.masks).zip(&mut out.masks);
    for (number, ((mask, labels), row)) in masks.enumerate() {
        let DecodeScratch { labels: map, views: ViewScratch { transform, bounded, .. }, .. } = &mut *scratch;
        let cached = cached(1 + planned.more.len() + number);
        let load = match *mask {
            StoredMask::Map(mask) => load_map((mask, labels.dtype), images, cached, map, (bounded, transform)),
            StoredMask::Whole => {
                map.fill(planned.planned_size(), Labels::IMAGE);
                Ok(())
            }
        };
        let written = load.and_then(|()| planned_views[0].plan.apply_to_labels(map, labels.fill, row, transform));
        let feature = || labels.feature.clone().unwrap_or_else(|| "pixel_mask".to_owned());
        written.map_err(|error| SampleError::Mask { feature: feature(), source: of_image(error) })?;
    }
    meters.decode.add(start.elapsed(), 0);
    Ok(())
}

/// Writes the masks of the objects that are left of a planned image, as maps with a bit for each of eight objects.
///
/// # Errors
/// [`SampleError::Segmentation`].
pub(crate) fn write_object_masks(
    planned: &PlannedImage<'_>,
    columns: &ObjectColumns,
    maps: &mut Vec<u8>,
    DecodeScratch { labels, views: ViewScratch { transform, bounded: buffer, .. }, .. }: &mut DecodeScratch,
) -> Result<(), SampleError> {
    let Geometries { views, bounded, .. } = &planned.geometries;
    let moves = (&views[0].plan, bounded.as_ref());
    let written = planned.segmentations.write(planned.stored.size, moves, maps, (labels, buffer, transform));
    written.map_err(|error| match error {
        NotWritten::Moved(error) => error.into(),
        NotWritten::Text { object, problem } => {
            let feature = columns.segmentation().unwrap_or_default().to_owned();
            SampleError::Segmentation { feature, object, problem }
        }
    })
}

impl Decoding<'_> {
    /// Returns how images of values are decoded to their format: the batch has them as they are.
    fn of_values(self, format: PixelFormat) -> Self {
        Decoding { normalizer: None, custom: None, format, ..self }
    }

    /// Decodes an image by `decode`, or takes it from the cache, and writes its views into `rows`.
    pub(super) fn write_views<'r, 'd>(
        &self,
        views: &[PlannedView],
        decode: impl FnOnce() -> Result<DecodedRegion<'d>, Error>,
        (cached, rows, scratch): (Option<CachedImage<'_>>, impl Iterator<Item = &'r mut [u8]>, &mut ViewScratch),
    ) -> Result<(), Error> {
        let ViewScratch { transform, pixels, bounded } = scratch;
        let start = Instant::now();
        let decode = || {
            let region = decode()?;
            if region.filled {
                self.meters.filled.fetch_add(1, Ordering::Relaxed);
            }
            Ok(region)
        };
        let write = |region: &DecodedRegion<'_>, transform: &mut TransformScratch| {
            let decoded = Instant::now();
            self.meters.decode.add(decoded - start, 1);
            let mut function = Duration::ZERO;
            for (view, row) in views.iter().zip(rows) {
                function += self.write_view(view, region, row, transform, pixels)?;
            }
            self.meters.resize.add(decoded.elapsed().saturating_sub(function), 1);
            if self.custom.is_some() {
                self.meters.function.add(function, 1);
            }
            Ok(())
        };
        match cached {
            Some(cached) => cached.with_pixels(self.format, decode, (bounded, transform), write),
            None => write(&decode()?, transform),
        }
    }

    /// Writes one view of a decoded image into its row. Returns the time of the user function.
    fn write_view(
        &self,
        PlannedView { plan, draws }: &PlannedView,
        region: &DecodedRegion<'_>,
        row: &mut [u8],
        scratch: &mut TransformScratch,
        pixels: &mut Vec<u8>,
    ) -> Result<Duration, Error> {
        let (width, height) = plan.output_size();
        let format = self.format;
        let image: &mut [u8] = match self.normalizer {
            None => row,
            Some(_) => {
                pixels.resize(image_bytes((width, height), format) as usize, 0);
                pixels
            }
        };
        plan.apply(region, image, scratch)?;
        let mut function = Duration::ZERO;
        if let Some(custom) = self.custom {
            let start = Instant::now();
            // Every image of a record gets the same numbers. Steps are numbered from 0; the function follows the last of any
            // list.
            custom(PixelsMut::with_format(width, height, format, image)?, draws.clone().shared(usize::MAX));
            function = start.elapsed();
        }
        if let Some(normalizer) = self.normalizer {
            normalizer.write(pixels, row);
        }
        Ok(function)
    }
}

/// Decodes a label map, or takes it from the cache.
fn load_map(
    (mask, dtype): (&[u8], LabelDtype),
    images: &Images,
    cached: Option<CachedImage<'_>>,
    labels: &mut LabelMap,
    scratch: (&mut Vec<u8>, &mut TransformScratch),
) -> Result<(), Error> {
    let decode = |labels: &mut LabelMap| labels.decode(mask, dtype, &images.pixels.limits);
    match cached {
        Some(cached) => cached.load_labels(labels, dtype, decode, scratch),
        None => decode(labels),
    }
}

/// Decodes at least the pixels that the geometries need. The only code that decodes a record's image.
fn decode<'a>(
    stored: &StoredImage<'a>,
    encoded: Option<&EncodedImage<'a>>,
    geometries: &[Geometry],
    images: &Images,
    decoder: &'a mut Decoder,
    unpacked: &'a mut Vec<u8>,
) -> Result<DecodedRegion<'a>, Error> {
    match (stored.format, encoded) {
        (Some(raw), _) => {
            let (limits, format) = (&images.pixels.limits, images.pixel_format());
            let pixels = shardtool_decode::decode_raw_as(raw, stored.bytes, stored.size, limits, format, unpacked)?;
            Ok(DecodedRegion::whole_image(pixels))
        }
        (None, Some(image)) => {
            decoder.decode_parsed_region(image, stored.entries, geometries, &options(images, images.pixel_format()))
        }
        (None, None) => {
            let image = EncodedImage::parse(stored.bytes)?;
            decoder.decode_parsed_region(&image, stored.entries, geometries, &options(images, images.pixel_format()))
        }
    }
}
