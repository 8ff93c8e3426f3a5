//! Which events of a run are reported to the user: logged as warnings, and returned to the consumer.

use crate::error::BadSample;
use crate::units::Bytes;
use shardtool_format::Chain;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An event that did not end the run and that the user should know about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// The consumer keeps batches while it takes more, and the loader allocated one beyond the default budget. Reported
    /// once per loader.
    Growth {
        /// Batches that the consumer holds.
        held: usize,
        /// Bytes of a batch.
        batch: u64,
    },
    /// The first bad sample of a run.
    BadSample(Arc<BadSample>),
    /// At the end of an epoch: more bad samples were found since the last notice.
    BadSamples {
        /// The epoch that ended, from 0.
        epoch: u64,
        /// Bad samples of the run, each counted once.
        count: u64,
    },
    /// The run continued at the start of an epoch from a state that names another batch transform, or another exchange of mirrored
    /// points; or from one that names no batch transform, while the run has one.
    OtherTransform {
        /// The member of the state, which is the option's name.
        member: &'static str,
        /// The checksum in the state.
        state: Option<u32>,
        /// Checksum and description of what the run has, or `none`.
        current: String,
    },
    /// An array has an element for each pixel of its image, and does not follow the steps that move the image's pixels. Reported once
    /// for each feature.
    UnmovedArray {
        /// The feature.
        feature: String,
        /// Width and height of the image.
        size: (u32, u32),
    },
    /// The file with decoded images cannot be written any more, as when the disk is full.
    DecodedCacheFailed {
        /// Its folder.
        path: PathBuf,
        /// The system's error.
        problem: String,
    },
    /// The cache on a local disk cannot be written any more, as when the disk is full.
    CacheFailed {
        /// Its folder.
        path: PathBuf,
        /// The system's error.
        problem: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Growth { held, batch } => write!(
                f,
                "the consumer keeps {held} batches while it takes more, but the plan assumes one: allocating others \
                 of {} each, up to 90 % of the memory limit (release batches sooner, or set a memory budget to get an \
                 error instead)",
                Bytes(*batch)
            ),
            Notice::BadSample(sample) => write!(f, "bad sample: {}; further ones are counted", Chain(&**sample)),
            Notice::BadSamples { epoch, count } => {
                write!(f, "{count} bad samples in this run by the end of epoch {epoch}")
            }
            Notice::OtherTransform { member, state: Some(state), current } => write!(
                f,
                "the resume state names another `{member}` ({state:08x}) than this run has ({current}), which the epoch that \
                 begins takes: give the loader that of the state if this was not intended"
            ),
            Notice::OtherTransform { member, state: None, current } => write!(
                f,
                "the resume state names no `{member}`, and this run has one ({current}): the run that saved the state had none, \
                 or was of a version that did not name it"
            ),
            Notice::UnmovedArray { feature, size: (width, height) } => write!(
                f,
                "array `{feature}` has the size of its image, {height} x {width} (height x width), but does not follow the steps that \
                 crop, flip or resize the image: say which dimensions are its height and width (`image_axes`), unless it has \
                 nothing to do with the pixels"
            ),
            Notice::DecodedCacheFailed { path, problem } => write!(
                f,
                "decoded images cannot be written to a file in {} ({problem}): the run continues, and decodes images that it \
                 does not hold again",
                path.display()
            ),
            Notice::CacheFailed { path, problem } => write!(
                f,
                "the cache in {} cannot be written ({problem}): the run continues, and reads from the store what the cache does \
                 not hold",
                path.display()
            ),
        }
    }
}

/// Notices that the consumer has not taken yet.
#[derive(Default)]
pub(crate) struct Notices {
    list: Mutex<Vec<Notice>>,
    growth_reported: AtomicBool,
}

impl Notices {
    pub(crate) fn add(&self, notice: Notice) {
        if let Notice::Growth { .. } = notice
            && self.growth_reported.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        // Each replica of a group resumes from the state.
        if let Notice::OtherTransform { member, .. } = &notice
            && list.iter().any(|n| matches!(n, Notice::OtherTransform { member: other, .. } if other == member))
        {
            return;
        }
        log::warn!("{notice}");
        list.push(notice);
    }

    pub(crate) fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
