//! Finds out what a store does with conditions, before anything is packed.

use crate::Error;
use crate::error::DestinationError;
use shardtool_store::{Condition, Version};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

/// What the names of objects end with that find out what a store does, and how often that is tried.
const PROBE: &str = ".probe";
const PROBES: u32 = 3;

/// Finds out, with a separate object, whether a store compares versions when an object is created and when it is
/// replaced. Returns the time by its clock.
///
/// # Errors
/// [`DestinationError::NoConditions`], [`Error::Io`].
pub(super) fn probe(folder: &Path, lock: &str, conditional: bool) -> Result<SystemTime, Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let path = folder.join(format!("{lock}.{}{PROBE}", crate::commit::unique()));
        let probed = probe_with(&path, conditional);
        let gone = |error: &io::Error| matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound);
        match probed {
            Ok(now) => {
                shardtool_store::remove(&path).map_err(Error::io("remove", &path))?;
                return Ok(now);
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                let _ = shardtool_store::clean_up(&path);
                let destination = folder.to_owned();
                return Err(Error::Destination(DestinationError::NoConditions { destination, source: error }));
            }
            // Another process that has just taken the claim may have removed the object.
            Err(error) if gone(&error) && tries < PROBES => {}
            Err(error) => return Err(Error::io("write", folder)(error)),
        }
    }
}

/// Returns whether an object of this name was made by [`probe`].
pub(super) fn is_probe(name: &str, lock: &str) -> bool {
    name.strip_prefix(lock).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(PROBE))
}

fn probe_with(path: &Path, conditional: bool) -> io::Result<SystemTime> {
    let ignored = |what: &str| Err(io::Error::new(ErrorKind::Unsupported, what.to_owned()));
    let refused = |result: io::Result<Version>, what: &str| match result {
        Ok(_) => ignored(what),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    };
    let put = |text: &str, condition: Condition<'_>| shardtool_store::put_if(path, text.into(), condition);
    if conditional {
        let first = put("1", Condition::Absent)?;
        refused(put("2", Condition::Absent), "it replaces an object that should only be created")?;
        put("3", Condition::Unchanged(&first))?;
        refused(put("4", Condition::Unchanged(&first)), "it replaces an object that has changed")?;
    } else {
        put("1", Condition::Always)?;
    }
    let found = shardtool_store::find(path, 16)?;
    found.map(|found| found.modified).ok_or_else(|| ErrorKind::InvalidData.into())
}
