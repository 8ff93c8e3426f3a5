//! The one place where JPEG bytes become pixels: our own decoder, and the `image` crate for the kinds that it leaves to
//! others. Damage is an error; no second decoder is asked to be kinder.

use shardtool_jpeg::{self as jpeg, Header, Outcome, Request, Scale};

use crate::codecs;
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::markers;
use crate::pixels::{Pixels, PixelsRef, rgb_len};
use crate::region::{DecodePath, DecodedRegion, RegionOptions};
use crate::transform::geometry::{Geometry, Rect};

/// Our decoder, as this crate uses it.
pub(crate) struct Jpeg(jpeg::Decoder);

impl Default for Jpeg {
    fn default() -> Self {
        Jpeg(jpeg::Decoder::new().with_limits(unlimited()))
    }
}

impl Jpeg {
    /// Decodes a whole JPEG. One cut short is refused, even where only its end marker is missing.
    pub(crate) fn whole(&mut self, bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
        check(bytes, limits)?;
        let Some(header) = supported(Header::parse(bytes, &unlimited()))? else {
            return codecs::decode_rare_jpeg(bytes, limits, pixels);
        };
        (pixels.width, pixels.height) = (header.width, header.height);
        pixels.data.resize(rgb_len(header.width, header.height) as usize, 0);
        let stride = header.width as usize * 3;
        match supported(self.0.decode(bytes, None, &Request::default(), &mut pixels.data, stride))? {
            Some(_) => Ok(()),
            None => codecs::decode_rare_jpeg(bytes, limits, pixels),
        }
    }

    /// Decodes what a geometry needs into `pixels`, whose allocation only grows.
    pub(crate) fn region<'a>(
        &mut self,
        bytes: &[u8],
        entries: Option<&[u8]>,
        geometry: &Geometry,
        options: &RegionOptions,
        pixels: &'a mut Pixels,
    ) -> Result<DecodedRegion<'a>, Error> {
        let decoded = match supported(Header::parse(bytes, &unlimited()))? {
            Some(header) => self.rectangle(&header, bytes, entries, geometry, options, pixels)?,
            None => None,
        };
        if let Some((rect, reduction, outcome)) = decoded {
            let len = rgb_len(rect.width, rect.height) as usize;
            let path = match outcome.path {
                jpeg::DecodePath::Entries => DecodePath::Entries,
                jpeg::DecodePath::Restarts => DecodePath::Restarts,
                jpeg::DecodePath::Start => DecodePath::Start,
                jpeg::DecodePath::Scans => DecodePath::Scans,
            };
            return Ok(DecodedRegion {
                pixels: PixelsRef::new(rect.width, rect.height, &pixels.data[..len])?,
                rect,
                stored: geometry.stored,
                reduction,
                path,
                entries_rejected: outcome.entries_rejected,
            });
        }
        check(bytes, &options.limits)?;
        codecs::decode_rare_jpeg(bytes, &options.limits, pixels)?;
        let window = DecodedRegion { path: DecodePath::WholeImage, ..DecodedRegion::whole_image(pixels.view()?) };
        geometry.check_stored(window.stored)?;
        Ok(window)
    }

    /// Decodes the rectangle that a geometry needs, and tells it with its reduction; `None` for an unsupported kind.
    fn rectangle(
        &mut self,
        header: &Header,
        bytes: &[u8],
        entries: Option<&[u8]>,
        geometry: &Geometry,
        options: &RegionOptions,
        pixels: &mut Pixels,
    ) -> Result<Option<(Rect, u32, Outcome)>, Error> {
        options.limits.check(Format::Jpeg, header.width, header.height, 3)?;
        geometry.check_stored((header.width, header.height))?;
        let reduction = geometry.reduction(options.reducing_gap);
        let rect = geometry.reduced(reduction).needed();
        let len = rgb_len(rect.width, rect.height) as usize;
        // Not more than needed, so that what is held is what was announced.
        pixels.data.reserve_exact(len.saturating_sub(pixels.data.len()));
        pixels.data.resize(pixels.data.len().max(len), 0);
        let entries = entries.filter(|e| !e.is_empty());
        let stride = rect.width as usize * 3;
        let outcome = self.0.decode(bytes, entries, &request(rect, reduction), &mut pixels.data[..len], stride);
        Ok(supported(outcome)?.map(|outcome| (rect, reduction, outcome)))
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }

    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to(0);
    }
}

/// The decoder's own limits do not bind: [`Limits::check`] does, which names the option to raise.
pub(crate) fn unlimited() -> jpeg::Limits {
    jpeg::Limits::default().with_pixels(u64::MAX)
}

/// Refuses a header beyond the limits, and a file cut short, of which some decoders fill the rest with grey and say nothing.
fn check(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    let header = markers::header(bytes)?;
    limits.check(Format::Jpeg, header.width.into(), header.height.into(), 3)?;
    markers::complete_len(bytes).map(drop)
}

/// `None` for a kind of JPEG that our decoder leaves to others.
pub(crate) fn supported<T>(result: jpeg::Result<T>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(jpeg::Error::Unsupported(_)) => Ok(None),
        Err(source) => Err(Error::Jpeg { source }),
    }
}

pub(crate) fn request(rect: Rect, reduction: u32) -> Request {
    let scale = Scale::ALL.into_iter().find(|s| s.divisor() == reduction).unwrap_or(Scale::Full);
    let Rect { left, top, width, height } = rect;
    Request { rect: Some(jpeg::Rect { x: left, y: top, width, height }), scale }
}
