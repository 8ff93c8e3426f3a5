//! Parts of what a codec compressed that lie in its stream as they are. The bytes of a JPEG hardly repeat, so that codecs leave them
//! as literals (Snappy, LZ4) or raw blocks (Zstandard).
//!
//! The bytes are compared, and no stream is parsed: a part is only ever said to lie where its bytes are, whatever the codec.

use crate::source::archive::sample::StoredPart;
use shardtool_format::index::MAX_FEATURE_BYTES;
use std::collections::HashMap;

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

/// Returns the parts of `contents` of more than [`MAX_FEATURE_BYTES`] bytes that lie in `stream` as they are, in order: `at` is the
/// offset in the contents, `offset` that in the stream.
pub(super) fn common_parts(contents: &[u8], stream: &[u8]) -> Vec<StoredPart> {
    let (mut found, mut at, mut from) = (vec![], 0, 0);
    while let Some(part) = next_part(contents, stream, at, from) {
        (at, from) = (part.at + part.length, part.offset as usize + part.length);
        found.push(part);
    }
    found
}

/// Returns the first part that lies from `at` on in the contents, and from `from` on in the stream.
fn next_part(contents: &[u8], stream: &[u8], at: usize, from: usize) -> Option<StoredPart> {
    let length = equal_bytes(&contents[at..], &stream[from..]);
    if length >= SHORTEST {
        return Some(StoredPart { at, length, offset: from as u64 });
    }
    let mut anchors = HashMap::new();
    let (mut next_anchor, mut last_anchor) = (from, from + SLACK);
    for (step, window) in contents[at..].windows(ANCHOR).enumerate() {
        while next_anchor <= last_anchor + step
            && let Some(anchor) = stream.get(next_anchor..next_anchor + ANCHOR)
        {
            anchors.entry(anchor).or_insert(next_anchor);
            // LZ4 says how long a part is with a byte of 255 for each 255 bytes.
            last_anchor += if anchor == [0xff; ANCHOR] { STRIDE } else { 0 };
            next_anchor += STRIDE;
        }
        let Some(&place) = anchors.get(window) else { continue };
        let middle = at + step;
        let before = equal_bytes_before(&contents[at..middle], &stream[from..place]);
        let length = before + equal_bytes(&contents[middle..], &stream[place..]);
        if length >= SHORTEST {
            return Some(StoredPart { at: middle - before, length, offset: (place - before) as u64 });
        }
    }
    None
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
