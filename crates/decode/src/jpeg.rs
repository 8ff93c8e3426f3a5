//! Decodes JPEGs with our own decoder. Damage is an error, unless [`Truncated::Fill`] asks for what libjpeg-turbo makes of it.

use shardtool_jpeg::{self as jpeg, Outcome, Request, Scale};

use crate::decode_options::DecodeOptions;
use crate::encoded::{refused, unlimited};
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::markers;
use crate::pixel_format::{Depth, PixelFormat, widen};
use crate::pixels::{Pixels, PixelsRef, rgb_len};
use crate::region::{DecodePath, DecodedRegion, RegionOptions};
use crate::transform::geometry::{Geometry, needed};
use crate::transform::rect::Rect;
use crate::truncated::Truncated;

/// Our decoder, without limits.
pub(crate) struct Jpeg(jpeg::Decoder);

impl Default for Jpeg {
    fn default() -> Self {
        Jpeg(jpeg::Decoder::new().with_limits(unlimited()))
    }
}

impl Jpeg {
    /// Decodes a whole JPEG. By default a truncated one is refused, even if only its end marker is missing. Returns whether the image
    /// was filled.
    pub(crate) fn whole(
        &mut self,
        bytes: &[u8],
        DecodeOptions { limits, truncated, .. }: &DecodeOptions,
        pixels: &mut Pixels,
    ) -> Result<bool, Error> {
        let fill = *truncated == Truncated::Fill;
        let image = match jpeg::ParsedImage::parse(bytes, &unlimited()) {
            Ok(image) => image,
            Err(error) => {
                // Truncation and limits are reported first.
                check(bytes, limits)?;
                return Err(refused(error));
            }
        };
        let (width, height) = (image.header().width, image.header().height);
        limits.check(Format::Jpeg, width, height, 3)?;
        if !fill {
            markers::complete_len(bytes)?;
        }
        (pixels.width, pixels.height) = (width, height);
        pixels.data.resize(rgb_len(width, height) as usize, 0);
        let stride = width as usize * 3;
        let request = Request { fill, ..Request::default() };
        let outcome = self.0.decode_parsed(&image, None, &request, &mut pixels.data, stride).map_err(refused)?;
        Ok(outcome.filled)
    }

    /// Decodes what geometries need of a JPEG into `pixels`, whose allocation only grows.
    pub(crate) fn region<'a>(
        &mut self,
        image: &jpeg::ParsedImage<'_>,
        entries: Option<&[u8]>,
        geometries: &[Geometry],
        options: &RegionOptions,
        pixels: &'a mut Pixels,
    ) -> Result<DecodedRegion<'a>, Error> {
        let (rect, reduction, outcome) = self.rectangle(image, entries, geometries, options, pixels)?;
        let format = options.pixel_format;
        let len = format.len((rect.width, rect.height)) as usize;
        if format.depth == Depth::Sixteen {
            widen(&mut pixels.data, len / 2, format.depth);
        }
        let path = match outcome.path {
            jpeg::DecodePath::Entries => DecodePath::Entries,
            jpeg::DecodePath::Restarts => DecodePath::Restarts,
            jpeg::DecodePath::Start => DecodePath::Start,
            jpeg::DecodePath::Scans => DecodePath::Scans,
        };
        Ok(DecodedRegion {
            pixels: PixelsRef::with_format(rect.width, rect.height, format, &pixels.data[..len])?,
            rect,
            stored: (image.header().width, image.header().height),
            reduction,
            path,
            entries_rejected: outcome.entries_rejected,
            filled: outcome.filled,
        })
    }

    /// Decodes the rectangle that geometries need, and returns it with its reduction.
    fn rectangle(
        &mut self,
        image: &jpeg::ParsedImage<'_>,
        entries: Option<&[u8]>,
        geometries: &[Geometry],
        options: &RegionOptions,
        pixels: &mut Pixels,
    ) -> Result<(Rect, u32, Outcome), Error> {
        let (width, height) = (image.header().width, image.header().height);
        options.limits.check(Format::Jpeg, width, height, 3)?;
        geometries.iter().try_for_each(|geometry| geometry.check_stored((width, height)))?;
        let (rect, reduction) = needed(geometries, options.reducing_gap);
        // 16-bit samples are made from 8-bit ones.
        let format = PixelFormat { depth: Depth::Eight, ..options.pixel_format };
        let size = (rect.width, rect.height);
        let len = format.len(size) as usize;
        // Reserves exactly what is needed, so that the memory held is what `scratch_bytes` promised.
        let result = options.pixel_format.len(size) as usize;
        pixels.data.reserve_exact(result.saturating_sub(pixels.data.len()));
        pixels.data.resize(pixels.data.len().max(len), 0);
        let entries = entries.filter(|e| !e.is_empty());
        let stride = rect.width as usize * format.bytes();
        let (request, out) = (request(rect, reduction, options), &mut pixels.data[..len]);
        let outcome = self.0.decode_parsed(image, entries, &request, out, stride).map_err(refused)?;
        Ok((rect, reduction, outcome))
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }

    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to(0);
    }
}

/// Checks limits and completeness of a JPEG of any kind. Some decoders fill the rest of a truncated image with grey, without an
/// error.
fn check(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    let header = markers::header(bytes)?;
    limits.check(Format::Jpeg, header.width, header.height, 3)?;
    markers::complete_len(bytes).map(drop)
}

/// Returns the request for a rectangle of the image reduced by 1, 2, 4 or 8.
pub(crate) fn request(rect: Rect, reduction: u32, options: &RegionOptions) -> Request {
    let scale = Scale::ALL.into_iter().find(|s| s.divisor() == reduction).unwrap_or(Scale::Full);
    let Rect { left, top, width, height } = rect;
    let (channels, fill) = (options.pixel_format.channels, options.truncated == Truncated::Fill);
    Request { rect: Some(jpeg::Rect { x: left, y: top, width, height }), scale, channels, fill }
}
