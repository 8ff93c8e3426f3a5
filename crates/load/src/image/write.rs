//! Decodes the planned images of a record, once each, and writes every view into its row.

use super::image_bytes;
use super::planned::{PlannedImage, PlannedView, options};
use super::stored::StoredImage;
use crate::bad_samples::SampleError;
use crate::buffer::{RowMut, RowPixels};
use crate::config::Images;
use crate::decoded_cache::DecodedImages;
use crate::meters::WorkerMeters;
use shardtool_decode::{
    DecodedRegion, Decoder, Draws, EncodedImage, Error, Geometry, LabelDtype, LabelMap, Normalizer, PixelsMut,
    PixelsRef, TransformScratch,
};
use shardtool_read::Record;
use std::time::Instant;

/// Memory that a worker reuses from one image to the next.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    pub(super) decoder: Decoder,
    pub(super) transform: TransformScratch,
    unpacked: Vec<u8>,
    /// The finished image in its pixel format, if the batch holds other numbers.
    pub(super) pixels: Vec<u8>,
    labels: LabelMap,
    /// An image of bounded size.
    bounded: Vec<u8>,
    /// A decompressed chunk of an array.
    pub(crate) chunk: Vec<u8>,
    /// Upper bounds on the memory of `chunk`, and of all others, in bytes.
    bounds: ScratchBytes,
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
pub(crate) struct Decoding<'c> {
    pub(crate) images: &'c Images,
    pub(crate) normalizer: Option<&'c Normalizer>,
    /// The cache of decoded images, the sample's id, and its record.
    pub(crate) cached: Option<(&'c DecodedImages, u64, &'c Record)>,
    pub(crate) meters: &'c WorkerMeters,
}

/// Decodes the images of a record and their label maps, transforms them, and writes them into `out`.
pub(crate) fn write_row(
    planned: PlannedImage<'_>,
    Decoding { images, normalizer, cached, meters }: Decoding<'_>,
    out: &mut RowPixels<'_>,
    scratch: &mut DecodeScratch,
) -> Result<(), SampleError> {
    let mut rows = out.images.iter_mut();
    let (geometries, views) = (&planned.geometries, &planned.views);
    let mut write = |region: DecodedRegion<'_>, start, transform: &mut _, pixels: &mut _| {
        let decoded = Instant::now();
        meters.decode.add(decoded - start, 1);
        for (view, row) in views.iter().zip(rows.by_ref().take(views.len())) {
            write_view(view, &region, images, normalizer, row, (&mut *transform, &mut *pixels))?;
        }
        meters.resize.add(decoded.elapsed(), 1);
        Ok::<_, Error>(())
    };
    let DecodeScratch { decoder, transform, unpacked, pixels, bounded: buffer, .. } = scratch;
    let start = Instant::now();
    let (stored, encoded) = (&planned.stored, planned.encoded.as_ref());
    match (&planned.bounded, cached) {
        (Some(bounded), Some((cache, id, record))) => {
            let hit = match cache.get(id, bounded.size, buffer) {
                Some(cached) => {
                    write(whole_image(bounded.size, images, &cached)?, start, transform, pixels)?;
                    true
                }
                None => false,
            };
            if !hit {
                let region = decode(stored, encoded, &bounded.geometry, images, decoder, unpacked)?;
                bounded.write(&region, buffer, transform)?;
                // What was decoded from a page that cannot be read is wrong: the worker then reads the record again.
                if record.check_readable().is_ok() {
                    cache.insert(id, bounded.size, buffer);
                }
                write(whole_image(bounded.size, images, buffer)?, start, transform, pixels)?;
            }
        }
        _ => {
            let region = decode(stored, encoded, geometries, images, decoder, unpacked)?;
            write(region, start, transform, pixels)?;
        }
    }
    for (image, feature) in planned.more.iter().zip(&images.more) {
        let further = |source| SampleError::FurtherImage { feature: feature.clone(), source };
        let start = Instant::now();
        let region = decoder.decode_parsed_region(image, None, geometries, &options(images)).map_err(further)?;
        write(region, start, transform, pixels).map_err(further)?;
    }
    if planned.masks.is_empty() {
        return Ok(());
    }
    let start = Instant::now();
    for ((mask, feature), row) in planned.masks.iter().zip(&images.masks).zip(&mut out.masks) {
        let written = write_mask(mask, &planned.views[0], images, row, scratch);
        written.map_err(|source| SampleError::Mask { feature: feature.clone(), source })?;
    }
    meters.decode.add(start.elapsed(), 0);
    Ok(())
}

/// Returns the region of a whole image of this width and height, in the pixel format of the images.
fn whole_image<'p>((width, height): (u32, u32), images: &Images, pixels: &'p [u8]) -> Result<DecodedRegion<'p>, Error> {
    PixelsRef::with_format(width, height, images.pixel_format, pixels).map(DecodedRegion::whole_image)
}

/// Writes one view of a decoded image into its row.
pub(super) fn write_view(
    PlannedView { plan, draws }: &PlannedView,
    region: &DecodedRegion<'_>,
    images: &Images,
    normalizer: Option<&Normalizer>,
    row: &mut [u8],
    (scratch, pixels): (&mut TransformScratch, &mut Vec<u8>),
) -> Result<(), Error> {
    let (width, height) = plan.output_size();
    let image: &mut [u8] = match normalizer {
        None => row,
        Some(_) => {
            pixels.resize(image_bytes((width, height), images.pixel_format) as usize, 0);
            pixels
        }
    };
    plan.apply(region, image, scratch)?;
    if let Some(custom) = &images.custom {
        // Every image of a record gets the same numbers. Steps are numbered from 0; the function follows the last of any list.
        custom(PixelsMut::with_format(width, height, images.pixel_format, image)?, draws.clone().shared(usize::MAX));
    }
    if let Some(normalizer) = normalizer {
        normalizer.write(pixels, row);
    }
    Ok(())
}

/// Decodes a label map and writes it into its row.
fn write_mask(
    mask: &[u8],
    view: &PlannedView,
    images: &Images,
    row: &mut RowMut<'_>,
    scratch: &mut DecodeScratch,
) -> Result<(), Error> {
    let DecodeScratch { labels, transform, .. } = scratch;
    labels.decode(mask, images.mask_dtype, &images.limits)?;
    let fill = images.mask_fill.unwrap_or(match images.mask_dtype {
        LabelDtype::U8 => u8::MAX.into(),
        LabelDtype::U16 => u16::MAX,
    });
    view.plan.apply_to_labels(labels, fill, row, transform)
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
            let (limits, format) = (&images.limits, images.pixel_format);
            let pixels = shardtool_decode::decode_raw_as(raw, stored.bytes, stored.size, limits, format, unpacked)?;
            Ok(DecodedRegion::whole_image(pixels))
        }
        (None, Some(image)) => decoder.decode_parsed_region(image, stored.entries, geometries, &options(images)),
        (None, None) => {
            let image = EncodedImage::parse(stored.bytes)?;
            decoder.decode_parsed_region(&image, stored.entries, geometries, &options(images))
        }
    }
}
