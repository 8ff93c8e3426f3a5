//! Requests in a build without clients: each one is an error.

use crate::url::Url;
use crate::verb::Verb;
use std::io;

/// Returns an error: this build has no clients.
pub(crate) fn check_supported() -> io::Result<()> {
    unsupported()
}

pub(crate) fn send<V: Verb>(_: &Url, _: V) -> io::Result<V::Answer> {
    unsupported()
}

pub(crate) fn send_then<V: Verb>(url: Url, verb: V, done: impl FnOnce(io::Result<V::Answer>) + Send + 'static) {
    done(send(&url, verb));
}

pub(crate) fn in_background(work: impl FnOnce() + Send + 'static) {
    work();
}

fn unsupported<T>() -> io::Result<T> {
    let problem = "this build cannot read from object stores (Cargo feature `stores`)";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
}
