//! A virtual shard whose source files are in a store: neighbours in a file become one request.

use super::{Bytes, Located, VirtualShard, as_io};
use crate::{Error, Result};
use shardtool_store::{Compose, Done, Object};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes between two parts of a file that are requested with them, at most: between the images of a tar lie headers and small
/// members.
const GAP: u64 = 64 << 10;

/// A request for a part of a source file.
struct Request {
    path: PathBuf,
    bytes: Range<u64>,
    /// Its parts: where they lie in the answer, and from where on in the range of the shard.
    parts: Vec<(Range<usize>, usize)>,
}

/// The bytes of a range that is being put together.
struct Assembly {
    bytes: Vec<u8>,
    /// Requests without an answer.
    left: usize,
    /// Whether what is missing is found by the CRCs of records: it stays zeros, so that it costs only the records that need it, however
    /// many are read at once.
    checked: bool,
    error: Option<io::Error>,
    done: Option<Done>,
}

/// Reads a range of an object that had this length when it was indexed.
///
/// # Errors
/// [`Error::MissingSource`], [`Error::SourceLength`], [`Error::Unreadable`].
pub(super) fn read(path: &Path, bytes: Range<u64>, length: u64) -> Result<Vec<u8>> {
    let read = Object::with_len(path, bytes.end).and_then(|object| object.read(bytes.clone()));
    read.map_err(|source| match (source.kind(), Object::open(path)) {
        (ErrorKind::NotFound, _) => Error::MissingSource { path: path.to_owned(), problem: "does not exist" },
        (_, Ok(object)) if object.len() != length => {
            Error::SourceLength { path: path.to_owned(), expected: length, found: object.len() }
        }
        _ => Error::Unreadable { path: path.to_owned(), record: None, key: None, bytes, source },
    })
}

impl VirtualShard {
    /// Returns the bytes of a range that lie in the index, with the requests for the others.
    fn requests(&self, range: &Range<u64>) -> Result<(Vec<u8>, Vec<Request>)> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut requests: Vec<Request> = vec![];
        for Located { place, bytes: part } in self.locate(range)? {
            match part {
                Bytes::Inline(inline) => bytes[place].copy_from_slice(inline),
                Bytes::Source(file, range) => {
                    let path = self.files.path(self.source.as_deref(), &file)?;
                    match requests.last_mut().filter(|last| {
                        last.path == path
                            && (last.bytes.end..=last.bytes.end.saturating_add(GAP)).contains(&range.start)
                    }) {
                        Some(last) => {
                            let at = (range.start - last.bytes.start) as usize;
                            last.parts.push((at..at + place.len(), place.start));
                            last.bytes.end = range.end;
                        }
                        None => {
                            requests.push(Request { path, bytes: range, parts: vec![(0..place.len(), place.start)] })
                        }
                    }
                }
            }
        }
        Ok((bytes, requests))
    }
}

impl Compose for VirtualShard {
    fn read_then(&self, range: Range<u64>, done: Done) {
        let (bytes, requests) = match self.requests(&range) {
            Ok(found) => found,
            Err(error) => return done(Err(as_io(error))),
        };
        if requests.is_empty() {
            return done(Ok(bytes));
        }
        let assembly = Assembly { bytes, left: requests.len(), checked: self.checked, error: None, done: Some(done) };
        let assembly = Arc::new(Mutex::new(assembly));
        for Request { path, bytes, parts } in requests {
            let shared = assembly.clone();
            let arrived = move |answer: io::Result<Vec<u8>>| arrive(&shared, &parts, answer);
            match Object::with_len(&path, bytes.end) {
                Ok(object) => object.read_then(bytes, arrived),
                Err(error) => arrived(Err(error)),
            }
        }
    }
}

/// Returns whether an error says that the object does not exist, or ends before a range does.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof)
}

/// Takes the answer of a request. The last one ends the assembly.
fn arrive(assembly: &Mutex<Assembly>, parts: &[(Range<usize>, usize)], answer: io::Result<Vec<u8>>) {
    let mut assembly = assembly.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        Ok(bytes) => {
            for (from, to) in parts {
                assembly.bytes[*to..to + from.len()].copy_from_slice(&bytes[from.clone()]);
            }
        }
        Err(error) if assembly.checked && is_missing(&error) => {}
        Err(error) => assembly.error = Some(error),
    }
    assembly.left -= 1;
    if assembly.left == 0
        && let Some(done) = assembly.done.take()
    {
        let result = match assembly.error.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut assembly.bytes)),
        };
        drop(assembly);
        done(result);
    }
}
