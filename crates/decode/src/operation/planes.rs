//! Separates the channels of a block of pixels, so that loops over them vectorise.

/// Pixels of a block. The compiler vectorises loops of this length, and would unroll much shorter ones instead.
pub(super) const BLOCK: usize = 128;

/// The channels of a block of pixels.
pub(super) type Planes = [[u8; BLOCK]; 3];

/// Replaces the pixels by the results of `change` for the channels of each block. The last block is filled up with black.
#[inline(always)]
pub(super) fn map_planes(pixels: &mut [[u8; 3]], change: impl Fn(&mut Planes)) {
    let (blocks, rest) = pixels.as_chunks_mut::<BLOCK>();
    let mut last = [[0; 3]; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let mut planes = [[0; BLOCK]; 3];
    for block in blocks.iter_mut().chain([&mut last]) {
        separate(block, &mut planes);
        change(&mut planes);
        let [red, green, blue] = &planes;
        for i in 0..BLOCK {
            block[i] = [red[i], green[i], blue[i]];
        }
    }
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Calls `read` with the channels of each block. The last block is filled up with `padding`.
#[inline(always)]
pub(super) fn read_planes(pixels: &[[u8; 3]], padding: [u8; 3], mut read: impl FnMut(&Planes)) {
    let (blocks, rest) = pixels.as_chunks::<BLOCK>();
    let mut last = [padding; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let mut planes = [[0; BLOCK]; 3];
    for block in blocks.iter().chain([&last]) {
        separate(block, &mut planes);
        read(&planes);
    }
}

#[inline(always)]
fn separate(block: &[[u8; 3]; BLOCK], [red, green, blue]: &mut Planes) {
    for i in 0..BLOCK {
        [red[i], green[i], blue[i]] = block[i];
    }
}
