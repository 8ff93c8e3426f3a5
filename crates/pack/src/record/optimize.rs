//! JPEGs in a better layout with the same coefficients, and what that gained.
//!
//! The new layout (one sequential scan, the best Huffman tables, no metadata but what changes the picture) is stored where
//! it is smaller, and for an image of several scans in any case: a progressive image is the smaller one as a rule, but it can
//! only be decoded whole, and a crop of the new one decodes just its rows.

use super::image::StoredImage;
use shardtool_decode::Format;
use shardtool_jpeg::{self as jpeg, Decoder};
use std::collections::BTreeMap;

/// What a better layout gained, over the images that one run packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Optimized {
    /// JPEGs stored in the new layout.
    pub images: u64,
    /// Those of them that had several scans (progressive), and can now be entered at the rows of a crop.
    pub opened: u64,
    /// Bytes of these images before.
    pub bytes_before: u64,
    /// Bytes of these images as stored.
    pub bytes_after: u64,
    /// JPEGs stored as they were, because the new layout is not smaller.
    pub kept: u64,
    /// JPEGs stored as they were, because they cannot be laid out anew: how many, by what stands against it.
    pub refused: BTreeMap<String, u64>,
}

/// What became of one image.
pub(crate) enum Outcome {
    /// No JPEG, or no better layout is asked for.
    Other,
    Relaid {
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
            Outcome::Relaid { before, after, opened } => {
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
    /// Counts what another run of shards gained as well.
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

/// What stands against a new layout, without what differs from image to image.
fn name(error: &jpeg::Error) -> String {
    match error {
        jpeg::Error::Unsupported(feature) => feature.to_string(),
        jpeg::Error::TranscodeMismatch => "coefficients that came back different".to_owned(),
        _ => "damaged data".to_owned(),
    }
}

/// Lays JPEGs out anew on one thread.
pub(crate) struct Optimizer {
    decoder: Decoder,
    jpeg: Vec<u8>,
}

impl Optimizer {
    pub(crate) fn new() -> Self {
        // How large an image may be was checked before.
        Optimizer { decoder: Decoder::new().with_limits(jpeg::Limits::default().with_pixels(u64::MAX)), jpeg: vec![] }
    }

    /// The image in its better layout, if it is a JPEG that gains by one.
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
                    Outcome::Relaid { before, after, opened: new.was_multi_scan },
                )
            }
            Ok(_) => (stored, Outcome::Kept),
            Err(error) => (stored, Outcome::Refused(error)),
        }
    }
}
