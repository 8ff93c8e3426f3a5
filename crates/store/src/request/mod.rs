//! Requests: each verb goes through the policies in this order, and then to the store.
//!
//! | module | contents |
//! |---|---|
//! | `limit` | few verbs are under way at once |
//! | `retry` | repeats a request that failed, until it succeeds, fails for good, or the time is over |
//! | `hedge` | makes a second request if the first one lasts unusually long |
//! | `count` | counts requests and bytes |
//! | `checksums` | gives requests the checksums that they carry |
//!
//! A policy is a [`Store`] in front of another one, and knows nothing of single verbs. Here, verbs get from synchronous callers
//! to the runtime, and their failures become errors.

mod checksums;
mod count;
mod hedge;
mod limit;
mod retry;

use crate::client::{Client, Purpose};
use crate::failure::chain;
use crate::process::Process;
use crate::stats::{self, add};
use crate::url::{Service, Url};
use crate::verb::requests::{Request, Store};
use checksums::Checksums;
use count::Count;
use hedge::Hedge;
use limit::Limit;
use object_store::path::Path as Key;
use retry::Retry;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::sync::mpsc;
use std::time::Instant;

/// Returns an error if this build has no clients: never here.
pub(crate) fn check_supported() -> io::Result<()> {
    Ok(())
}

/// Carries a verb out, and waits for its end.
pub(crate) fn send<V: Request>(url: &Url, verb: V) -> io::Result<V::Answer> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let since = Instant::now();
    send_then(url.clone(), verb, move |result| drop(sender.send(result)));
    // The verb has a time limit, and its callback is called whatever happens to it.
    let result = receiver.recv().unwrap_or_else(|_| Err(cancelled()));
    add(&stats::WAITED_NANOS, since.elapsed().as_nanos() as u64);
    result
}

/// As [`send`], but returns at once, and calls `done` on a thread of the runtime.
pub(crate) fn send_then<V: Request>(url: Url, verb: V, done: impl FnOnce(io::Result<V::Answer>) + Send + 'static) {
    let mut done = Callback { done: Some(done), result: PhantomData };
    let process = match Process::current() {
        Ok(process) => process,
        Err(error) => return done.call(Err(error)),
    };
    process.spawn(async move {
        let result = match target(process, &url, V::PURPOSE) {
            Ok((client, key)) => {
                let store = Hedge(Count(Checksums(client)));
                let store = Limit { permits: &process.permits, inner: Retry { url: &url, inner: store } };
                store.call(&key, &verb).await.map_err(|failure| failure.into_io(&url))
            }
            Err(error) => Err(error),
        };
        done.call(result);
    });
}

/// Runs what may wait, for a disk say, outside of the threads that receive answers.
pub(crate) fn in_background(work: impl FnOnce() + Send + 'static) {
    match Process::current() {
        Ok(process) => process.spawn_blocking(work),
        Err(_) => work(),
    }
}

/// A callback that is called exactly once: with an error if the verb ends without a result, as after a panic.
struct Callback<T, D: FnOnce(io::Result<T>)> {
    done: Option<D>,
    result: PhantomData<fn(T)>,
}

impl<T, D: FnOnce(io::Result<T>)> Callback<T, D> {
    fn call(&mut self, result: io::Result<T>) {
        if let Some(done) = self.done.take() {
            done(result);
        }
    }
}

impl<T, D: FnOnce(io::Result<T>)> Drop for Callback<T, D> {
    fn drop(&mut self) {
        self.call(Err(cancelled()));
    }
}

fn cancelled() -> io::Error {
    io::Error::other("the request was cancelled")
}

/// Returns the client for a URL, and the key of its object.
fn target(process: &'static Process, url: &Url, purpose: Purpose) -> io::Result<(Client, Key)> {
    let key = match url.service {
        // The characters of a key are taken as they are, those of a web page's URL are encoded already.
        Service::Http => Key::from_url_path(&url.key),
        _ => Key::parse(&url.key),
    };
    let key = key.map_err(|error| io::Error::new(ErrorKind::InvalidInput, chain(&error)))?;
    Ok((process.client(url, purpose)?, key))
}
