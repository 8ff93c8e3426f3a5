//! Progress of a run, and stopping it.

use crate::{DestinationError, Error};
use std::ops::ControlFlow;
use std::time::Duration;

/// Reports nothing, and stops nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Receives the progress of a run, and may stop it. The default methods do nothing.
pub trait Progress: Sync {
    /// Called with the amount of work: number of images, and bytes of their files.
    fn total(&self, images: u64, bytes: u64) {
        let _ = (images, bytes);
    }
    /// Called with each increment: images done, including rejected ones, and bytes of their files.
    fn done(&self, images: u64, bytes: u64) {
        let _ = (images, bytes);
    }
    /// Receives a step of the commit that is durable. `Break` ends the run with [`Error::Stopped`]; the same call
    /// resumes from there.
    fn after(&self, step: Step) -> ControlFlow<()> {
        let _ = step;
        ControlFlow::Continue(())
    }
    /// Called about every 250 ms while the run waits for another process ([`Options::wait`](crate::Options::wait)): how long
    /// it has waited, and which process it is.
    fn waiting(&self, waited: Duration, holder: &DestinationError) {
        let _ = (waited, holder);
    }
    /// Returns whether to end the run. [`pack`](crate::pack()) calls it for each sample, also while archives are surveyed, and
    /// [`export`](crate::export()) after each shard; other functions do not. If it returns true, the run ends with
    /// [`Error::Stopped`] once the samples in work are done; the same call of `pack` resumes after the last finished shard.
    fn stopped(&self) -> bool {
        false
    }
}

/// Ignores progress.
impl Progress for () {}

/// A durable step of the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The plan file says that old files are being removed.
    Clearing,
    /// The manifest no longer names the old split.
    Cleared,
    /// The plan file is in place.
    Plan,
    /// A shard is in place.
    Shard,
    /// Its index is in place: the shard is finished.
    Index,
    /// The list of rejected inputs is in place, if there are any.
    Rejected,
    /// The manifest names the split: it exists.
    Manifest,
    /// The plan is kept under its final name, and not yet removed under its temporary one.
    Kept,
    /// Nothing of an unfinished run is left: the pack, reshard, merge, export or extraction is finished.
    Finished,
    /// A damaged shard's good records are in place, in a new file.
    Salvaged,
    /// All files of a reshard, merge, export or extraction are complete, and are now moved to their names.
    Moving,
    /// One of them, or a folder of them, is in place.
    Moved,
}

/// Fails if `progress` stops the run.
///
/// # Errors
/// [`Error::Stopped`].
pub(crate) fn check(progress: &dyn Progress) -> Result<(), Error> {
    if progress.stopped() { Err(Error::Stopped) } else { Ok(()) }
}

/// Reports a durable step.
///
/// # Errors
/// [`Error::Stopped`] if `progress` stops the run here.
pub(crate) fn after(progress: &dyn Progress, step: Step) -> Result<(), Error> {
    match progress.after(step) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}
