//! Entropy-coded data without byte stuffing, so that the decoder can take eight bytes at a time.

use memchr::memchr;

/// Bytes that follow the data, so that a whole block of the longest codes can be read past their end.
pub(crate) const SLACK: usize = 512;

/// What lies between two restart markers.
#[derive(Clone, Copy)]
pub(crate) struct EntropySegment {
    /// First byte, in [`UnstuffedData::bytes`].
    pub start: usize,
    /// Byte after the last one, in [`UnstuffedData::bytes`].
    pub end: usize,
    /// Where its first byte is in the image.
    pub stored: usize,
    /// Number (0 to 7) of the restart marker before it; `None` for the first segment.
    pub restart: Option<u8>,
}

/// Unstuffed entropy-coded data, reused from image to image.
#[derive(Default)]
pub(crate) struct UnstuffedData {
    bytes: Vec<u8>,
    segments: Vec<EntropySegment>,
    most: usize,
    next: usize,
}

/// Empties `buffer`, which then has room for `len`.
fn clear<T>(buffer: &mut Vec<T>, len: usize) {
    buffer.clear();
    if buffer.capacity() < len {
        // The old one goes first.
        *buffer = Vec::new();
        buffer.reserve_exact(len);
    }
}

/// Bytes that data of that many stored bytes in so many segments take at most.
pub(crate) fn bytes(stored: usize, segments: u64) -> usize {
    stored + SLACK + segments.clamp(1, stored as u64 / 2 + 1) as usize * size_of::<EntropySegment>()
}

impl UnstuffedData {
    /// Starts anew, with data stored from byte `from` of the image, in `segments` segments at most: at one restart marker more
    /// they end. Room is made for all that can come, so that it need not grow.
    pub(crate) fn begin(&mut self, jpeg: &[u8], from: usize, segments: u64) {
        let stored = jpeg.len().saturating_sub(from);
        // A segment has a marker of two bytes before it.
        self.most = segments.clamp(1, stored as u64 / 2 + 1) as usize;
        clear(&mut self.bytes, stored + SLACK);
        clear(&mut self.segments, self.most);
        self.segments.push(EntropySegment { start: 0, end: 0, stored: from, restart: None });
        self.next = from;
    }

    /// Takes in the data up to byte `to` of the image, or up to a marker that is no restart. Returns the number of
    /// bytes held, or `None` where `to` is inside a stuffed pair or marker, or beyond the data.
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
                Some(&m @ 0xd0..=0xd7) if self.segments.len() < self.most => {
                    self.close();
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

    /// Ends the data and appends the slack.
    pub(crate) fn finish(&mut self) {
        self.close();
        self.bytes.resize(self.bytes.len() + SLACK, 0);
    }

    fn close(&mut self) {
        let end = self.bytes.len();
        if let Some(last) = self.segments.last_mut() {
            last.end = end;
        }
    }

    /// All of a scan whose data start at byte `from`, in `segments` segments at most.
    pub(crate) fn fill(&mut self, jpeg: &[u8], from: usize, segments: u64) {
        self.begin(jpeg, from, segments);
        self.extend(jpeg, jpeg.len());
        self.finish();
    }

    /// The data, followed by [`SLACK`] zero bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of bits held.
    pub(crate) fn bits(&self) -> usize {
        (self.bytes.len() - SLACK) * 8
    }

    /// The segments between restart markers; at least one.
    pub(crate) fn segments(&self) -> &[EntropySegment] {
        &self.segments
    }

    /// Where the data ended in the image.
    pub(crate) fn stored_end(&self) -> usize {
        self.next
    }

    /// Bytes of memory held.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity() + self.segments.capacity() * size_of::<EntropySegment>()
    }
}
