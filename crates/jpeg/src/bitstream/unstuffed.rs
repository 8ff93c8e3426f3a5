//! The entropy-coded segments of a scan (T.81, B.1.1.5) without byte stuffing, so that decoders can load eight bytes at a
//! time.

use memchr::memchr;

use crate::buffer::clear_with_capacity;

/// Zero bytes after the data, so that decoders may read a whole block of the longest codes beyond the end.
pub(crate) const SLACK: usize = 512;

/// The data between two restart markers.
#[derive(Clone, Copy)]
pub(crate) struct EntropySegment {
    /// Index of the first byte in [`UnstuffedData::bytes`].
    pub start: usize,
    /// Index after the last byte in [`UnstuffedData::bytes`].
    pub end: usize,
    /// Byte offset of the segment in the image.
    pub stored: usize,
    /// Number (0 to 7) of the restart marker before the segment; `None` for the first segment.
    pub restart: Option<u8>,
}

/// Unstuffed entropy-coded data. The buffers are reused from image to image.
#[derive(Default)]
pub(crate) struct UnstuffedData {
    bytes: Vec<u8>,
    segments: Vec<EntropySegment>,
    max_segments: usize,
    /// Byte offset in the image of the first byte not read yet.
    next: usize,
}

/// The most segments that `stored` bytes can hold, at most `segments`: each but the first follows a marker of two bytes.
fn max_segments(stored: usize, segments: u64) -> usize {
    segments.clamp(1, stored as u64 / 2 + 1) as usize
}

/// The most bytes of memory that [`UnstuffedData`] takes for `stored` bytes in up to `segments` segments.
pub(crate) fn max_bytes(stored: usize, segments: u64) -> usize {
    stored + SLACK + max_segments(stored, segments) * size_of::<EntropySegment>()
}

impl UnstuffedData {
    /// Clears the data. What follows starts at byte `from` of the image and has at most `segments` segments: one restart marker
    /// more ends the data. Reserves memory for all of the image's remaining bytes.
    pub(crate) fn begin(&mut self, jpeg: &[u8], from: usize, segments: u64) {
        let stored = jpeg.len().saturating_sub(from);
        self.max_segments = max_segments(stored, segments);
        clear_with_capacity(&mut self.bytes, stored + SLACK);
        clear_with_capacity(&mut self.segments, self.max_segments);
        self.segments.push(EntropySegment { start: 0, end: 0, stored: from, restart: None });
        self.next = from;
    }

    /// Appends the data up to byte `to` of the image, or up to a marker other than RSTn. Returns the number of bytes held, or
    /// `None` if `to` is inside a stuffed pair or marker, or beyond the data.
    pub(crate) fn extend(&mut self, jpeg: &[u8], to: usize) -> Option<usize> {
        let mut at = self.next;
        if to > jpeg.len() {
            return None;
        }
        while at < to {
            let run = memchr(0xff, &jpeg[at..to]).map_or(to, |n| at + n);
            self.bytes.extend_from_slice(&jpeg[at..run]);
            at = run;
            if run == to {
                break;
            }
            match jpeg.get(run + 1) {
                Some(0) => {
                    self.bytes.push(0xff);
                    at = run + 2;
                }
                Some(&m @ 0xd0..=0xd7) if self.segments.len() < self.max_segments => {
                    self.close_segment();
                    let start = self.bytes.len();
                    self.segments.push(EntropySegment { start, end: start, stored: run + 2, restart: Some(m & 7) });
                    at = run + 2;
                }
                Some(0xff) => at = run + 1,
                _ => {
                    self.next = run;
                    return None;
                }
            }
        }
        self.next = at;
        (at == to).then_some(self.bytes.len())
    }

    /// Ends the data and appends [`SLACK`].
    pub(crate) fn finish(&mut self) {
        self.close_segment();
        self.bytes.resize(self.bytes.len() + SLACK, 0);
    }

    fn close_segment(&mut self) {
        let end = self.bytes.len();
        if let Some(last) = self.segments.last_mut() {
            last.end = end;
        }
    }

    /// Reads the whole scan whose data start at byte `from`, with at most `segments` segments.
    pub(crate) fn fill(&mut self, jpeg: &[u8], from: usize, segments: u64) {
        self.begin(jpeg, from, segments);
        self.extend(jpeg, jpeg.len());
        self.finish();
    }

    /// The data, followed by [`SLACK`] zero bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of bits of data.
    pub(crate) fn bits(&self) -> usize {
        (self.bytes.len() - SLACK) * 8
    }

    /// The segments between restart markers; at least one.
    pub(crate) fn segments(&self) -> &[EntropySegment] {
        &self.segments
    }

    /// Byte offset in the image at which the data ended.
    pub(crate) fn stored_end(&self) -> usize {
        self.next
    }

    /// Bytes of memory held.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.segments.capacity() * size_of::<EntropySegment>()
    }
}
