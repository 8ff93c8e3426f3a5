//! Bytes of objects in stores, by URL: S3 (`s3://BUCKET/KEY`), Google Cloud Storage (`gs://`), Azure (`az://`), HDFS
//! (`hdfs://`), the Hugging Face Hub (`hf://`) and web servers (`http://`, `https://`). The interface is synchronous.
//!
//! | module | contents |
//! |---|---|
//! | `url` | which paths are URLs, and what they name |
//! | `repository` | which dataset of the Hugging Face Hub a URL names |
//! | `object` | one object: its length, and ranges of its bytes |
//! | `window` | reads one object from its start to its end, with the next bytes under way |
//! | `cache` | objects on a local disk, shared by the processes of a machine |
//! | `write` | writes and removes whole objects, also on condition that they have not changed, and lists them |
//! | `upload` | writes an object in parts |
//! | `request` | carries verbs out: limits, retries, second requests, counts, checksums (without clients: `unsupported`) |
//! | `stats` | requests, bytes, retries |
//! | `process` | the runtime and the clients of a process |
//! | `verb` | what stores do, each with one request |
//! | `version` | versions of objects, and conditions on them |
//! | `failure` | why a request failed, whether it is repeated, and as which error it ends |
//! | `client` | clients from environment variables and credential files |
//! | `checksum` | the CRC32C that an upload carries, and that a store keeps of an object |
//! | `new_file` | the names of files of HDFS that are being written |
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
#[cfg(feature = "remote")]
mod failure;
mod new_file;
mod object;
#[cfg(feature = "remote")]
mod process;
mod repository;
#[cfg(feature = "remote")]
mod request;
#[cfg(not(feature = "remote"))]
#[path = "unsupported.rs"]
mod request;
mod stats;
mod upload;
mod url;
mod verb;
mod version;
mod window;
mod write;

pub use object::{Compose, Done, Head, Object, read_whole};
pub use stats::{Stats, count_refetched, stats};
pub use upload::{Journal, PART_BYTES, Upload, abort_upload};
pub use url::{is_url, lacks_slash, local_path};
pub use version::{Condition, Found, Version};
pub use window::Window;
pub use write::{
    Existing, clean_up, find, is_empty, is_listed, is_writable, keeps_versions, list, list_beginning, list_below,
    list_with_times, pinned, put, put_if, remove, unfinished,
};

use std::sync::OnceLock;
use std::time::Duration;

/// Returns the paths that a page of a list of the Hugging Face Hub names in a folder; `None` if it is refused. For fuzzing.
#[cfg(feature = "remote")]
#[doc(hidden)]
pub fn listed_by_hub(page: &[u8], folder: &str) -> Option<Vec<String>> {
    client::hub::listed(page, folder).ok()
}

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
