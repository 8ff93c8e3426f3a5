//! JPEG entry points, as `pack`, `index` and `repair` fill them in.

use shardtool_jpeg::{Decoder, Header, Limits, entries};
use shardtool_pack::EntryPoints;
use std::cell::RefCell;

/// The flag that every command which writes indexes has.
#[derive(clap::Args)]
pub(crate) struct EntriesArgument {
    /// Write no JPEG entry points into the index: crops are then decoded from the image's start
    #[arg(long)]
    pub(crate) no_jpeg_entries: bool,
}

impl EntriesArgument {
    pub(crate) fn function(&self) -> Option<EntryPoints> {
        (!self.no_jpeg_entries).then_some(entry_points)
    }
}

thread_local! {
    /// One decoder a thread: its memory is reused from image to image.
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder::new());
}

/// Entry points of an image, at the default distance; none for what is no JPEG, or one that has none. An image whose
/// data are damaged has none either: `verify --decode` and the loader say what is wrong with it.
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
