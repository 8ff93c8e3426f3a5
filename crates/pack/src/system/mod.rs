//! What durable files and processes are on the operating system.
//!
//! | module | contents |
//! |---|---|
//! | `linux` | Linux: `syncfs`, and processes by `/proc` |
//! | `portable` | other systems: one `fsync` for each file, and processes by the locks that they hold |

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
mod portable;

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
pub(crate) use portable::*;
