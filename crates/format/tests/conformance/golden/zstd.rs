//! Pixels in zstd frames of all kinds of headers, blocks, literals and sequences.

use super::mixed::source;
use super::tiny::record;
use crate::bytes::zstd::{Frame, block, checksum};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

pub(super) fn zstd() -> Dataset {
    let small: Vec<u8> = (1..=12).collect();
    let of = |change: &dyn Fn(&mut Frame)| {
        let mut frame = Frame::of(&small);
        change(&mut frame);
        (small.clone(), frame.bytes())
    };
    let large: Vec<u8> = (0..300).map(|i| (i * 7) as u8).collect();
    let mut frames = vec![
        of(&|_| {}),
        of(&|f| f.checksum = Some(checksum(&small))),
        // Content sizes of four and eight bytes, with and without a window descriptor.
        of(&|f| f.size_bytes = 4),
        of(&|f| f.size_bytes = 8),
        of(&|f| (f.size_bytes, f.single_segment) = (4, false)),
        of(&|f| (f.size_bytes, f.single_segment) = (8, false)),
        // Blocks: several, empty, RLE.
        of(&|f| {
            f.blocks =
                [block(0, false, 5, &small[..5]), block(0, false, 0, &[]), block(0, true, 7, &small[5..])].concat()
        }),
        (vec![9; 12], Frame { blocks: block(1, true, 12, &[9]), ..Frame::of(&[9; 12]) }.bytes()),
        // Compressed blocks without sequences: raw literals, and RLE literals with a size of one and of two bytes. The
        // first one is longer than its content, which needs a window that is longer, too.
        of(&|f| {
            (f.size_bytes, f.single_segment) = (4, false);
            f.blocks = block(2, true, 14, &[&[12 << 3][..], &small, &[0]].concat());
        }),
        (vec![9; 12], Frame { blocks: block(2, true, 3, &[12 << 3 | 1, 9, 0]), ..Frame::of(&[9; 12]) }.bytes()),
        (vec![9; 60], Frame { blocks: block(2, true, 4, &[0xc5, 0x03, 9, 0]), ..Frame::of(&[9; 60]) }.bytes()),
    ];
    // One literal, then a match of 11 bytes at distance 1, with the predefined tables.
    let sequence = block(2, true, 7, &[1 << 3, 7, 1, 0, 0x18, 0x4e, 0x08]);
    frames.push((vec![7; 12], Frame { blocks: sequence, ..Frame::of(&[7; 12]) }.bytes()));
    // Content sizes of two bytes begin at 256.
    let two = Frame { size_bytes: 2, ..Frame::of(&large) };
    frames.push((large.clone(), two.bytes()));
    frames.push((large, Frame { single_segment: false, ..two }.bytes()));
    // Made by a library, see sources/make.py.
    frames.push((periodic(1200), source!("huffman.zst").to_vec()));
    frames.push((periodic(1200), source!("rle-modes.zst").to_vec()));
    frames.push((skewed(600), source!("treeless-1.zst").to_vec()));
    frames.push((skewed(1200), source!("treeless-4.zst").to_vec()));
    frames.push((words(2700), source!("sequences.zst").to_vec()));
    frames.push((far(72_000), source!("far.zst").to_vec()));
    let samples = frames.iter().enumerate().map(|(row, (pixels, frame))| {
        let size = (pixels.len() as i64 / 3, 1);
        Sample::new(record(&row.to_string(), row as i64, "raw-zstd", size, frame)).with_pixels(pixels)
    });
    Dataset::new(vec![("train", vec![Shard::new("train", 0, samples.collect())])])
}

/// Returns 15-bit numbers of a linear congruential generator.
fn draws(count: usize, seed: u64) -> impl Iterator<Item = u64> {
    let next = |state: &u64| Some((state * 1_103_515_245 + 12345) % (1 << 31));
    std::iter::successors(Some(seed), next).skip(1).take(count).map(|state| state >> 16)
}

fn skewed(count: usize) -> Vec<u8> {
    draws(count, 1).map(|v| (15 - (64 - v.leading_zeros())) as u8).collect()
}

pub(super) fn periodic(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * i / 7 % 13 * 3 + i % 5) as u8).collect()
}

fn words(count: usize) -> Vec<u8> {
    let known: Vec<Vec<u8>> = (1..40).map(|k| draws(5 + k % 7, k as u64).map(|v| v as u8).collect()).collect();
    let mut out: Vec<u8> = draws(count, 7).flat_map(|v| known[v as usize % 39].clone()).collect();
    out.truncate(count);
    out
}

fn far(count: usize) -> Vec<u8> {
    let ends: Vec<u8> = draws(700, 3).map(|v| v as u8).collect();
    [&ends[..], &vec![0; count - 2 * ends.len()], &ends].concat()
}
