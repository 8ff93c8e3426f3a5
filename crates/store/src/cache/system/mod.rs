//! How the blocks of one object are stored on a disk, which depends on the operating system.
//!
//! | module | contents |
//! |---|---|
//! | `linux` | a sparse file |
//! | `portable` | a folder with a file for each block |

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
mod portable;

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
pub(super) use linux::*;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
pub(super) use portable::*;
