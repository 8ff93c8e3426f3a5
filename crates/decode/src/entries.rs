//! JPEG entry points of stored images: what an index holds of them, and whether that is true.

use std::cell::RefCell;

use shardtool_jpeg::{self as jpeg, Header, Limits, entries};

use crate::jpeg::unlimited;

thread_local! {
    /// One decoder a thread: its memory is reused from image to image.
    static DECODER: RefCell<jpeg::Decoder> = RefCell::new(jpeg::Decoder::new());
}

/// Entry points of an image, at the default distance, as an index holds them; none for what is no JPEG, or one that has
/// none. An image whose data are damaged has none either: whoever decodes it is told what is wrong with it.
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

/// Whether these are the entry points of a JPEG: those that looking for them again finds, byte for byte. `verify` asks this
/// of an index. Empty entry points say nothing that could be wrong.
pub fn check_entries(image: &[u8], entries: &[u8]) -> bool {
    let Some(step) = entries.first() else { return true };
    let mut found = vec![];
    let looked = (1..=8).contains(step).then(|| {
        entries::find(image, u32::from(*step), &mut jpeg::Decoder::new().with_limits(unlimited()), &mut found)
    });
    matches!(looked, Some(Ok(()))) && found == entries
}
