//! Limits the bytes that a tar's headers take. A GNU long name and a pax header precede the header of their member and
//! have any length; the `tar` crate reads them into memory whole.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::rc::Rc;

/// Bytes of the headers of one member, extensions included, at most. Names on Linux have at most 4,096 bytes.
pub(super) const MAX_HEADER: u64 = 1 << 20;

/// A tar as a stream that fails when more bytes are read than are allowed at present.
pub(super) struct HeaderLimit<R> {
    inner: R,
    state: Rc<State>,
}

/// How many bytes may be read at present; without a limit outside of [`Allowance::during`].
pub(super) struct Allowance(Rc<State>);

#[derive(Default)]
struct State {
    left: Cell<Option<u64>>,
    /// Bytes read so far.
    read: Cell<u64>,
}

impl<R> HeaderLimit<R> {
    pub(super) fn new(inner: R) -> (Self, Allowance) {
        let state = Rc::new(State::default());
        (HeaderLimit { inner, state: state.clone() }, Allowance(state))
    }
}

impl Allowance {
    /// Calls `next`, which first skips everything before byte `start` of the stream by reading it, and then reads the
    /// headers of one member.
    pub(super) fn during<T>(&self, start: u64, next: impl FnOnce() -> T) -> T {
        let skipped = start.saturating_sub(self.0.read.get());
        self.0.left.set(Some(skipped.saturating_add(MAX_HEADER)));
        let result = next();
        // A limit that was exceeded stays, so that `is_exceeded` sees it and every later read fails.
        if !self.is_exceeded() {
            self.0.left.set(None);
        }
        result
    }

    /// Returns whether the last header exceeded the limit.
    pub(super) fn is_exceeded(&self) -> bool {
        self.0.left.get() == Some(0)
    }
}

impl<R: Read> Read for HeaderLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = self.state.left.get();
        if left == Some(0) && !buffer.is_empty() {
            return Err(Error::new(ErrorKind::InvalidData, "a header that exceeds the limit"));
        }
        let most = left.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        self.state.read.set(self.state.read.get().saturating_add(read as u64));
        self.state.left.set(left.map(|left| left - read as u64));
        Ok(read)
    }
}

impl<R: Seek> Seek for HeaderLimit<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.inner.seek(to)
    }
}
