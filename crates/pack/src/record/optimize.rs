//! Lossless transcoding of JPEGs, and statistics of it.
//!
//! The transcoded JPEG (one sequential scan, optimal Huffman tables, no metadata that does not affect the pixels) is
//! stored if it is smaller, and always if the image had several scans. A progressive image is usually smaller, but must
//! be decoded as a whole, while a crop of the transcoded image decodes only its rows.

use super::image::StoredImage;
use shardtool_decode::Format;
use shardtool_jpeg::{self as jpeg, Decoder};
use std::collections::BTreeMap;

/// Statistics of transcoding, over the images that one run packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Optimized {
    /// Number of transcoded JPEGs.
    pub images: u64,
    /// Number of those that had several scans (progressive), of which a crop can now be decoded alone.
    pub opened: u64,
    /// Bytes of the transcoded images before.
    pub bytes_before: u64,
    /// Bytes of the transcoded images as stored.
    pub bytes_after: u64,
    /// Number of JPEGs stored unchanged because the transcoded JPEG is not smaller.
    pub kept: u64,
    /// JPEGs stored unchanged because they cannot be transcoded: number per reason.
    pub refused: BTreeMap<String, u64>,
}

/// The result for one image.
pub(crate) enum Outcome {
    /// Not a JPEG, or transcoding was not requested.
    Other,
    Transcoded {
        before: usize,
        after: usize,
        opened: bool,
    },
    Kept,
    Refused(jpeg::Error),
}

impl Optimized {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Other => {}
            Outcome::Transcoded { before, after, opened } => {
                self.images += 1;
                self.opened += u64::from(*opened);
                self.bytes_before += *before as u64;
                self.bytes_after += *after as u64;
            }
            Outcome::Kept => self.kept += 1,
            Outcome::Refused(error) => *self.refused.entry(name(error)).or_default() += 1,
        }
    }
}

impl Optimized {
    /// Adds the counts of other shards.
    pub(crate) fn append(&mut self, other: Optimized) {
        let Optimized { images, opened, bytes_before, bytes_after, kept, refused } = other;
        self.images += images;
        self.opened += opened;
        self.bytes_before += bytes_before;
        self.bytes_after += bytes_after;
        self.kept += kept;
        refused.into_iter().for_each(|(name, n)| *self.refused.entry(name).or_default() += n);
    }
}

/// Returns the reason without details of the image, to count it.
fn name(error: &jpeg::Error) -> String {
    match error {
        jpeg::Error::Unsupported(feature) => feature.to_string(),
        jpeg::Error::TranscodeMismatch => "coefficients that differ after transcoding".to_owned(),
        _ => "damaged data".to_owned(),
    }
}

/// Transcodes JPEGs on one thread.
pub(crate) struct Optimizer {
    decoder: Decoder,
    jpeg: Vec<u8>,
}

impl Optimizer {
    pub(crate) fn new() -> Self {
        // The pack has checked the size.
        Optimizer { decoder: Decoder::new().with_limits(jpeg::Limits::default().with_pixels(u64::MAX)), jpeg: vec![] }
    }

    /// Returns the transcoded image, if it is a JPEG that is to be replaced.
    pub(crate) fn optimize<'a>(&'a mut self, stored: StoredImage<'a>) -> (StoredImage<'a>, Outcome) {
        if stored.format != Format::Jpeg {
            return (stored, Outcome::Other);
        }
        match jpeg::transcode(stored.bytes, &mut self.decoder) {
            Ok(new) if new.was_multi_scan || new.jpeg.len() < stored.bytes.len() => {
                self.jpeg = new.jpeg;
                let (before, after) = (stored.bytes.len(), self.jpeg.len());
                (
                    StoredImage { bytes: &self.jpeg, ..stored },
                    Outcome::Transcoded { before, after, opened: new.was_multi_scan },
                )
            }
            Ok(_) => (stored, Outcome::Kept),
            Err(error) => (stored, Outcome::Refused(error)),
        }
    }
}
