//! What the memory of batches is on the operating system.
//!
//! | module | contents |
//! |---|---|
//! | `linux` | huge pages on request |
//! | `portable` | pages as the system chooses |

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
mod portable;

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
pub(crate) use portable::*;
