//! zstd frames (RFC 8878) of raw and RLE blocks, and their damaged variants. Frames of other blocks are in
//! `sources/`, made by a library.

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A frame of raw blocks, field by field.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The bytes of the content size: 0, 1, 2, 4 or 8.
    pub(crate) size_bytes: usize,
    pub(crate) content_size: u64,
    /// Whether the frame has no window descriptor.
    pub(crate) single_segment: bool,
    pub(crate) dictionary: Option<u8>,
    pub(crate) reserved: bool,
    pub(crate) checksum: Option<u32>,
    pub(crate) blocks: Vec<u8>,
}

impl Frame {
    /// A frame of one raw block, with its content size in one byte.
    pub(crate) fn of(content: &[u8]) -> Self {
        Frame {
            size_bytes: 1,
            content_size: content.len() as u64,
            single_segment: true,
            dictionary: None,
            reserved: false,
            checksum: None,
            blocks: block(0, true, content.len(), content),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let size_flag = match (self.size_bytes, self.single_segment) {
            (0, false) | (1, true) => 0,
            (2, _) => 1,
            (4, _) => 2,
            (8, _) => 3,
            other => panic!("no frame header has {other:?}"),
        };
        let descriptor = size_flag << 6
            | u8::from(self.single_segment) << 5
            | u8::from(self.reserved) << 3
            | u8::from(self.checksum.is_some()) << 2
            | u8::from(self.dictionary.is_some());
        let mut out = [&MAGIC[..], &[descriptor]].concat();
        if !self.single_segment {
            out.push(0); // a window of 1 KiB
        }
        out.extend(self.dictionary);
        // Two bytes hold the size less 256.
        let size = if self.size_bytes == 2 { self.content_size - 256 } else { self.content_size };
        out.extend(&size.to_le_bytes()[..self.size_bytes]);
        out.extend(&self.blocks);
        out.extend(self.checksum.into_iter().flat_map(u32::to_le_bytes));
        out
    }
}

/// Returns a block. Kinds: 0 raw, 1 RLE, 2 compressed, 3 reserved. `size` is the regenerated size of kinds 0 and 1, and the
/// length of `content` of the others.
pub(crate) fn block(kind: u32, last: bool, size: usize, content: &[u8]) -> Vec<u8> {
    let header = (size as u32) << 3 | kind << 1 | u32::from(last);
    [&header.to_le_bytes()[..3], content].concat()
}

/// Returns a skippable frame.
pub(crate) fn skippable(content: &[u8]) -> Vec<u8> {
    [&[0x53, 0x2a, 0x4d, 0x18][..], &(content.len() as u32).to_le_bytes(), content].concat()
}

/// Returns the checksum of a content under 32 bytes: the low half of its XXH64.
pub(crate) fn checksum(content: &[u8]) -> u32 {
    const P: [u64; 5] =
        [0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x85ebca77c2b2ae63, 0x27d4eb2f165667c5];
    assert!(content.len() < 32, "the short form of XXH64");
    let mut hash = P[4].wrapping_add(content.len() as u64);
    let (eights, rest) = content.split_at(content.len() / 8 * 8);
    for word in eights.chunks(8) {
        let lane = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let lane = lane.wrapping_mul(P[1]).rotate_left(31).wrapping_mul(P[0]);
        hash = (hash ^ lane).rotate_left(27).wrapping_mul(P[0]).wrapping_add(P[3]);
    }
    let (four, rest) = rest.split_at(rest.len() / 4 * 4);
    for word in four.chunks(4) {
        let lane = u64::from(u32::from_le_bytes(word.try_into().expect("four bytes")));
        hash = (hash ^ lane.wrapping_mul(P[0])).rotate_left(23).wrapping_mul(P[1]).wrapping_add(P[2]);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P[4])).rotate_left(11).wrapping_mul(P[0]);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(P[1]);
    hash = (hash ^ hash >> 29).wrapping_mul(P[2]);
    (hash ^ hash >> 32) as u32
}

#[test]
fn computes_xxh64() {
    // The published test values for an empty input and for "abc", seed 0.
    assert_eq!(checksum(b""), 0x51d8_e999);
    assert_eq!(checksum(b"abc"), 0xad77_0999);
}
