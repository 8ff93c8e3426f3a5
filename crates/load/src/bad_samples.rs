//! Bad samples: their errors, how the loader handles them, and the list of those found.

use crate::error::{Error, Result};
use crate::splits::RecordLocation;
use shardtool_format::Damage;
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What happens to a sample that cannot be read or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnBad {
    /// The run ends with [`Error::BadSample`].
    Error,
    /// Its row is masked: zero and not valid. Other rows are unaffected.
    Mask,
    /// A substitute fills its row. It depends only on seed, epoch and position; the batch has the substitute's id.
    Substitute,
}

/// A sample that could not be read or decoded.
#[derive(Debug)]
#[non_exhaustive]
pub struct BadSample {
    /// Its id, which counts through the loader's splits.
    pub id: u64,
    /// Its shard.
    pub shard: PathBuf,
    /// Record in the shard, from 0.
    pub record: u64,
    /// Its key, if it can be read and is not empty.
    pub key: Option<Vec<u8>>,
    /// What is wrong with it.
    pub error: SampleError,
}

impl BadSample {
    /// Returns the sample if the error concerns only it. Otherwise returns the error, which ends the run.
    pub(crate) fn new(id: u64, at: &RecordLocation<'_>, error: SampleError) -> std::result::Result<Self, Error> {
        match error {
            SampleError::Read(error) if !error.is_bad_sample() => Err(error.into()),
            error => {
                let key = at.open().ok().and_then(|shard| shard.key(at.row).ok().map(|key| key.into_owned()));
                let key = key.filter(|key| !key.is_empty());
                Ok(BadSample { id, shard: at.path(), record: at.row, key, error })
            }
        }
    }
}

impl fmt::Display for BadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of {} (id {}", self.record, self.shard.display(), self.id)?;
        if let Some(key) = &self.key {
            write!(f, ", key `{}`", String::from_utf8_lossy(key))?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for BadSample {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// What is wrong with a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The record is damaged.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// The image cannot be decoded.
    #[error(transparent)]
    Decode(#[from] shardtool_decode::Error),
    /// The record has no image.
    #[error("the record has no image")]
    NoImage,
    /// The record has no label map.
    #[error("feature `{feature}` of the record has no label map")]
    NoMask {
        /// The feature.
        feature: String,
    },
    /// The label map cannot be decoded.
    #[error("label map `{feature}`")]
    Mask {
        /// The feature.
        feature: String,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// The record lacks one of its further images.
    #[error("feature `{feature}` of the record has no image")]
    NoFurtherImage {
        /// The feature.
        feature: String,
    },
    /// A further image cannot be decoded, or has another size than the record's image.
    #[error("image `{feature}`")]
    FurtherImage {
        /// The feature.
        feature: String,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// Raw pixels without a size.
    #[error("pixels are stored raw, and feature `{feature}` does not give their size")]
    RawSize {
        /// The feature that is missing or out of range.
        feature: &'static str,
    },
    /// A feature has a different number of values than its column takes.
    #[error("feature `{feature}` holds {found} values, but its column takes {expected}")]
    Values {
        /// The feature.
        feature: String,
        /// Values that the column takes.
        expected: usize,
        /// Values of the record.
        found: usize,
    },
    /// A feature has a different type than in the manifest.
    #[error("feature `{feature}` has a different type than in the manifest")]
    Type {
        /// The feature.
        feature: String,
    },
}

impl SampleError {
    /// Returns the kind of damage, as named in `format-spec.md`. Returns `None` if no stored byte is damaged: a record
    /// without an image, or a feature of another type or count than the loader needs, is not damage.
    pub fn damage(&self) -> Option<Damage> {
        match self {
            SampleError::Read(error) => error.damage(),
            SampleError::Decode(error)
            | SampleError::Mask { source: error, .. }
            | SampleError::FurtherImage { source: error, .. } => Some(error.damage()),
            SampleError::RawSize { .. } => Some(Damage::PixelsLength),
            SampleError::NoImage
            | SampleError::NoMask { .. }
            | SampleError::NoFurtherImage { .. }
            | SampleError::Values { .. }
            | SampleError::Type { .. } => None,
        }
    }
}

/// The bad samples of a run, each listed once.
#[derive(Debug)]
pub(crate) struct BadSamples {
    /// The run ends when there are more bad samples than this.
    max: u64,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    ids: HashSet<u64>,
    samples: Vec<Arc<BadSample>>,
}

impl BadSamples {
    pub(crate) fn new(max: u64) -> Self {
        BadSamples { max, found: Mutex::default() }
    }

    /// Adds a sample, and returns whether it is the first one.
    ///
    /// # Errors
    /// [`Error::TooManyBad`].
    pub(crate) fn add(&self, sample: BadSample) -> Result<(Arc<BadSample>, bool)> {
        let sample = Arc::new(sample);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.ids.insert(sample.id) {
            return Ok((sample, false));
        }
        found.samples.push(sample.clone());
        let count = found.samples.len() as u64;
        if count > self.max {
            return Err(Error::TooManyBad { found: count, allowed: self.max, last: sample });
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
