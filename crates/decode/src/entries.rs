//! JPEG entry points of stored images, as an index holds them: finding and verifying.

use std::cell::RefCell;

use shardtool_jpeg::{self as jpeg, Header, Limits, entries};

use crate::encoded::unlimited;

thread_local! {
    /// A decoder for each thread, which reuses its memory from image to image.
    static DECODER: RefCell<jpeg::Decoder> = RefCell::new(jpeg::Decoder::new());
}

/// Returns the entry points of an image at the default distance. Empty for other formats, for JPEGs that
/// cannot have any, and for damaged ones: decoding reports their damage.
pub fn entry_points(image: &[u8]) -> Vec<u8> {
    let mut payload = vec![];
    if image.starts_with(&[0xff, 0xd8])
        && let Ok(header) = Header::parse(image, &Limits::default())
    {
        let step = entries::default_step(&header);
        let found = DECODER.with_borrow_mut(|decoder| entries::find(image, step, decoder, &mut payload));
        if found.is_err() {
            payload.clear();
        }
    }
    payload
}

/// Returns whether `entries` are exactly the entry points that finding them again gives: the check of an index by `verify`.
/// Empty entry points always are. Decoding does not need this check (see [`shardtool_jpeg::entries`]).
pub fn check_entries(image: &[u8], entries: &[u8]) -> bool {
    let mut decoder = jpeg::Decoder::new().with_limits(unlimited());
    entries::verify(image, entries, &mut decoder).unwrap_or(false)
}
