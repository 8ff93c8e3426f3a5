//! Bytes of objects in stores, by URL: S3 (`s3://BUCKET/KEY`), Google Cloud Storage (`gs://`), Azure (`az://`), HDFS
//! (`hdfs://`) and web servers (`http://`, `https://`). The interface is synchronous.
//!
//! | module | contents |
//! |---|---|
//! | `url` | which paths are URLs, and what they name |
//! | `object` | one object: its length, and ranges of its bytes |
//! | `cache` | objects on a local disk, shared by the processes of a machine |
//! | `window` | reads one object from its start to its end, with the next bytes under way |
//! | `write` | writes an object, at once or in parts, also on condition that it has not changed |
//! | `upload` | the parts of an upload |
//! | `versions` | requests that read and write objects with their versions |
//! | `request` | one request: time limit, retries, a second request for a straggler |
//! | `process` | the runtime and the clients of a process |
//! | `checksum` | the CRC32C that an upload carries, and that a store keeps of an object |
//! | `client` | clients from environment variables and credential files |
//! | `profile` | settings of S3 from the files of `~/.aws` |
//! | `hdfs` | HDFS, with what its client lacks of an object store |
//! | `stats` | requests, bytes, retries |
//!
//! A URL travels as a [`std::path::Path`], so that every function that takes the path of a dataset also takes its URL.
//! [`is_url`] distinguishes the two.
//!
//! # Time
//! No call blocks longer than the limit ([`time_limit`], 60 s, or `SHARDTOOL_STORE_TIMEOUT` seconds). Within it, requests
//! that fail are repeated; the error names the URL and what failed last.
//!
//! # Processes
//! The runtime starts with the first request, never in a constructor. Runtime and clients belong to a process id: a child
//! after `fork` starts its own, and never uses or drops those of its parent.
//!
//! Feature `remote` (off by default) brings the clients, feature `hdfs` also that of HDFS. Without them, URLs are recognised and
//! refused.

pub mod cache;
#[cfg(feature = "remote")]
mod checksum;
#[cfg(feature = "remote")]
mod client;
#[cfg(feature = "hdfs")]
mod hdfs;
mod object;
#[cfg(feature = "remote")]
mod process;
#[cfg(feature = "remote")]
mod profile;
#[cfg(feature = "remote")]
mod request;
mod stats;
#[cfg(feature = "remote")]
mod upload;
mod url;
#[cfg(feature = "remote")]
mod versions;
mod window;
mod write;

pub use object::{Head, Object, read_whole};
pub use stats::{Stats, count_refetched, stats};
pub use url::{Url, is_url, lacks_slash, local_path};
pub use window::Window;
pub use write::{
    Condition, Existing, Found, Journal, PART_BYTES, Upload, Version, abort_upload, clean_up, find, is_empty,
    is_writable, list, list_beginning, put, put_if, remove, unfinished,
};

use std::sync::OnceLock;
use std::time::Duration;

/// How often bytes of a store are requested again if they fail a check, at most.
pub const REFETCHES: usize = 3;

/// Returns how long one operation may take, with all its retries: 60 s, or `SHARDTOOL_STORE_TIMEOUT` (whole seconds, at
/// least 1).
pub fn time_limit() -> Duration {
    static LIMIT: OnceLock<Duration> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let given = std::env::var("SHARDTOOL_STORE_TIMEOUT").ok().and_then(|text| text.parse().ok());
        Duration::from_secs(given.filter(|seconds| *seconds > 0).unwrap_or(60))
    })
}
