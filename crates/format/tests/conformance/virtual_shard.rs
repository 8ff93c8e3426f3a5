//! Virtual shards: which parts of each frame lie in source files, and what the index says of them.

use crate::bytes::crc::crc32c;
use crate::bytes::frame;
use crate::bytes::index::Column;
use crate::bytes::manifest::string;
use crate::dataset::{Files, Shard};
use crate::sample::Sample;

/// Bytes of a frame before its data.
const FRAME_HEADER: usize = 12;

/// What makes a shard a virtual one.
#[derive(Clone)]
pub(crate) struct Virtual {
    /// The source files, by path in the dataset.
    pub(crate) files: Files,
    pub(crate) source: Option<&'static str>,
}

/// A part of a frame that lies in a source file.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) file: &'static str,
    /// Offset in the file.
    pub(crate) at: usize,
    /// Offset in the frame.
    pub(crate) from: usize,
    pub(crate) length: usize,
}

impl Piece {
    /// The value of a bytes feature that has only one.
    pub(crate) fn value(sample: &Sample, feature: &str, file: &'static str, at: usize) -> Self {
        let from = FRAME_HEADER + sample.offsets(feature)[0];
        Piece { file, at, from, length: sample.string(feature).expect("one value").len() }
    }
}

impl Shard {
    /// Makes the shard a virtual one. Each row has the pieces of its frame, in order.
    pub(crate) fn described(mut self, files: &[(&'static str, &[u8])], rows: &[Vec<Piece>]) -> Self {
        let files: Files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        let mut columns: [Vec<Option<Vec<u8>>>; 3] = Default::default();
        let mut entries: Vec<(&str, u64)> = vec![];
        let mut end = 0;
        for (sample, pieces) in self.samples.iter().zip(rows) {
            let (mut described, mut ranges, mut other, mut at) = (vec![], vec![], vec![], 0);
            let frame = frame(&sample.data);
            for piece in pieces {
                let bytes = &frame[piece.from..piece.from + piece.length];
                assert_eq!(&files[piece.file][piece.at..piece.at + piece.length], bytes, "{}", piece.file);
                if !entries.iter().any(|(name, _)| *name == piece.file) {
                    entries.push((piece.file, end));
                    let entry = entry(files[piece.file].len() as u64, piece.file.as_bytes());
                    end += entry.len() as u64;
                    described.extend(entry);
                }
                let (_, file) = entries.iter().find(|(name, _)| *name == piece.file).expect("an entry");
                ranges.extend(range(*file, piece.at as u64, piece.length as u32, crc32c(bytes), piece.from - at));
                other.extend_from_slice(&frame[at..piece.from]);
                at = piece.from + piece.length;
            }
            other.extend_from_slice(&frame[at..]);
            columns.iter_mut().zip([described, ranges, other]).for_each(|(column, row)| column.push(Some(row)));
        }
        let names = ["virtual_files", "virtual_ranges", "virtual_bytes"];
        self.columns.extend(names.iter().zip(&columns).map(|(name, rows)| Column::variable(name, rows)));
        self.foreign = Some(Virtual { files, source: None });
        self.reindex();
        self
    }
}

impl Virtual {
    /// Returns the members of the shard's line, each after a comma.
    pub(crate) fn members(&self) -> String {
        let source = self.source.map(|source| format!(", \"source\": {}", string(source)));
        format!(", \"virtual\": true{}", source.unwrap_or_default())
    }
}

/// Returns an entry of `virtual_files`.
pub(crate) fn entry(length: u64, name: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes()[..], &(name.len() as u32).to_le_bytes(), name].concat()
}

/// Returns an entry of `virtual_ranges`.
pub(crate) fn range(file: u64, offset: u64, length: u32, crc: u32, before: usize) -> Vec<u8> {
    let numbers = [length, crc, before as u32, 0].map(u32::to_le_bytes);
    [&file.to_le_bytes()[..], &offset.to_le_bytes(), &numbers.concat()].concat()
}

/// Returns a tar of these files (POSIX.1-1988, ustar), and the offset of the contents of each.
pub(crate) fn tar(members: &[(&str, &[u8])]) -> (Vec<u8>, Vec<usize>) {
    let (mut tar, mut offsets) = (vec![], vec![]);
    for (name, bytes) in members {
        let mut header = [0u8; 512];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, "0000644\x000000000\x000000000");
        put(124, &format!("{:011o}\x0000000000000", bytes.len()));
        put(148, "        0");
        put(257, "ustar\x0000");
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend(header);
        offsets.push(tar.len());
        tar.extend_from_slice(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    (tar, offsets)
}
