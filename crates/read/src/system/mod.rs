//! What files, mappings and faults are on the operating system.
//!
//! | module | contents |
//! |---|---|
//! | `linux` | Linux: file systems by their numbers, advice about the page cache, codes of faults |
//! | `portable` | other systems: what every Unix has, and the file systems of macOS |

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
mod portable;

#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
pub(crate) use portable::*;
