//! Images as coded streams: a layout, a coder, and how many rows of MCUs can be entered.

use super::baseline::{Block, Coefficients};
use super::huffman::Codes;
use super::layout::{DC, Layout, SLACK, Streams};
use super::level::Level;
use super::rans::{self, Model};

/// How bytes are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coder {
    Rans,
    Huffman,
}

/// A layout, a coder, and the rows of MCUs in a group that is decoded as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    pub(crate) layout: Layout,
    pub(crate) coder: Coder,
    pub(crate) group_rows: usize,
}

/// A coder with the statistics of each kind of stream.
enum Statistics {
    Rans(Vec<Model>),
    Huffman(Vec<Codes>),
}

/// Coded streams.
enum CodedStreams {
    Rans(Vec<u16>),
    Huffman(Vec<[Vec<u8>; 4]>),
}

/// A group of rows.
struct Group {
    /// The streams of DC differences, which are all that an eighth of the size needs, and the others.
    dc: CodedStreams,
    ac: CodedStreams,
    lengths: Vec<usize>,
    /// Blocks of each component.
    counts: Vec<usize>,
    /// The values that are not coded as bytes.
    wide: Streams,
}

/// A coded image.
pub(crate) struct CodedImage {
    groups: Vec<Group>,
    group_rows: usize,
    row_pixels: usize,
}

/// Images in one scheme, with statistics shared by all of them: those of each image would take more bytes.
pub(crate) struct Coded {
    scheme: Scheme,
    statistics: Statistics,
    pub(crate) images: Vec<CodedImage>,
}

/// Buffers that are reused from image to image.
#[derive(Default)]
pub(crate) struct Buffers {
    streams: Streams,
    pub(crate) blocks: Vec<Block>,
    pub(crate) dc: Vec<i16>,
}

impl Coded {
    /// Codes images.
    pub(crate) fn new(scheme: Scheme, images: &[Coefficients]) -> Self {
        let split: Vec<Vec<(Vec<usize>, Streams)>> = images.iter().map(|image| groups(scheme, image)).collect();
        let number = split.iter().flatten().map(|(_, streams)| streams.bytes.len()).max().unwrap_or(0);
        let mut counted = vec![[0u64; 256]; number];
        for (_, streams) in split.iter().flatten() {
            for (counts, bytes) in counted.iter_mut().zip(&streams.bytes) {
                bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
            }
        }
        let statistics = match scheme.coder {
            Coder::Rans => Statistics::Rans(counted.iter().map(Model::new).collect()),
            Coder::Huffman => Statistics::Huffman(counted.iter().map(Codes::new).collect()),
        };
        let code = |bytes: &[Vec<u8>], of_dc: bool| {
            let kinds = kinds(scheme.layout, bytes.len(), of_dc);
            match &statistics {
                Statistics::Rans(models) => {
                    let streams: Vec<_> = kinds.map(|kind| (&models[kind], &bytes[kind][..])).collect();
                    CodedStreams::Rans(rans::encode(&streams))
                }
                Statistics::Huffman(codes) => {
                    CodedStreams::Huffman(kinds.map(|kind| codes[kind].encode(&bytes[kind])).collect())
                }
            }
        };
        let group = |(counts, streams): (Vec<usize>, Streams)| Group {
            dc: code(&streams.bytes, true),
            ac: code(&streams.bytes, false),
            lengths: streams.bytes.iter().map(Vec::len).collect(),
            counts,
            wide: Streams { bytes: vec![], ..streams },
        };
        let images = images
            .iter()
            .zip(split)
            .map(|(image, split)| CodedImage {
                groups: split.into_iter().map(group).collect(),
                group_rows: scheme.group_rows,
                row_pixels: image.row_pixels,
            })
            .collect();
        Coded { scheme, statistics, images }
    }

    /// Returns the bytes that the coefficients of all images take, with two for the length of each stream.
    pub(crate) fn bytes(&self) -> usize {
        let of_streams = |streams: &CodedStreams| match streams {
            CodedStreams::Rans(words) => rans::stored(words),
            CodedStreams::Huffman(all) => all.iter().map(Codes::stored).sum(),
        };
        let of_group = |group: &Group| {
            let wide = match self.scheme.layout {
                Layout::Symbols => group.wide.magnitude_bits.div_ceil(8),
                _ => 2 * group.wide.wide.len(),
            };
            let lengths = 2 * group.lengths.iter().filter(|length| **length > 0).count();
            of_streams(&group.dc) + of_streams(&group.ac) + lengths + wide + 2 * group.wide.wide_dc.len()
        };
        self.images.iter().flat_map(|image| &image.groups).map(of_group).sum()
    }

    /// Returns the rows of MCUs of a group.
    pub(crate) fn group_rows(&self) -> usize {
        self.scheme.group_rows
    }

    /// Returns the number of symbols of all images.
    pub(crate) fn symbols(&self) -> usize {
        self.images.iter().flat_map(|image| &image.groups).flat_map(|group| &group.lengths).sum()
    }

    /// Decodes the groups that hold rows of pixels, and returns the number of blocks. `join` is whether blocks are put together.
    pub(crate) fn decode(
        &self,
        image: &CodedImage,
        rows: std::ops::Range<usize>,
        (level, join, quant): (Level, bool, &[Block; 2]),
        buffers: &mut Buffers,
    ) -> usize {
        let pixels = image.group_rows.saturating_mul(image.row_pixels);
        let groups = rows.start / pixels..rows.end.div_ceil(pixels).min(image.groups.len());
        let mut blocks = 0;
        for group in &image.groups[groups] {
            self.decode_streams((group, true), level, buffers);
            self.decode_streams((group, false), level, buffers);
            if join {
                let count: usize = group.counts.iter().sum();
                buffers.take_wide(group);
                buffers.blocks.resize(blocks + count, [0; 64]);
                let out = &mut buffers.blocks[blocks..];
                self.scheme.layout.join(level, &buffers.streams, &group.counts, quant, out);
                blocks += count;
            }
        }
        blocks
    }

    /// Decodes the DC coefficients, for an eighth of the size.
    pub(crate) fn decode_dc(&self, image: &CodedImage, (level, quant): (Level, &[Block; 2]), buffers: &mut Buffers) {
        let mut done = 0;
        for group in &image.groups {
            self.decode_streams((group, true), level, buffers);
            let count: usize = group.counts.iter().sum();
            buffers.take_wide(group);
            buffers.dc.resize(done + count, 0);
            self.scheme.layout.join_dc(&buffers.streams, &group.counts, quant, &mut buffers.dc[done..]);
            done += count;
        }
    }

    fn decode_streams(&self, (group, of_dc): (&Group, bool), level: Level, buffers: &mut Buffers) {
        let all = &mut buffers.streams.bytes;
        all.resize_with(group.lengths.len(), Vec::new);
        let is_taken = |kind: usize| is_dc(self.scheme.layout, kind) == of_dc;
        let mut taken: Vec<_> = all.iter_mut().enumerate().filter(|(kind, _)| is_taken(*kind)).collect();
        for (kind, bytes) in &mut taken {
            bytes.resize(rans::filled(group.lengths[*kind]) + SLACK, 0);
        }
        match (if of_dc { &group.dc } else { &group.ac }, &self.statistics) {
            (CodedStreams::Rans(words), Statistics::Rans(models)) => {
                let length = |kind: usize| rans::filled(group.lengths[kind]);
                let mut streams: Vec<_> =
                    taken.into_iter().map(|(kind, bytes)| (&models[kind], &mut bytes[..length(kind)])).collect();
                rans::decode(level, words, &mut streams);
            }
            (CodedStreams::Huffman(coded), Statistics::Huffman(codes)) => {
                for ((kind, bytes), coded) in taken.into_iter().zip(coded) {
                    codes[kind].decode(level, coded, &mut bytes[..group.lengths[kind]]);
                }
            }
            _ => {}
        }
    }
}

impl Buffers {
    fn take_wide(&mut self, group: &Group) {
        self.streams.wide.clone_from(&group.wide.wide);
        self.streams.wide_dc.clone_from(&group.wide.wide_dc);
    }
}

/// Returns whether a stream holds DC differences.
fn is_dc(layout: Layout, kind: usize) -> bool {
    (0..2).any(|class| layout.stream(class, DC) == kind)
}

/// Returns the streams of DC differences, or the others, among the first of all kinds.
fn kinds(layout: Layout, all: usize, of_dc: bool) -> impl Iterator<Item = usize> {
    (0..all).filter(move |kind| is_dc(layout, *kind) == of_dc)
}

/// Splits an image into groups: the blocks of each component, and the streams.
fn groups(scheme: Scheme, image: &Coefficients) -> Vec<(Vec<usize>, Streams)> {
    let split = |first: usize| {
        let last = first.saturating_add(scheme.group_rows).min(image.rows);
        let part = |plane: &super::baseline::Plane| {
            let row = plane.down * plane.across;
            first * row..last * row
        };
        let parts: Vec<&[Block]> = image.planes.iter().map(|plane| &plane.blocks[part(plane)]).collect();
        (parts.iter().map(|part| part.len()).collect(), scheme.layout.split(&parts))
    };
    (0..image.rows).step_by(scheme.group_rows.min(image.rows)).map(split).collect()
}
