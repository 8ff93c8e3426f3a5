//! The parts of an upload.

use crate::client::Purpose;
use crate::process::Process;
use crate::request::{Failure, prepare};
use crate::stats::{self, add};
use crate::url::Url;
use crate::write::Existing;
use crate::{request, time_limit};
use object_store::{MultipartUpload, PutPayload};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};

/// Parts that are under way at once.
const AT_ONCE: usize = 3;

/// An upload in parts. One that fits into a single part becomes a single request.
pub(crate) struct Parts {
    url: Url,
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: VecDeque<Receiver<io::Result<()>>>,
}

impl Parts {
    pub(crate) fn new(url: Url) -> Self {
        Parts { url, upload: None, under_way: VecDeque::new() }
    }

    /// Sends a part, once fewer than the most are under way.
    pub(crate) fn send(&mut self, part: Vec<u8>) -> io::Result<()> {
        let process = Process::current()?;
        if self.upload.is_none() {
            let (store, key) = prepare(process, &self.url, Purpose::Write)?;
            let begun = async move { store.put_multipart_opts(&key, Default::default()).await };
            self.upload = Some(wait(process, &self.url, begun)?);
        }
        if self.under_way.len() >= AT_ONCE {
            self.first()?;
        }
        let upload = self.upload.as_mut().expect("set above");
        // The store checks each part against the signature of its request.
        let sent = upload.put_part(PutPayload::from(part));
        self.under_way.push_back(start(process, &self.url, sent));
        Ok(())
    }

    /// Waits for the oldest part.
    fn first(&mut self) -> io::Result<()> {
        let Some(first) = self.under_way.pop_front() else { return Ok(()) };
        first.recv().unwrap_or_else(|_| Err(io::Error::other("the upload was cancelled")))
    }

    pub(crate) fn finish(&mut self, last: Vec<u8>) -> io::Result<()> {
        if self.upload.is_none() {
            return request::put(&self.url, last, Existing::Replace);
        }
        if !last.is_empty() {
            self.send(last)?;
        }
        while !self.under_way.is_empty() {
            self.first()?;
        }
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        let process = Process::current()?;
        let done = async move {
            let result = upload.complete().await.map(drop);
            if result.is_err() {
                let _ = upload.abort().await;
            }
            result
        };
        wait(process, &self.url, done)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take()
            && let Ok(process) = Process::current()
        {
            // The store would keep the parts, and bill them.
            let _ = wait(process, &self.url, async move { upload.abort().await });
        }
    }
}

/// Runs one request of an upload, within the time limit. (The client repeats it if it fails.)
fn start<T: Send + 'static>(
    process: &'static Process,
    url: &Url,
    request: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> Receiver<io::Result<T>> {
    let (sender, receiver) = sync_channel(1);
    let url = url.clone();
    add(&stats::REQUESTS, 1);
    process.spawn(async move {
        let result = match tokio::time::timeout(time_limit(), request).await {
            Ok(result) => result.map_err(|error| Failure::from(error).into_io(&url)),
            Err(_) => {
                let limit = time_limit().as_secs();
                let text = format!("no answer within {limit} s (SHARDTOOL_STORE_TIMEOUT)");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
        };
        let _ = sender.send(result);
    });
    receiver
}

fn wait<T: Send + 'static>(
    process: &'static Process,
    url: &Url,
    request: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> io::Result<T> {
    start(process, url, request).recv().unwrap_or_else(|_| Err(io::Error::other("the upload was cancelled")))
}
