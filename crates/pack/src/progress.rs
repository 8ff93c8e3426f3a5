//! How a run reports its progress, and how it is stopped.

use crate::Error;
use std::ops::ControlFlow;

/// Told how a run gets on; may end it. All methods do nothing by default.
pub trait Progress: Sync {
    /// How much there is to do: images, and bytes of their files.
    fn total(&self, images: u64, bytes: u64) {
        let _ = (images, bytes);
    }
    /// So many more images are done, rejected ones included, of so many bytes.
    fn done(&self, images: u64, bytes: u64) {
        let _ = (images, bytes);
    }
    /// A step of the commit is durable. `Break` ends the run with [`Error::Stopped`]; the same call goes on from there.
    fn after(&self, step: Step) -> ControlFlow<()> {
        let _ = step;
        ControlFlow::Continue(())
    }
}

/// No progress is reported.
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
    /// The list of rejects is in place, if there are any.
    Rejected,
    /// The manifest names the split: it exists.
    Manifest,
    /// The plan is kept under its name for complete splits, and not yet removed under its own.
    Kept,
}

/// Tells of a step.
///
/// # Errors
/// [`Error::Stopped`] if that is to be the last.
pub(crate) fn after(progress: &dyn Progress, step: Step) -> Result<(), Error> {
    match progress.after(step) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}
