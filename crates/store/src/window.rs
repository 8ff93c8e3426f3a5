//! Reads one object from its start to its end.

use crate::Object;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes of one request, unless the memory is limited.
const PART: u64 = 4 << 20;
/// Bytes of one request, at least.
const SMALLEST_PART: u64 = 256 << 10;
/// Parts in memory: the one that is read, the one before it, and one or two that are under way.
const PARTS: usize = 4;

/// An object that is read nearly in order: requests of up to 4 MiB, of which the next one is under way while one is read.
/// Takes [`Window::BYTES`] or less, or as much as the longest range. Usable from several threads, which then wait for each
/// other.
#[derive(Debug)]
pub struct Window {
    object: Object,
    /// Bytes of one request.
    part: u64,
    parts: Mutex<VecDeque<(u64, Arc<Part>)>>,
}

/// The bytes of a part, or why there are none: the error of several readers.
type Answer = Result<Arc<Vec<u8>>, (io::ErrorKind, String)>;

#[derive(Debug, Default)]
struct Part {
    bytes: Mutex<Option<Answer>>,
    done: Condvar,
}

impl Part {
    fn set(&self, result: io::Result<Vec<u8>>) {
        let result = result.map(Arc::new).map_err(|error| (error.kind(), error.to_string()));
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.done.notify_all();
    }

    /// Waits for the bytes. (The request has a time limit.)
    fn get(&self) -> io::Result<Arc<Vec<u8>>> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*bytes {
                Some(Ok(bytes)) => return Ok(bytes.clone()),
                Some(Err((kind, text))) => return Err(io::Error::new(*kind, text.clone())),
                None => bytes = self.done.wait(bytes).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Window {
    /// The memory that a window takes in bytes, at most and by default.
    pub const BYTES: u64 = PARTS as u64 * PART;
    /// The memory that a window takes in bytes, at least.
    pub const LEAST_BYTES: u64 = PARTS as u64 * SMALLEST_PART;

    /// Starts at the beginning of the object, without a request.
    pub fn new(object: Object) -> Self {
        Window::within(object, Window::BYTES)
    }

    /// As [`Window::new`], with requests so small that the window takes this number of bytes.
    pub fn within(object: Object, bytes: u64) -> Self {
        let part = bytes.clamp(Window::LEAST_BYTES, Window::BYTES) / PARTS as u64;
        Window { object, part, parts: Mutex::new(VecDeque::new()) }
    }

    /// Returns the object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Reads a range into `buffer`, which is resized to it.
    ///
    /// # Errors
    /// As [`Object::read`]. The next call requests the bytes again.
    pub fn read(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        if range.start > range.end || range.end > self.object.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // A server may claim any length.
        buffer.try_reserve_exact((range.end - range.start) as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut at = range.start;
        while at < range.end {
            let number = at / self.part;
            let bytes = self.part(number).get().inspect_err(|_| self.forget(number))?;
            let start = at - number * self.part;
            let end = (range.end - number * self.part).min(bytes.len() as u64);
            buffer.extend_from_slice(&bytes[start as usize..end as usize]);
            at = number * self.part + end;
        }
        Ok(())
    }

    /// Returns a part, requested if necessary, and requests the one after it.
    fn part(&self, number: u64) -> Arc<Part> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part = self.requested(&mut parts, number);
        if (number + 1) * self.part < self.object.len() {
            self.requested(&mut parts, number + 1);
        }
        part
    }

    fn requested(&self, parts: &mut VecDeque<(u64, Arc<Part>)>, number: u64) -> Arc<Part> {
        if let Some((_, part)) = parts.iter().find(|(other, _)| *other == number) {
            return part.clone();
        }
        if parts.len() == PARTS {
            parts.pop_front();
        }
        let part = Arc::new(Part::default());
        parts.push_back((number, part.clone()));
        let range = number * self.part..((number + 1) * self.part).min(self.object.len());
        let target = part.clone();
        self.object.read_then(range, move |result| target.set(result));
        part
    }

    /// Removes a part, so that it is requested again.
    fn forget(&self, number: u64) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, _)| *other != number);
    }

    /// Removes all parts, so that they are requested again.
    pub fn clear(&self) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
