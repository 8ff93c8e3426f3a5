//! The parts of an upload.

use crate::checksum::{Sent, send};
use crate::client::{Client, Purpose};
use crate::request::{self, Failure};
use crate::url::Url;
use crate::versions::{self, State};
use crate::write::{CLEAN_UP, Condition, Journal};
use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{MultipartId, PutPayload};
use shardtool_format::checksum::{combine, crc32c};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};

/// Parts that are under way at once.
const AT_ONCE: usize = 3;

/// An upload in parts. One that fits into a single part becomes a single request.
pub(crate) struct Parts {
    url: Url,
    journal: Option<Journal>,
    begun: Option<Begun>,
    under_way: VecDeque<Receiver<io::Result<PartId>>>,
    done: Vec<PartId>,
    bytes: u64,
    /// The CRC32C of each part that was sent, and of all together.
    crcs: Vec<u32>,
    crc: u32,
}

/// An upload that the store knows.
struct Begun {
    id: MultipartId,
    /// Whether it takes the CRC32C of parts and object.
    takes_crc: bool,
    /// The object that it will replace.
    before: Option<State>,
}

impl Parts {
    pub(crate) fn new(url: Url, journal: Option<Journal>) -> Self {
        Parts { url, journal, begun: None, under_way: VecDeque::new(), done: vec![], bytes: 0, crcs: vec![], crc: 0 }
    }

    fn begin(&mut self) -> io::Result<(MultipartId, bool)> {
        if let Some(begun) = &self.begun {
            return Ok((begun.id.clone(), begun.takes_crc));
        }
        let before = versions::state(&self.url)?;
        let (id, takes_crc) = request::blocking(self.url.clone(), Purpose::Write, |client, key| async move {
            let takes_crc = Arc::new(AtomicBool::new(false));
            let sent = Sent::Upload(takes_crc.clone());
            let id = send(Some(sent), uploads(&client)?.create_multipart(&key)).await?;
            Ok((id, takes_crc.load(Ordering::Relaxed)))
        })?;
        self.begun = Some(Begun { id: id.clone(), takes_crc, before });
        if let Some(journal) = self.journal.take() {
            journal(&id)?;
        }
        Ok((id, takes_crc))
    }

    /// Sends a part, once fewer than the most are under way.
    pub(crate) fn send(&mut self, part: Vec<u8>) -> io::Result<()> {
        let (id, takes_crc) = self.begin()?;
        if self.under_way.len() >= AT_ONCE {
            self.first()?;
        }
        self.bytes += part.len() as u64;
        let crc = crc32c(&part);
        self.crc = combine(self.crc, crc, part.len() as u64);
        self.crcs.push(crc);
        let number = self.done.len() + self.under_way.len();
        let part = Bytes::from(part);
        // The store also checks each part against the signature of its request.
        let sent = takes_crc.then_some(Sent::Part(crc));
        let request = move |client: Client, key: Key| {
            let (id, part, sent) = (id.clone(), PutPayload::from(part.clone()), sent.clone());
            async move {
                let uploads = uploads(&client)?;
                Ok(send(sent, uploads.put_part(&key, &id, number, part)).await?)
            }
        };
        let (sender, receiver) = sync_channel(1);
        request::start(self.url.clone(), Purpose::Write, request, move |result| drop(sender.send(result)));
        self.under_way.push_back(receiver);
        Ok(())
    }

    /// Waits for the oldest part.
    fn first(&mut self) -> io::Result<()> {
        let Some(first) = self.under_way.pop_front() else { return Ok(()) };
        let part = first.recv().unwrap_or_else(|_| Err(io::Error::other("the upload was cancelled")))?;
        self.done.push(part);
        Ok(())
    }

    pub(crate) fn finish(&mut self, last: Vec<u8>) -> io::Result<()> {
        if self.begun.is_none() {
            return versions::put(&self.url, last, Condition::Always).map(drop);
        }
        if !last.is_empty() {
            self.send(last)?;
        }
        while !self.under_way.is_empty() {
            self.first()?;
        }
        let Some(Begun { id, takes_crc, before }) = &self.begun else { return Ok(()) };
        let (id, parts) = (id.clone(), std::mem::take(&mut self.done));
        let sent = takes_crc.then(|| Sent::Join { parts: std::mem::take(&mut self.crcs), object: self.crc });
        let completed = request::blocking(self.url.clone(), Purpose::Write, move |client, key| {
            let (id, parts, sent) = (id.clone(), parts.clone(), sent.clone());
            async move {
                let uploads = uploads(&client)?;
                Ok(send(sent, uploads.complete_multipart(&key, &id, parts)).await.map(drop)?)
            }
        });
        if let Err(error) = completed {
            // The answer to a request that succeeded may be lost; a repeated request then fails.
            let now = versions::state(&self.url).ok().flatten();
            if now == *before || now.is_none_or(|now| now.len != self.bytes) {
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

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(Begun { id, .. }) = self.begun.take() {
            // Parts that arrive after the upload has ended would be kept.
            while let Some(part) = self.under_way.pop_front() {
                let _ = part.recv_timeout(CLEAN_UP);
            }
            // The store would keep the parts, and bill them.
            let _ = abort(&self.url, id);
        }
    }
}

/// Ends an upload, and removes its parts.
pub(crate) fn abort(url: &Url, id: MultipartId) -> io::Result<()> {
    let aborted = request::blocking_within(url.clone(), Purpose::Write, CLEAN_UP, move |client, key| {
        let id = id.clone();
        async move { Ok(uploads(&client)?.abort_multipart(&key, &id).await?) }
    });
    match aborted {
        // It has ended, or the credentials allow uploads only. Some servers say the latter of uploads they do not know.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(()),
        aborted => aborted,
    }
}

fn uploads(client: &Client) -> Result<Arc<dyn MultipartStore>, Failure> {
    client.uploads.clone().ok_or(Failure::ReadOnly)
}
