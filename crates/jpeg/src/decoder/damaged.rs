//! Decoding of a cut or damaged image, of which libjpeg warns.

use super::{DecodePath, Decoder, Outcome};
use crate::error::Result;
use crate::image::ParsedImage;
use crate::markers::header::Color;
use crate::plan::DecodePlan;
use crate::request::Request;

/// Bytes after the data: more than any segment, so that each ends.
pub(super) const PADDING: usize = 2 * 32_770;

impl Decoder {
    /// Decodes an image to the pixels that libjpeg-turbo makes of it. `known` says whether it is known to be damaged.
    ///
    /// # Errors
    /// Those that libjpeg does not recover from: damage in a header, also one of a later scan.
    pub(super) fn decode_damaged(
        &mut self,
        image: &ParsedImage<'_>,
        request: &Request,
        (out, stride): (&mut [u8], usize),
        known: bool,
    ) -> Result<Outcome> {
        let bytes = padded(image.bytes());
        let limits = image.parser.limits();
        let image = match image.header().color {
            Color::Samples(_) => ParsedImage::parse_samples(&bytes, limits)?,
            _ => ParsedImage::parse(&bytes, limits)?,
        };
        let plan = DecodePlan::new(image.header(), &image.parser.quant, request)?;
        let quant = self.multiscan.begin_filled(&image)?;
        self.decode_all_scans((&image, &quant), request, out, stride)?;
        let (width, height) = (plan.rect.width, plan.rect.height);
        let filled = known || self.multiscan.meets_damage();
        Ok(Outcome { width, height, path: DecodePath::Scans, entries_rejected: false, filled })
    }
}

/// Returns the data as libjpeg reads them (`fill_mem_input_buffer`): followed by EOI markers without end.
fn padded(jpeg: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(jpeg.len() + PADDING);
    bytes.extend_from_slice(jpeg);
    bytes.extend([0xff, 0xd9].into_iter().cycle().take(PADDING));
    bytes
}
