//! Parts of what a codec compressed that lie in its stream as they are. The bytes of a JPEG hardly repeat, so that codecs leave them
//! as literals (Snappy, LZ4) or raw blocks (Zstandard).
//!
//! The bytes are compared, and no stream is parsed: a part is only ever said to lie where its bytes are, whatever the codec.

use crate::source::archive::sample::StoredPart;
use shardtool_format::index::MAX_FEATURE_BYTES;

/// Bytes of a part at least: shorter ones take less in the index than their place does.
const SHORTEST: usize = MAX_FEATURE_BYTES + 1;
/// Bytes that are looked up.
const ANCHOR: usize = 8;
/// Bytes between the anchors of the stream: each part of [`SHORTEST`] bytes has a whole one.
const STRIDE: usize = SHORTEST - ANCHOR;
/// Bytes of the stream between two parts, at most, besides as many as lie between them in the contents: headers of blocks, and the
/// sequences of Zstandard, which follow the literals of their block. A larger distance would take the header of a later image for
/// that of this one, and lose what lies between.
const SLACK: usize = 4096;
/// Bits of the number of a slot.
const SLOT_BITS: u32 = 14;
/// Comparisons without a result, for each byte of the stream, at most: a stream may consist of what is nearly equal.
const TRIES: usize = 1;

/// Returns the parts of `contents` of more than [`MAX_FEATURE_BYTES`] bytes that lie in `stream` as they are, in order: `at` is the
/// offset in the contents, `offset` that in the stream. Takes time in proportion to both.
pub(super) fn common_parts(contents: &[u8], stream: &[u8]) -> Vec<StoredPart> {
    let mut search =
        Search { contents, stream, anchors: vec![], next: 0, last: 0, tries: stream.len() * TRIES + SLACK };
    let (mut found, mut at, mut from) = (vec![], 0, 0);
    while let Some(part) = search.next_part(at, from) {
        (at, from) = (part.at + part.length, part.offset as usize + part.length);
        found.push(part);
    }
    found
}

/// The search for parts, from the beginning of both to their ends.
struct Search<'b> {
    contents: &'b [u8],
    stream: &'b [u8],
    /// Where an anchor lies in the stream, plus 1, by a hash of it; empty before the first look.
    anchors: Vec<usize>,
    /// Where the next anchor lies.
    next: usize,
    /// Where the last one lies that was entered.
    last: usize,
    /// Comparisons without a result that are left.
    tries: usize,
}

impl Search<'_> {
    /// Returns the first part that lies from `at` on in the contents, and from `from` on in the stream.
    fn next_part(&mut self, at: usize, from: usize) -> Option<StoredPart> {
        let (contents, stream) = (self.contents, self.stream);
        let length = equal_bytes(&contents[at..], &stream[from..]);
        if length >= SHORTEST {
            return Some(StoredPart { at, length, offset: from as u64 });
        }
        self.next = self.next.max(from);
        let mut end = from.saturating_add(SLACK);
        for (step, window) in contents[at..].windows(ANCHOR).enumerate() {
            self.enter(end + step, &mut end);
            // What was entered lies before `from`, and nothing follows.
            if self.next + ANCHOR > stream.len() && self.last < from {
                return None;
            }
            let Some(place) = self.find(window).filter(|place| *place >= from) else { continue };
            let middle = at + step;
            let before = equal_bytes_before(&contents[at..middle], &stream[from..place]);
            let length = before + equal_bytes(&contents[middle..], &stream[place..]);
            if length >= SHORTEST {
                return Some(StoredPart { at: middle - before, length, offset: (place - before) as u64 });
            }
            self.tries = self.tries.checked_sub(1)?;
        }
        None
    }

    /// Enters the anchors up to one place. Moves `end` by the bytes that say only how long a part is.
    fn enter(&mut self, place: usize, end: &mut usize) {
        let mut place = place;
        while self.next <= place
            && let Some(anchor) = self.stream.get(self.next..self.next + ANCHOR)
        {
            // LZ4 says how long a part is with a byte of 255 for each 255 bytes.
            if anchor == [0xff; ANCHOR] {
                let run = self.stream[self.next..].iter().take_while(|byte| **byte == 0xff).count();
                self.next += run;
                (place, *end) = (place + run, *end + run);
                continue;
            }
            let slot = slot(anchor);
            if self.anchors.is_empty() {
                self.anchors = vec![0; 1 << SLOT_BITS];
            }
            self.anchors[slot] = self.next + 1;
            self.last = self.next;
            self.next += STRIDE;
        }
    }

    /// Returns where an anchor lies, if it was entered, and no other one took its slot.
    fn find(&self, anchor: &[u8]) -> Option<usize> {
        let place = self.anchors.get(slot(anchor))?.checked_sub(1)?;
        (self.stream[place..place + ANCHOR] == *anchor).then_some(place)
    }
}

/// Returns the slot of an anchor.
fn slot(anchor: &[u8]) -> usize {
    let number = u64::from_le_bytes(*anchor.first_chunk().expect("8 bytes"));
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize
}

/// Returns the length of the common beginning.
fn equal_bytes(a: &[u8], b: &[u8]) -> usize {
    /// Bytes that are compared at once.
    const BLOCK: usize = 4096;
    let blocks = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    blocks + a[blocks..].iter().zip(&b[blocks..]).take_while(|(a, b)| a == b).count()
}

/// Returns the length of the common end.
fn equal_bytes_before(a: &[u8], b: &[u8]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardtool_order::Rng;

    /// Bytes that do not repeat.
    fn random(seed: u64, length: usize) -> Vec<u8> {
        let mut rng = Rng::new(seed);
        (0..length).map(|_| rng.below(256) as u8).collect()
    }

    fn part(at: usize, length: usize, offset: u64) -> StoredPart {
        StoredPart { at, length, offset }
    }

    #[test]
    fn what_is_not_compressed_is_one_part() {
        let bytes = random(1, 100_000);
        assert_eq!(common_parts(&bytes, &bytes), [part(0, 100_000, 0)]);
        let framed = [b"head", &bytes[..], b"end"].concat();
        assert_eq!(common_parts(&bytes, &framed), [part(0, 100_000, 4)]);
        assert_eq!(common_parts(&bytes[..SHORTEST - 1], &bytes), [], "shorter than its place in the index");
        assert_eq!(common_parts(&bytes[..SHORTEST], &bytes), [part(0, SHORTEST, 0)]);
        assert_eq!(common_parts(&[], &bytes), []);
        assert_eq!(common_parts(&bytes, &[]), []);
    }

    #[test]
    fn parts_follow_what_a_codec_changed() {
        let (first, second, third) = (random(2, 5000), random(3, 300), random(4, 70_000));
        let (copied, other) = (vec![7; 900], random(5, 150));
        // A copy of a few bytes, a raw block behind it, and one that is coded.
        let contents = [&first[..], &copied, &second, &copied, &third].concat();
        let stream = [b"h", &first[..], b"copy 900", &second, &other, &third, b"crc"].concat();
        let expected = [part(0, 5000, 1), part(5900, 300, 5009), part(7100, 70_000, 5459)];
        assert_eq!(common_parts(&contents, &stream), expected);
    }

    #[test]
    fn a_long_length_may_precede_a_part() {
        // LZ4: 3 MB take nearly 12 kB of lengths.
        let bytes = random(8, 3_000_000);
        let stream = [&[0xf0][..], &vec![0xff; 3_000_000 / 255], &[7], &bytes].concat();
        assert_eq!(common_parts(&bytes, &stream), [part(0, 3_000_000, 1 + 11_764 + 1)]);
    }

    #[test]
    fn literals_that_a_sequence_divides_are_parts() {
        // Zstandard: the literals of a block, and behind them where copies go.
        let literals = random(6, 3000);
        let contents = [&literals[..1000], b"again again", &literals[1000..]].concat();
        let parts = common_parts(&contents, &[b"block", &literals[..], b"sequences"].concat());
        assert_eq!(parts.iter().map(|part| part.length).sum::<usize>(), 3000);
        for StoredPart { at, length, offset } in parts {
            assert_eq!(contents[at..at + length], literals[offset as usize - 5..][..length]);
        }
    }

    #[test]
    fn a_header_of_a_later_image_is_not_taken_for_a_copied_one() {
        let header = random(7, 600);
        let images: Vec<_> = (10..13).map(|seed| random(seed, 20_000)).collect();
        let contents = images.iter().flat_map(|image| [&header[..], image].concat()).collect::<Vec<_>>();
        // The second header is a copy of the first one, the third is not.
        let stream = [&header[..], &images[0], b"copy", &images[1], b"raw", &header, &images[2]].concat();
        let parts = common_parts(&contents, &stream);
        // A byte behind a part may happen to be equal.
        let missing = contents.len() - parts.iter().map(|part| part.length).sum::<usize>();
        assert!((590..=600).contains(&missing), "{parts:?}");
    }

    #[test]
    fn streams_that_are_nearly_equal_are_given_up() {
        // Each window of the contents is found, and no part is long enough; a run of 255 takes no anchors.
        let unit = [&[0xff; 257][..], &random(20, 8)].concat();
        for contents in [unit.repeat(4000), random(21, 100).repeat(10_000)] {
            let stream = [&[0xff; 2_000_000][..], &random(21, 250).repeat(1)].concat();
            let parts = common_parts(&contents, &stream);
            assert!(parts.iter().all(|part| part.length >= SHORTEST), "{parts:?}");
        }
        let (zeros, coded) = (vec![0; 20_000_000], random(22, 3000));
        assert_eq!(common_parts(&zeros, &coded), []);
    }

    #[test]
    fn equal_bytes_of_any_kind_are_where_they_are_said_to_be() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            // Few values, so that all kinds of repeats occur.
            let mut bytes = |most| {
                let (length, values) = (rng.below(most) as usize, rng.below(3) + 1);
                (0..length).map(|_| rng.below(values) as u8).collect::<Vec<_>>()
            };
            let (contents, stream) = (bytes(20_000), bytes(20_000));
            let mut end = (0, 0);
            for StoredPart { at, length, offset } in common_parts(&contents, &stream) {
                assert!(at >= end.0 && offset >= end.1 && length >= SHORTEST);
                assert_eq!(contents[at..at + length], stream[offset as usize..][..length]);
                end = (at + length, offset + length as u64);
            }
        }
    }
}
