//! Entry points: the bits at which rows of MCUs begin in the entropy-coded data, so that decoding can start there.
//!
//! Only an image whose coefficients are in one sequential Huffman-coded scan of all components has entry points. For all
//! others the payload is empty.
//!
//! # The payload
//! An MCU row is a row of MCUs. Group *g* is the run of MCU rows [*g*·*step*, (*g* + 1)·*step*), the last one may be
//! shorter. Group 0 starts with the scan's data and has no entry. All numbers are little-endian.
//!
//! | offset | bytes | type | meaning | on violation |
//! |---|---|---|---|---|
//! | 0 | 1 | u8 | *step*, MCU rows in a group, 1 to 8 | decode without |
//! | 1 | 1 | u8 | *c*, components of the scan, 1 or 3 | decode without |
//! | 2 | (4 + 2*c*)·(*groups* − 1) | entries | of group 1, 2, … | decode without, if there are more or fewer |
//!
//! | offset in an entry | bytes | type | meaning | on violation |
//! |---|---|---|---|---|
//! | 0 | 4 | u32 | the group's first bit, counted from the image's first byte as stored, stuffed bytes included, most significant bit first; larger than that of the entry before | decode without |
//! | 4 | 2*c* | i16 each | DC predictors before the group's first MCU, in the order of the scan | decode without |
//!
//! A first bit is never inside the 00 that follows an ff byte of data. Where a restart interval begins, it is the first
//! one after the marker, and the predictors are 0; elsewhere the restart state follows from the MCU's number.
//!
//! Entries are hints. A decoder checks each run of groups that it decodes from an entry: after padding and any restart marker
//! that is due, the run must end where the next entry says, with its predictors, and the last run where the data end. If it
//! does not, the image is decoded from its start. Entries inside a run are not used, so not checked; this decoder begins a
//! run at each entry. An image of one group has an empty payload too.
//!
//! *Rationale.* Entries of 10 bytes (three components) are 0.2 % of a photograph with a group every 16 pixel rows, the default
//! ([`default_step`]). Smaller groups cost more bytes than they save time; with larger ones, a crop decodes rows that it does
//! not need. Several groups are decoded in one loop, which takes less time for each.

use crate::decoder::Decoder;
use crate::entry_points::payload::MAX_STEP;
use crate::entry_points::{find, validate};
use crate::error::Result;
use crate::image::ParsedImage;
use crate::markers::header::Header;

/// Returns the number of MCU rows between entries that fits most uses: 16 rows of pixels.
#[must_use]
pub fn default_step(header: &Header) -> u32 {
    let (_, v) = header.max_sampling();
    (16 / (8 * v)).max(1)
}

/// Finds the entry points of `jpeg`, one every `step` MCU rows, and appends their payload to `payload`. Appends nothing if the
/// image has none. Reads the entropy-coded data once, and does no transforms.
///
/// ```
/// # let jpeg = include_bytes!("../tests/data/420.jpg");
/// use shardtool_jpeg::{Decoder, Header, Limits, entries};
///
/// let mut decoder = Decoder::new();
/// let header = Header::parse(jpeg, &Limits::default())?;
/// let mut payload = Vec::new();
/// entries::find(jpeg, entries::default_step(&header), &mut decoder, &mut payload)?;
/// assert_eq!(payload[0], 1, "MCU rows in a group");
/// # Ok::<(), shardtool_jpeg::Error>(())
/// ```
///
/// # Errors
/// As [`Decoder::decode`] for the whole image: damage anywhere in its data is found.
///
/// # Panics
/// If `step` is not from 1 to 8.
pub fn find(jpeg: &[u8], step: u32, decoder: &mut Decoder, payload: &mut Vec<u8>) -> Result<()> {
    assert!((1..=MAX_STEP).contains(&step), "1 to {MAX_STEP} MCU rows from entry to entry");
    let image = ParsedImage::parse(jpeg, decoder.limits())?;
    find::find(&image.parser, &image.scan, step, decoder.scan_workspace(), payload)
}

/// Returns whether `payload` is exactly what [`find`] finds at the payload's own distance. An empty payload always is. This
/// is what verifying an index means; decoding accepts any payload, and ignores it if it does not fit.
///
/// # Errors
/// As [`find`].
pub fn verify(jpeg: &[u8], payload: &[u8], decoder: &mut Decoder) -> Result<bool> {
    if payload.is_empty() {
        return Ok(true);
    }
    let image = ParsedImage::parse(jpeg, decoder.limits())?;
    validate::is_exact(&image.parser, &image.scan, payload, decoder.scan_workspace())
}
