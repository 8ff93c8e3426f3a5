//! Which errors make a sample bad, and the list of bad samples.

use crate::error::{BadSample, Error, Result, SampleError};
use crate::splits::RecordLocation;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Returns the bad sample if the error concerns only it.
///
/// # Errors
/// The error that ends the run, if it does not.
pub(crate) fn bad_sample(id: u64, at: &RecordLocation<'_>, error: SampleError) -> Result<BadSample> {
    match error {
        SampleError::Read(error) if !error.is_bad_sample() => Err(error.into()),
        error => {
            let key = at.open().ok().and_then(|shard| shard.key(at.row).ok().map(|key| key.into_owned()));
            let key = key.filter(|key| !key.is_empty());
            Ok(BadSample { id, shard: at.path(), record: at.row, key, error })
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
