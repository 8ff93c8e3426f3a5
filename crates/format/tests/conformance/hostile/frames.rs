//! Damaged frames, and compressed files.

use super::{SECOND, SHARD, case, changed, damage};
use crate::bytes::crc::crc32c;
use crate::bytes::deflate::{gzip, zlib};
use crate::bytes::{frame, header};
use crate::dataset::{Dataset, Shard};
use crate::golden::Case;
use crate::golden::tiny::with;
use crate::sample::Sample;

/// A case of `tiny` with the bytes of its shard changed; the index keeps its columns. Record `record` is lost.
fn tiny_frame(name: &str, record: u64, change: impl FnOnce(&mut Vec<u8>)) -> Case {
    let dataset = changed(|dataset| {
        change(&mut dataset.shard().bytes);
        dataset.shard().reindex();
    });
    let offset = record * SECOND;
    case(name, &dataset, |e| {
        e.loses("train", record, damage(name)).finds(damage(name), SHARD, Some(record), Some(offset))
    })
}

pub(super) fn all() -> Vec<Case> {
    let second = SECOND as usize;
    let mut cases = vec![
        tiny_frame("TruncatedFrame-footer", 1, |b| b.truncate(b.len() - 1)),
        tiny_frame("TruncatedFrame-data", 1, |b| b.truncate(second + 40)),
        tiny_frame("TruncatedFrame-header", 1, |b| b.truncate(second + 7)),
        tiny_frame("TruncatedFrame-eleven-bytes", 1, |b| b.truncate(second + 11)),
        tiny_frame("TruncatedFrame-header-only", 1, |b| b.truncate(second + 12)),
        tiny_frame("TruncatedFrame-length", 1, |b| b[second..][..12].copy_from_slice(&header(u64::MAX))),
        tiny_frame("TruncatedFrame-length-overflow", 1, |b| b[second..][..12].copy_from_slice(&header(u64::MAX - 15))),
        tiny_frame("TruncatedFrame-one-byte-more", 1, |b| b[second..][..12].copy_from_slice(&header(159))),
        tiny_frame("LengthCrc-length", 0, |b| b[1] ^= 0x10),
        tiny_frame("LengthCrc-crc", 0, |b| b[8] ^= 1),
        tiny_frame("LengthCrc-last", 1, |b| b[second] ^= 1),
        // The length is checked before what follows it.
        tiny_frame("LengthCrc-header-only", 1, |b| {
            b.truncate(second + 12);
            b[second + 8] ^= 1;
        }),
        tiny_frame("LengthCrc-unmasked", 0, |b| {
            let crc = crc32c(&b[..8]);
            b[8..12].copy_from_slice(&crc.to_le_bytes());
        }),
        // The second frame begins like a gzip file, the first one almost like a zlib file.
        tiny_frame("LengthCrc-second-like-gzip", 1, |b| b[second..][..2].copy_from_slice(&[0x1f, 0x8b])),
        tiny_frame("LengthCrc-not-zlib", 0, |b| b[..2].copy_from_slice(&[0x78, 0xbb])),
        tiny_frame("LengthCrc-not-gzip", 0, |b| b[..2].copy_from_slice(&[0x1f, 0x8c])),
        tiny_frame("DataCrc-data", 0, |b| b[100] ^= 0x80),
        tiny_frame("DataCrc-crc", 0, |b| b[second - 1] ^= 0x20),
        tiny_frame("DataCrc-last", 1, |b| b[second + 12] ^= 1),
        tiny_frame("DataCrc-unmasked", 0, |b| {
            let crc = crc32c(&b[12..second - 4]);
            b[second - 4..second].copy_from_slice(&crc.to_le_bytes());
        }),
        middle("LengthCrc-middle", |b| b[0] ^= 1),
        middle("LengthCrc-middle-shorter", |b| b[..8].copy_from_slice(&20u64.to_le_bytes())),
        middle("DataCrc-middle", |b| b[20] ^= 1),
        middle("TruncatedFrame-middle", |b| b[..12].copy_from_slice(&header(1 << 40))),
        empty_record(),
        two_lengths(),
    ];
    type Compress = fn(&[u8]) -> Vec<u8>;
    let compressed: [(&str, Compress); 5] = [
        ("CompressedRecords-gzip", gzip),
        ("CompressedRecords-zlib", |b| zlib(b, 0x01)),
        ("CompressedRecords-zlib-5e", |b| zlib(b, 0x5e)),
        ("CompressedRecords-zlib-9c", |b| zlib(b, 0x9c)),
        ("CompressedRecords-zlib-da", |b| zlib(b, 0xda)),
    ];
    cases.extend(compressed.into_iter().map(|(name, compress)| {
        let dataset = changed(|dataset| {
            dataset.shard().bytes = compress(&dataset.shard().bytes);
            dataset.shard().reindex();
        });
        // Of the second record, a reader may see nothing but a frame that does not begin where the index says.
        case(name, &dataset, |e| {
            let e = e.loses("train", 0, "CompressedRecords").loses("train", 1, "CompressedRecords");
            e.may_lose("train", 1, &["CompressedRecords", "LengthCrc", "IndexMismatch"]).finds(
                "CompressedRecords",
                SHARD,
                None,
                None,
            )
        })
    }));
    cases
}

/// Five records, of which the third is damaged. A reader continues at the next offset of the index.
fn middle(name: &str, change: impl FnOnce(&mut [u8])) -> Case {
    let samples = (0..5).map(|i| with(&format!("{i}.raw"), i, vec![])).collect();
    let mut dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    let shard = dataset.shard();
    let offset: usize = shard.samples[..2].iter().map(|sample| sample.data.len() + 16).sum();
    change(&mut shard.bytes[offset..]);
    shard.reindex();
    case(name, &dataset, |e| e.loses("train", 2, damage(name)).finds(damage(name), SHARD, Some(2), Some(offset as u64)))
}

/// An opaque record of no bytes whose CRC is wrong: it is that of one zero byte.
fn empty_record() -> Case {
    let samples = vec![Sample::opaque(vec![]), Sample::opaque(b"x".to_vec())];
    let shard = Shard::named(SHARD, None, samples);
    let mut dataset = Dataset { image: None, label: None, opaque: true, ..Dataset::new(vec![("train", vec![shard])]) };
    let other = frame(&[0]);
    dataset.shard().bytes[12..16].copy_from_slice(&other[13..]);
    dataset.shard().reindex();
    case("DataCrc-empty-record", &dataset, |e| e.loses("train", 0, "DataCrc").finds("DataCrc", SHARD, Some(0), Some(0)))
}

/// Two damaged frames one after the other: two findings.
fn two_lengths() -> Case {
    let samples = (0..4).map(|i| with(&format!("{i}.raw"), i, vec![])).collect();
    let mut dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    let shard = dataset.shard();
    let length = shard.samples[0].data.len() + 16;
    (shard.bytes[length], shard.bytes[2 * length]) = (0, 0);
    shard.reindex();
    let offset = length as u64;
    case("LengthCrc-two", &dataset, |e| {
        let e = e.loses("train", 1, "LengthCrc").loses("train", 2, "LengthCrc");
        e.finds("LengthCrc", SHARD, Some(1), Some(offset)).finds("LengthCrc", SHARD, Some(2), Some(2 * offset))
    })
}
