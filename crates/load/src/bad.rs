//! Bad samples: what is wrong with each, and the list of them.

use crate::error::{Error, Result};
use shardtool_format::{Chain, Damage};
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What happens to a sample that cannot be read or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnBad {
    /// The run ends with [`Error::BadSample`].
    Error,
    /// Its row is zero and not valid; nothing shifts.
    Mask,
    /// Another sample stands in its row, chosen by (seed, epoch, position) alone; the batch carries that one's id.
    Substitute,
}

/// A sample that could not be read or decoded.
#[derive(Debug)]
pub struct BadSample {
    /// Its id in the source's splits, counted through them.
    pub id: u64,
    /// Its shard.
    pub shard: PathBuf,
    /// Record in the shard, from 0.
    pub record: u64,
    /// Its key, where it can still be told.
    pub key: Option<Vec<u8>>,
    /// What is wrong with it.
    pub fault: Fault,
}

impl fmt::Display for BadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of {} (id {}", self.record, self.shard.display(), self.id)?;
        if let Some(key) = &self.key {
            write!(f, ", key `{}`", String::from_utf8_lossy(key))?;
        }
        write!(f, "): {}", Chain(&self.fault))
    }
}

/// What is wrong with a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The record.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// The image.
    #[error(transparent)]
    Decode(#[from] shardtool_decode::Error),
    /// The record has no image.
    #[error("it has no image")]
    NoImage,
    /// The record has no label map.
    #[error("`{feature}` holds no label map")]
    NoMask {
        /// The feature.
        feature: String,
    },
    /// Its label map.
    #[error("`{feature}`: {source}")]
    Mask {
        /// The feature.
        feature: String,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// Raw pixels without their size.
    #[error("its pixels are stored raw, but `{feature}` does not say how many")]
    RawSize {
        /// The feature that is missing or out of range.
        feature: &'static str,
    },
    /// A feature that does not hold what its column needs.
    #[error("feature `{feature}` holds {found} values, its column takes {expected}")]
    Values {
        /// The feature.
        feature: String,
        /// Values that the column takes.
        expected: usize,
        /// Values there.
        found: usize,
    },
    /// A feature of another type than the manifest says.
    #[error("feature `{feature}` is not of the type that the dataset says")]
    Type {
        /// The feature.
        feature: String,
    },
}

impl Fault {
    /// Returns the kind of damage, as named in `format-spec.md`. Returns `None` if no stored byte is damaged: a record
    /// without an image, or a feature of another type or count than the loader needs, is not damage.
    pub fn damage(&self) -> Option<Damage> {
        match self {
            Fault::Read(error) => error.damage(),
            Fault::Decode(error) | Fault::Mask { source: error, .. } => Some(error.damage()),
            Fault::RawSize { .. } => Some(Damage::PixelsLength),
            Fault::NoImage | Fault::NoMask { .. } | Fault::Values { .. } | Fault::Type { .. } => None,
        }
    }
}

/// The bad samples of a run, each once, however often it is met.
#[derive(Debug)]
pub(crate) struct BadList {
    allowed: u64,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    ids: HashSet<u64>,
    samples: Vec<Arc<BadSample>>,
}

impl BadList {
    pub(crate) fn new(allowed: u64) -> Self {
        BadList { allowed, found: Mutex::default() }
    }

    /// Adds a sample, and returns whether it is the first one; errs where it is one too many.
    pub(crate) fn add(&self, sample: BadSample) -> Result<(Arc<BadSample>, bool)> {
        let sample = Arc::new(sample);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.ids.insert(sample.id) {
            return Ok((sample, false));
        }
        found.samples.push(sample.clone());
        let count = found.samples.len() as u64;
        if count > self.allowed {
            return Err(Error::TooManyBad { found: count, allowed: self.allowed, last: sample });
        }
        Ok((sample, count == 1))
    }

    pub(crate) fn count(&self) -> u64 {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).samples.len() as u64
    }

    pub(crate) fn list(&self) -> Vec<Arc<BadSample>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).samples.clone()
    }
}
