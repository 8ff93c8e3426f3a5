//! The frames of a clip as they were listed, and their order.

use super::ListedFile;
use serde::{Deserialize, Serialize};
use shardtool_format::checksum::Crc32c;
use std::cmp::Ordering;

/// Suffix of the feature with the format of all frames.
pub(crate) const FORMAT_SUFFIX: &str = "/format";
/// Suffix of the feature with the frames per second.
pub(crate) const FPS_SUFFIX: &str = "/fps";

/// The frames of a clip as they were listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListedClip {
    pub(crate) frames: FrameFiles,
    /// Bytes of all frames.
    pub(crate) size: u64,
    /// CRC32C over the names, lengths and times of all frames.
    pub(crate) crc: u32,
}

/// Where the frames are. A folder is listed again when the record is made: a data set may have millions of frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum FrameFiles {
    /// A folder, by its path relative to the listing's root.
    Folder(Box<str>),
    /// Single files.
    Files(Box<[ListedFile]>),
}

impl ListedClip {
    /// Describes the frames in a folder, which are `files` in this order.
    pub(crate) fn of_folder(folder: &str, files: &[ListedFile]) -> Self {
        Self::new(FrameFiles::Folder(folder.into()), files)
    }

    /// Describes single files.
    pub(crate) fn of_files(files: Box<[ListedFile]>) -> Self {
        let clip = Self::new(FrameFiles::Files(Box::default()), &files);
        ListedClip { frames: FrameFiles::Files(files), ..clip }
    }

    fn new(frames: FrameFiles, files: &[ListedFile]) -> Self {
        let mut crc = Crc32c::new();
        for file in files {
            crc.update(&(file.path.len() as u64).to_le_bytes());
            file.each_bytes(&mut |bytes| crc.update(bytes));
        }
        ListedClip { frames, size: files.iter().map(|file| file.size).sum(), crc: crc.value() }
    }

    /// Returns whether its frames still are these files.
    pub(crate) fn has(&self, files: &[ListedFile]) -> bool {
        let found = Self::new(FrameFiles::Files(Box::default()), files);
        (found.size, found.crc) == (self.size, self.crc)
    }

    /// Calls `visit` with everything that identifies the frames, for a checksum.
    pub(super) fn each_bytes(&self, visit: &mut dyn FnMut(&[u8])) {
        if let FrameFiles::Folder(path) = &self.frames {
            visit(path.as_bytes());
        }
        visit(&self.size.to_le_bytes());
        visit(&self.crc.to_le_bytes());
    }
}

/// Compares names so that numbers in them are in numerical order: `img2` before `img10`. Names that differ only in leading
/// zeros are in byte order.
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    while !left.is_empty() && !right.is_empty() {
        let (digits, others) = (digits(left), digits(right));
        let ordering = if digits > 0 && others > 0 {
            let number = |text: &[u8]| text.iter().position(|digit| *digit != b'0').unwrap_or(text.len());
            let (x, y) = (&left[..digits], &right[..others]);
            let (x, y) = (&x[number(x)..], &y[number(y)..]);
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            left[0].cmp(&right[0])
        };
        if ordering.is_ne() {
            return ordering;
        }
        let both = digits > 0 && others > 0;
        (left, right) = (&left[if both { digits } else { 1 }..], &right[if both { others } else { 1 }..]);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Returns the number of ASCII digits at the beginning.
fn digits(text: &[u8]) -> usize {
    text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_in_numerical_order() {
        let sorted = [
            "",
            "0",
            "00",
            "1.jpg",
            "2.jpg",
            "10.jpg",
            "a",
            "img",
            "img1b2",
            "img1b10",
            "img2.jpg",
            "img002x",
            "img10.jpg",
            "img99999999999999999999999999.jpg",
            "img100000000000000000000000000.jpg",
            "imgx",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(natural_order(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
    }
}
