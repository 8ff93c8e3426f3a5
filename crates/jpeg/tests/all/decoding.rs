//! Decoding into new buffers, and pseudo-random choices.

use shardtool_jpeg::{Decoder, Header, Rect, Request, Result, Scale};

/// splitmix64.
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Decodes into a new buffer with a few bytes between its rows, and checks that these are not written.
pub(crate) fn decode(decoder: &mut Decoder, jpeg: &[u8], entries: Option<&[u8]>, request: &Request) -> Result<Vec<u8>> {
    let header = Header::parse(jpeg, decoder.limits())?;
    let (width, height) = request.rect.map_or(header.size(request.scale), |r| (r.width, r.height));
    let row = width as usize * request.channels.count();
    let stride = row + 5;
    let mut out = vec![0xa5; stride * height as usize];
    decoder.decode(jpeg, entries, request, &mut out, stride)?;
    assert!(out.chunks(stride).all(|r| r[row..].iter().all(|&b| b == 0xa5)), "wrote between the rows");
    Ok(out.chunks(stride).flat_map(|r| r[..row].to_vec()).collect())
}

/// Returns a random rectangle of an image of that size.
pub(crate) fn rect((width, height): (u32, u32), state: &mut u64) -> Rect {
    let mut below = |n: u32| (random(state) % u64::from(n)) as u32;
    let (w, h) = (1 + below(width), 1 + below(height));
    Rect { x: below(width - w + 1), y: below(height - h + 1), width: w, height: h }
}

/// Returns a rectangle of RGB pixels with `width` pixels in a row.
pub(crate) fn part(pixels: &[u8], width: u32, rect: Rect) -> Vec<u8> {
    part_of(3, pixels, width, rect)
}

/// Returns a rectangle of pixels of `channels` bytes with `width` pixels in a row.
pub(crate) fn part_of(channels: usize, pixels: &[u8], width: u32, rect: Rect) -> Vec<u8> {
    let rows = pixels.chunks(width as usize * channels).skip(rect.y as usize).take(rect.height as usize);
    let (from, to) = (rect.x as usize * channels, (rect.x + rect.width) as usize * channels);
    rows.flat_map(|r| r[from..to].to_vec()).collect()
}

/// Returns the request for a whole image at a scale.
pub(crate) fn whole(scale: Scale) -> Request {
    Request { rect: None, scale, ..Request::default() }
}
