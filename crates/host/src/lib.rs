//! Memory of the machine: the limits on this process's memory, and memory that threads share, admitted in bytes.
//!
//! | module | contents |
//! |---|---|
//! | [`system_memory`] | the limits on this process's memory: the host's, and those of cgroups |
//! | [`scratch_pool`] | admission of memory in bytes |

pub mod scratch_pool;
pub mod system_memory;

/// Locks, which a model checker replaces.
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex};
}
