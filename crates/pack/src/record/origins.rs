//! The source files whose bytes a record holds unchanged.

use super::data;
use crate::virtual_source::{FrameRange, SourceName};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Feature, Message, range_within};
use shardtool_format::frame;
use shardtool_format::index::MAX_FEATURE_BYTES;
use std::sync::Arc;

/// Bytes that a record may hold, and where they come from.
pub(crate) struct Origin<'a> {
    pub(crate) file: Arc<SourceName>,
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

/// Returns the ranges of a frame that hold values which are the bytes of one of these origins, in order. Short values stay in the
/// index: a range takes more than they do.
pub(crate) fn frame_ranges(frame: &[u8], origins: &[Origin<'_>]) -> Vec<FrameRange> {
    let data = data(frame);
    let Ok(example) = Message::Example.parse(data) else { return vec![] };
    let mut ranges = vec![];
    for (_, feature) in example.features() {
        let Feature::Bytes(values) = feature else { continue };
        for value in values.iter().filter(|value| value.len() > MAX_FEATURE_BYTES) {
            let origin = origins.iter().find(|origin| origin.bytes == value);
            let (Some(origin), Some(place)) = (origin, range_within(data, value)) else { continue };
            ranges.push(FrameRange {
                at: frame::HEADER_BYTES + place.start,
                length: place.len() as u32,
                crc: crc32c(value),
                file: origin.file.clone(),
                offset: origin.offset,
            });
        }
    }
    ranges.sort_by_key(|range| range.at);
    ranges
}
