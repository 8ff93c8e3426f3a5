//! Waits for another process that packs the same split, such as another rank of the same program.

use crate::error::DestinationError;
use crate::{Error, Options, Progress, progress};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a lock or claim is tried.
const PAUSE: Duration = Duration::from_millis(250);

/// Calls `take`, which takes a lock or a claim, until no other process has it, for at most [`Options::wait`]. With
/// [`Options::force`] it does not wait: it would replace what the other process writes.
///
/// # Errors
/// Those of `take`; [`Error::Stopped`] if `progress` stops the run.
pub(crate) fn until_free<T>(
    options: &Options,
    progress: &dyn Progress,
    take: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    let (start, mut waited) = (Instant::now(), Duration::ZERO);
    loop {
        let error = match take() {
            Err(Error::Destination(error @ (DestinationError::Locked { .. } | DestinationError::Claimed { .. }))) => {
                error
            }
            taken => return taken,
        };
        if options.force || waited >= options.wait {
            return Err(error.into());
        }
        progress.waiting(waited, &error);
        progress::check(progress)?;
        sleep(PAUSE.min(options.wait - waited));
        waited = start.elapsed();
    }
}
