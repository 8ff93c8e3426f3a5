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
    error: Option<io::Error>,
    done: Option<Done>,
}

/// Reads a range of an object.
pub(super) fn read(path: &Path, bytes: Range<u64>) -> io::Result<Vec<u8>> {
    Object::with_len(path, bytes.end)?.read(bytes)
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
        let assembly = Assembly { bytes, left: requests.len(), error: None, done: Some(done) };
        let assembly = Arc::new(Mutex::new(assembly));
        for Request { path, bytes, parts } in requests {
            let (shared, file) = (assembly.clone(), path.clone());
            let arrived = move |answer: io::Result<Vec<u8>>| arrive(&shared, file, &parts, answer);
            match Object::with_len(&path, bytes.end) {
                Ok(object) => object.read_then(bytes, arrived),
                Err(error) => arrived(Err(error)),
            }
        }
    }
}

/// Takes the answer of a request. The last one ends the assembly.
fn arrive(assembly: &Mutex<Assembly>, path: PathBuf, parts: &[(Range<usize>, usize)], answer: io::Result<Vec<u8>>) {
    let mut assembly = assembly.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        Ok(bytes) => {
            for (from, to) in parts {
                assembly.bytes[*to..to + from.len()].copy_from_slice(&bytes[from.clone()]);
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assembly.error = Some(as_io(Error::MissingSource { path, problem: "does not exist" }));
        }
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
