//! The source files whose bytes a record holds unchanged.

use super::data;
use crate::source::archive::sample::StoredValue;
use crate::virtual_source::{FrameRange, SourceName};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Feature, Message, range_within};
use shardtool_format::frame;
use shardtool_format::index::MAX_FEATURE_BYTES;
use std::collections::HashMap;
use std::sync::Arc;

/// Origins that are compared one by one, at most.
const FEW: usize = 16;

/// A value that a record may hold, and the file that it comes from.
pub(crate) struct Origin<'a> {
    pub(crate) file: Arc<SourceName>,
    pub(crate) value: StoredValue<'a>,
}

/// Returns the ranges of a frame that hold values which are the bytes of one of these origins, in order. Short values stay in the
/// index: a range takes more than they do.
pub(crate) fn frame_ranges(frame: &[u8], origins: &[Origin<'_>]) -> Vec<FrameRange> {
    let data = data(frame);
    let Ok(example) = Message::Example.parse(data) else { return vec![] };
    // Searching a few is faster than hashing them.
    let many = (origins.len() > FEW)
        .then(|| origins.iter().map(|origin| (origin.value.bytes, origin)).collect::<HashMap<_, _>>());
    let mut ranges = vec![];
    for (_, feature) in example.features() {
        let Feature::Bytes(values) = feature else { continue };
        for value in values.iter().filter(|value| value.len() > MAX_FEATURE_BYTES) {
            let origin = match &many {
                Some(many) => many.get(value).copied(),
                None => origins.iter().find(|origin| origin.value.bytes == value),
            };
            let (Some(origin), Some(place)) = (origin, range_within(data, value)) else { continue };
            let long = origin.value.parts.iter().filter(|part| part.length > MAX_FEATURE_BYTES);
            ranges.extend(long.map(|part| FrameRange {
                at: frame::HEADER_BYTES + place.start + part.at,
                length: part.length as u32,
                crc: crc32c(&value[part.at..part.at + part.length]),
                file: origin.file.clone(),
                offset: part.offset,
            }));
        }
    }
    ranges.sort_by_key(|range| range.at);
    ranges
}
