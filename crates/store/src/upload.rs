//! Writes an object in parts.

use crate::request;
use crate::url::Url;
use crate::verb::{Abort, Begin, Begun, Describe, Description, Join, Part, Payload};
use crate::version::Condition;
use crate::write::{clean_up_limit, put_at};
use shardtool_format::checksum::{combine, crc32c};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

/// Bytes of a part of an upload, except the last one.
pub const PART_BYTES: usize = 8 << 20;

/// Parts that are under way at once.
const AT_ONCE: usize = 3;

/// Called with the id of an upload before its first part is sent.
pub type Journal = Box<dyn FnOnce(&str) -> io::Result<()> + Send>;

/// An object that is written in parts of [`PART_BYTES`], of which a few are under way at once. It exists once
/// [`Upload::finish`] has returned. Dropping it before removes the parts. One that fits into a single part becomes a single
/// request.
pub struct Upload {
    url: Url,
    journal: Option<Journal>,
    /// The part that is being filled.
    buffer: Vec<u8>,
    begun: Option<Begun>,
    /// The object that the upload will replace.
    before: Option<Description>,
    under_way: VecDeque<Receiver<io::Result<String>>>,
    done: Vec<String>,
    bytes: u64,
    /// The CRC32C of each part that was sent, and of all together.
    crcs: Vec<u32>,
    crc: u32,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("url", &self.url).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Upload {
    /// Starts an upload, without a request. An existing object is replaced.
    ///
    /// # Errors
    /// `InvalidInput` if the path is not a URL; `Unsupported` without the feature `remote`.
    pub fn new(path: &Path) -> io::Result<Self> {
        let url = Url::parse(path)?;
        request::check_supported()?;
        Ok(Upload {
            url,
            journal: None,
            buffer: vec![],
            begun: None,
            before: None,
            under_way: VecDeque::new(),
            done: vec![],
            bytes: 0,
            crcs: vec![],
            crc: 0,
        })
    }

    /// As [`Upload::new`]. If the object has several parts, `journal` is called before the first one is sent, so that
    /// [`abort_upload`] can remove the parts of a process that was killed.
    ///
    /// # Errors
    /// As [`Upload::new`].
    pub fn with_journal(path: &Path, journal: Journal) -> io::Result<Self> {
        let mut upload = Upload::new(path)?;
        upload.journal = Some(journal);
        Ok(upload)
    }

    /// Appends bytes. Waits while too many parts are under way.
    ///
    /// # Errors
    /// As [`crate::put`], for this part or an earlier one.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.buffer.capacity() == 0 {
                self.buffer.reserve_exact(PART_BYTES);
            }
            let now = bytes.len().min(PART_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(&bytes[..now]);
            bytes = &bytes[now..];
            if self.buffer.len() == PART_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Sends the part in the buffer, once fewer than the most are under way.
    fn send(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.buffer);
        let Begun { id, takes_crc } = self.begin()?;
        if self.under_way.len() >= AT_ONCE {
            self.wait_for_oldest()?;
        }
        self.bytes += bytes.len() as u64;
        let crc = crc32c(&bytes);
        self.crc = combine(self.crc, crc, bytes.len() as u64);
        self.crcs.push(crc);
        let number = self.done.len() + self.under_way.len();
        // The store also checks each part against the signature of its request.
        let part = Part { id, number, bytes: Payload::from(bytes), crc: takes_crc.then_some(crc) };
        let (sender, receiver) = sync_channel(1);
        request::send_then(self.url.clone(), part, move |result| drop(sender.send(result)));
        self.under_way.push_back(receiver);
        Ok(())
    }

    fn begin(&mut self) -> io::Result<Begun> {
        if let Some(begun) = &self.begun {
            return Ok(begun.clone());
        }
        self.before = describe(&self.url)?;
        let begun = self.begun.insert(request::send(&self.url, Begin::default())?).clone();
        if let Some(journal) = self.journal.take() {
            journal(&begun.id)?;
        }
        Ok(begun)
    }

    fn wait_for_oldest(&mut self) -> io::Result<()> {
        let Some(oldest) = self.under_way.pop_front() else { return Ok(()) };
        let part = oldest.recv().unwrap_or_else(|_| Err(io::Error::other("the upload was cancelled")))?;
        self.done.push(part);
        Ok(())
    }

    /// Waits for all parts and puts the object in place.
    ///
    /// # Errors
    /// As [`crate::put`].
    pub fn finish(mut self) -> io::Result<()> {
        if self.begun.is_none() {
            let bytes = Payload::from(std::mem::take(&mut self.buffer));
            return put_at(&self.url, bytes, Condition::Always).map(drop);
        }
        if !self.buffer.is_empty() {
            self.send()?;
        }
        while !self.under_way.is_empty() {
            self.wait_for_oldest()?;
        }
        let Some(Begun { id, takes_crc }) = self.begun.clone() else { return Ok(()) };
        let crcs = takes_crc.then(|| (std::mem::take(&mut self.crcs), self.crc));
        let joined = request::send(&self.url, Join { id, parts: std::mem::take(&mut self.done), crcs });
        if let Err(error) = joined {
            // The answer to a request that succeeded may be lost; a repeated request then fails.
            let now = describe(&self.url).ok().flatten();
            if now == self.before || now.is_none_or(|now| now.len != self.bytes) {
                return Err(match error.kind() {
                    ErrorKind::NotFound => io::Error::other("the store does not know the upload any more"),
                    _ => error,
                });
            }
        }
        self.begun = None;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(Begun { id, .. }) = self.begun.take() {
            // Parts that arrive after the upload has ended would be kept.
            while let Some(part) = self.under_way.pop_front() {
                let _ = part.recv_timeout(clean_up_limit());
            }
            // The store would keep the parts, and bill them.
            let _ = abort(&self.url, id);
        }
    }
}

/// Returns the state of an object, to find out whether a lost answer was a good one; `None` if it does not exist.
fn describe(url: &Url) -> io::Result<Option<Description>> {
    match request::send(url, Describe { checksum: false }) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Ends the upload of an object that a killed process began, and removes its parts. `id` is what its [`Journal`] received.
/// Ignores an upload that the store does not know, and credentials that may not end uploads.
///
/// # Errors
/// As [`crate::put`].
pub fn abort_upload(path: &Path, id: &str) -> io::Result<()> {
    abort(&Url::parse(path)?, id.to_owned())
}

fn abort(url: &Url, id: String) -> io::Result<()> {
    match request::send(url, Abort { id, limit: clean_up_limit() }) {
        // It has ended, or the credentials allow uploads only. Some servers say the latter of uploads they do not know.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(()),
        aborted => aborted,
    }
}
