//! One zstd frame (RFC 8878) that declares its content size: the form of compressed pixels and of the chunks of arrays.

use crate::error::Error;
use std::cell::RefCell;
use std::io;
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, SafeResult};

/// First bytes of a zstd frame; skippable frames have others.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns the content size that the frame declares. The frame must be the whole payload and need no dictionary.
///
/// # Errors
/// [`Error::ZstdFrame`], [`Error::ZstdSize`].
pub(crate) fn content_length(payload: &[u8]) -> Result<u64, Error> {
    let wrong = |expected| Error::ZstdFrame { expected, found: payload.len() as u64 };
    let frame = zstd_safe::find_frame_compressed_size(payload).ok();
    if frame != Some(payload.len()) || !payload.starts_with(&MAGIC) {
        return Err(wrong("exactly one whole zstd frame"));
    }
    if zstd_safe::get_dict_id_from_frame(payload).is_some() {
        return Err(wrong("a zstd frame without a dictionary"));
    }
    zstd_safe::get_frame_content_size(payload).ok().flatten().ok_or(Error::ZstdSize)
}

thread_local! {
    /// The decompression context of the thread: making one takes two allocations of 100 KB and more.
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// Decompresses a frame into `out`, whose length becomes the frame's content size `length`.
///
/// # Errors
/// [`Error::Zstd`].
pub(crate) fn decompress(payload: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    decompress_prefix(payload, length, length, out)
}

/// Decompresses the blocks of a frame (up to 128 KiB each) with the first `needed` bytes of its content of `length` bytes.
/// The length of `out` becomes that of these blocks, and damage after them is not found.
///
/// # Errors
/// [`Error::Zstd`].
pub(crate) fn decompress_prefix(payload: &[u8], needed: usize, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    out.resize(length, 0);
    let found = CONTEXT.with_borrow_mut(|context| {
        // What fails is decompressed whole, which has the error, or takes windows of any size.
        let prefix = (needed < length).then(|| blocks(context, payload, needed, out));
        match prefix {
            Some(Ok(found)) if found >= needed => Ok(found),
            _ => whole(context, payload, out),
        }
    });
    out.truncate(found.map_err(|code| Error::Zstd { source: io::Error::other(zstd_safe::get_error_name(code)) })?);
    Ok(())
}

fn whole(context: &mut DCtx<'_>, payload: &[u8], out: &mut [u8]) -> SafeResult {
    context.reset(ResetDirective::SessionOnly)?;
    context.decompress(out, payload)
}

/// Decompresses block by block into `out`, which has the size of the whole content and therefore is the window too, until
/// it has `needed` bytes. Returns how many it has.
fn blocks(context: &mut DCtx<'_>, payload: &[u8], needed: usize, out: &mut [u8]) -> SafeResult {
    context.reset(ResetDirective::SessionOnly)?;
    context.set_parameter(DParameter::StableOutBuffer(true))?;
    let (mut out, mut input) = (OutBuffer::around(out), InBuffer::around(&[]));
    // Each step passes one block and the header of the next one, or would decompress more than is needed.
    let (mut passed, mut next) = (0, MAGIC.len());
    while out.pos() < needed && next > 0 && passed < payload.len() {
        passed = payload.len().min(passed + next);
        input.src = &payload[..passed];
        next = context.decompress_stream(&mut out, &mut input)?;
    }
    Ok(out.pos())
}

/// Compresses bytes at a level: 1 to 22, or 0 for zstd's default, 3.
///
/// # Errors
/// [`Error::Zstd`] if the library fails.
pub(crate) fn compress(bytes: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    zstd::bulk::compress(bytes, level).map_err(|source| Error::Zstd { source })
}
