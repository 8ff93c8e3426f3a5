//! Arrays of any number of dimensions, in chunks.

use super::mixed::source;
use super::zstd::periodic;
use crate::bytes::example::{List, bytes, ints, text};
use crate::bytes::zstd::{Frame, block, checksum};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

/// An array, and how it is stored.
#[derive(Clone)]
pub(crate) struct Array<'a> {
    pub(crate) shape: &'a [i64],
    pub(crate) chunk: &'a [i64],
    pub(crate) dtype: &'a str,
    /// Bytes of an element.
    pub(crate) width: usize,
    pub(crate) codec: &'a str,
}

impl Array<'_> {
    /// Returns elements that are all different, as far as their width allows.
    pub(crate) fn data(&self) -> Vec<u8> {
        let elements = self.shape.iter().product::<i64>() as usize;
        (0..elements)
            .flat_map(|i| ((i as u64 + 1) * 0x0102_0305_0b0d_1117).to_le_bytes()[..self.width].to_vec())
            .collect()
    }

    /// Returns the chunks in C order of the grid, without compression.
    pub(crate) fn chunks(&self, data: &[u8]) -> Vec<Vec<u8>> {
        let rank = self.shape.len();
        let mut grid = vec![vec![]];
        for axis in 0..rank {
            let starts = (0..self.shape[axis]).step_by(self.chunk[axis] as usize);
            grid =
                grid.iter().flat_map(|place: &Vec<i64>| starts.clone().map(|s| [&place[..], &[s]].concat())).collect();
        }
        grid.iter().map(|start| self.part(data, start)).collect()
    }

    /// Returns the elements of the chunk that begins at `start`.
    fn part(&self, data: &[u8], start: &[i64]) -> Vec<u8> {
        let elements = data.chunks(self.width).enumerate();
        let inside = |at: usize| {
            let mut rest = at as i64;
            let mut place: Vec<i64> = self.shape.iter().rev().map(|n| (rest % n, rest /= n).0).collect();
            place.reverse();
            place.iter().zip(start).zip(self.chunk).all(|((p, s), c)| s <= p && p < &(s + c))
        };
        elements.filter(|(at, _)| inside(*at)).flat_map(|(_, element)| element.to_vec()).collect()
    }

    /// Returns the five features.
    pub(crate) fn features(&self, name: &str, chunks: Vec<Vec<u8>>) -> Vec<(String, List)> {
        vec![
            (name.to_owned(), bytes(chunks)),
            (format!("{name}/shape"), ints(self.shape.iter().copied())),
            (format!("{name}/chunk"), ints(self.chunk.iter().copied())),
            (format!("{name}/dtype"), text(self.dtype)),
            (format!("{name}/codec"), text(self.codec)),
        ]
    }

    pub(crate) fn sample(&self, name: &str) -> Sample {
        let data = self.data();
        let mut chunks = self.chunks(&data);
        if self.codec == "zstd" {
            chunks = chunks.iter().map(|chunk| Frame::of(chunk).bytes()).collect();
        }
        Sample::new(self.features(name, chunks)).with_array(name, self.shape, self.dtype, &data)
    }
}

/// Each dtype, both codecs, one to four dimensions, clipped chunks, chunks larger than the array, and empty arrays.
pub(super) fn arrays() -> Dataset {
    let array = |shape, chunk, dtype, width, codec| Array { shape, chunk, dtype, width, codec }.sample("volume");
    let mut samples = vec![
        array(&[5], &[2], "u8", 1, "raw"),
        array(&[3, 4], &[3, 4], "i8", 1, "zstd"),
        array(&[5, 7], &[2, 3], "u16", 2, "raw"),
        array(&[4, 6], &[2, 3], "i16", 2, "zstd"),
        array(&[3, 2, 5], &[2, 2, 2], "u32", 4, "raw"),
        array(&[2, 3, 2, 3], &[1, 2, 3, 2], "i32", 4, "zstd"),
        array(&[3], &[7], "u64", 8, "raw"),
        array(&[1, 1], &[1, 1], "i64", 8, "zstd"),
        array(&[4, 1, 3], &[3, 1, 1], "f16", 2, "raw"),
        array(&[7], &[3], "bf16", 2, "zstd"),
        array(&[2, 2], &[1, 2], "f32", 4, "raw"),
        array(&[2, 2], &[2, 1], "f64", 8, "zstd"),
        array(&[9], &[4], "bool", 1, "raw"),
        // No elements, so no chunks.
        array(&[0], &[4], "f32", 4, "raw"),
        array(&[3, 0, 2], &[2, 1, 1], "u8", 1, "zstd"),
    ];
    // No elements and no feature for them; a chunk that is larger than any memory.
    let empty = Array { shape: &[0, 1 << 40], chunk: &[1, 1 << 60], dtype: "f64", width: 8, codec: "raw" };
    let features = empty.features("volume", vec![]).into_iter().filter(|(name, _)| name != "volume");
    samples.push(Sample::new(features).with_array("volume", empty.shape, "f64", &[]));
    let huge = Array { shape: &[2, 2], chunk: &[i64::MAX, 1], dtype: "u8", width: 1, codec: "raw" };
    samples.push(Sample::new(huge.features("volume", vec![vec![1, 3], vec![2, 4]])).with_array(
        "volume",
        &[2, 2],
        "u8",
        &[1, 2, 3, 4],
    ));
    // A frame of compressed blocks, and one with a checksum whose last block is RLE.
    let library = Array { shape: &[1200], chunk: &[1200], dtype: "u8", width: 1, codec: "zstd" };
    let frame = source!("huffman.zst").to_vec();
    samples.push(Sample::new(library.features("volume", vec![frame])).with_array(
        "volume",
        &[1200],
        "u8",
        &periodic(1200),
    ));
    let content = [1, 2, 3, 4, 4, 4];
    let blocks = [block(0, false, 3, &content[..3]), block(1, true, 3, &[4])].concat();
    let frame = Frame { blocks, checksum: Some(checksum(&content)), ..Frame::of(&content) }.bytes();
    let mended = Array { shape: &[3], chunk: &[3], dtype: "u16", width: 2, codec: "zstd" };
    samples.push(Sample::new(mended.features("volume", vec![frame])).with_array("volume", &[3], "u16", &content));
    // Two arrays in one record, and names that lack one of the four features: lists of values.
    let one = Array { shape: &[2], chunk: &[2], dtype: "u8", width: 1, codec: "raw" };
    let (a, b) = (one.sample("a"), one.sample("a/b"));
    let mut both = Sample::new(a.features.iter().chain(&b.features).flatten().map(|(n, l)| (n.clone(), l.clone())));
    both.arrays = a.arrays.into_iter().chain(b.arrays).collect();
    samples.push(both);
    for missing in ["volume/shape", "volume/chunk", "volume/dtype", "volume/codec"] {
        let features = one.features("volume", vec![vec![1, 2]]).into_iter().filter(|(name, _)| name != missing);
        samples.push(Sample::new(features));
    }
    let dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    Dataset { image: None, label: None, ..dataset }
}
