//! What files, mappings and faults are on the operating system.
//!
//! | module | contents |
//! |---|---|
//! | `file_systems` | which file systems are local |
//! | `linux` | Linux: advice about the page cache, codes of faults |
//! | `portable` | other systems: what every Unix has |

mod file_systems;
#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
mod portable;

pub(crate) use file_systems::is_local;
#[cfg(all(target_os = "linux", not(shardtool_portable_unix)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(shardtool_portable_unix))))]
pub(crate) use portable::*;
