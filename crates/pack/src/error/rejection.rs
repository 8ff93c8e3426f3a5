//! Inputs that are rejected, and records that are not exported.

use super::{Error, Reason};
use std::io;

/// An input that cannot be packed, or a record that cannot be exported, and why. As an error it displays the input, and
/// its source is the reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("{input}")]
pub struct Rejection {
    /// The path from the source's root, or the key.
    pub input: String,
    /// The reason.
    #[source]
    pub reason: Reason,
}

impl Rejection {
    /// Rejects an input. All rejections are made here.
    ///
    /// # Errors
    /// [`Error::Io`] if not the input is at fault but the system ([`fault`]).
    pub(crate) fn new(input: String, reason: Reason) -> Result<Self, Error> {
        match reason.system_code() {
            Some(code) => {
                Err(Error::Io { action: "read", path: input.into(), source: io::Error::from_raw_os_error(code) })
            }
            None => Ok(Rejection { input, reason }),
        }
    }
}
