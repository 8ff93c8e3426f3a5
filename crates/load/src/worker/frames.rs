//! The frames of a row of clips, read by their ranges in the index, without the rest of their record. Each frame's CRC takes the
//! place of the record's.

use crate::clip::distinct;
use crate::error::SampleError;
use crate::fetch::Fetched;
use crate::image::Frame;
use crate::options::Clip;
use shardtool_format::index::ValueRange;
use shardtool_read::Shard;
use std::io;
use std::sync::Arc;

/// The frames of a row that are read, each once.
pub(super) struct Chosen {
    /// The numbers of the row's frames, clip after clip.
    numbers: Vec<usize>,
    /// The frames to read, by increasing number, and where they lie.
    ranges: Vec<(usize, ValueRange)>,
    /// Bytes of these frames.
    pub(super) bytes: u64,
}

impl Chosen {
    pub(super) fn new(numbers: Vec<usize>, ranges: &[ValueRange]) -> Self {
        let ranges: Vec<_> = distinct(numbers.clone()).into_iter().map(|number| (number, ranges[number])).collect();
        Chosen { bytes: ranges.iter().map(|(_, range)| u64::from(range.length)).sum(), numbers, ranges }
    }

    /// Asks the system to read the frames of the record `row`.
    pub(super) fn request_of_system(&self, shard: &Shard, row: u64) {
        self.ranges.iter().for_each(|(_, range)| shard.will_need_value(row, *range));
    }

    /// Reads the frames of the record `row`, those that were requested ahead from `fetched`.
    ///
    /// # Errors
    /// [`SampleError::FrameBytes`], [`SampleError::Read`].
    pub(super) fn read(
        &self,
        clip: &Clip,
        shard: &Arc<Shard>,
        row: u64,
        fetched: Option<&Fetched>,
    ) -> Result<Vec<Vec<u8>>, SampleError> {
        let read = |(number, range): &(usize, ValueRange)| {
            let error = |source: shardtool_read::Error| match source.is_bad_sample() {
                true => {
                    let source = Box::new(source);
                    SampleError::FrameBytes { feature: clip.feature.clone(), number: *number, source }
                }
                false => SampleError::Read(source),
            };
            let bytes = || fetched?.bytes(&shard.value_in_shard(row, *range).ok()?);
            match bytes() {
                Some(bytes) => shard.value_in(row, *range, bytes).map_err(error),
                None => shard.value_at(row, *range).map_err(error),
            }
        };
        self.ranges.iter().map(read).collect()
    }

    /// Returns the row's frames. `values` are the bytes of those that were read.
    pub(super) fn frames<'v>(&self, values: &'v [Vec<u8>]) -> Vec<Frame<'v>> {
        let place = |number: usize| self.ranges.partition_point(|(other, _)| *other < number);
        self.numbers.iter().map(|number| (*number, &*values[place(*number)])).collect()
    }
}

/// Returns the error of a request that was made ahead.
pub(super) fn unread(shard: &Shard, source: io::Error) -> shardtool_read::Error {
    shardtool_read::Error::Io { action: "read", path: shard.path().to_owned(), source }
}
