//! What is read and built ahead of the consumer.

use super::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Batches built ahead of the consumer, when their number is not given.
pub(crate) const DEFAULT_BATCHES: usize = 2;

/// What is read and built ahead of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Prefetch {
    /// Batches built ahead, at least 1. Default: 2, and more within the memory if the consumer waits after the queue was full.
    #[schemars(range(min = 1), extend("x-positional" = true))]
    pub batches: Option<usize>,
    /// Bytes of records to read ahead of the workers into the page cache, at most a quarter of the available memory beyond the
    /// budget; 0 turns it off. From an object store, bytes that are requested ahead, which are part of the budget: at most a
    /// quarter of a given one.
    #[serde(deserialize_with = "size::bytes")]
    #[schemars(schema_with = "size::schema", extend("default" = "64MiB"))]
    pub read_ahead: u64,
    /// In an object store, records are requested together if at most this many bytes lie between them.
    #[serde(deserialize_with = "size::bytes")]
    #[schemars(schema_with = "size::schema", extend("default" = "64KiB"))]
    pub fetch_gap: u64,
    /// Bytes of a request of several records in an object store, at most.
    #[serde(deserialize_with = "size::bytes")]
    #[schemars(schema_with = "size::schema", extend("default" = "8MiB"))]
    pub fetch_size: u64,
    /// What happens to the pages of a record in the page cache once its sample is made: `"keep"`, or `"release"` for a dataset
    /// much larger than memory on a machine whose other files should stay cached.
    pub page_cache: PageCache,
    /// Seconds to wait when the consumer holds every batch that memory allows, before that is an error.
    #[serde(with = "seconds")]
    #[schemars(with = "f64", range(min = 0.0))]
    pub starve_after: Duration,
}

/// What happens to the pages of records in the page cache. They are not memory of the process, and the system reclaims
/// them when memory is short, but the statistics of a container may include them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PageCache {
    /// Keeps them, for other ranks and the next epoch.
    #[default]
    Keep,
    /// Releases them at once: for a dataset much larger than memory, on a machine whose other files should stay cached.
    Release,
}

impl Default for Prefetch {
    fn default() -> Self {
        Prefetch {
            batches: None,
            read_ahead: 64 << 20,
            fetch_gap: 64 << 10,
            fetch_size: 8 << 20,
            page_cache: PageCache::Keep,
            starve_after: Duration::from_secs(10),
        }
    }
}

/// A duration as a number of seconds.
mod seconds {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(duration.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}
