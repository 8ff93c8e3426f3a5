//! The machine: its name, the limits on this process's memory, memory that threads share, admitted in bytes, and vector instructions.
//!
//! | module | contents |
//! |---|---|
//! | [`system_memory`] | the limits on this process's memory: the host's, and those of cgroups |
//! | `limit` | a limit on memory, and how much of it is in use |
//! | [`system`] | what the operating system says, on Linux and elsewhere |
//! | [`scratch_pool`] | admission of memory in bytes |
//! | [`simd`] | the vector instructions that this process may use |

mod limit;
pub mod scratch_pool;
pub mod simd;
pub mod system;
pub mod system_memory;

/// Locks, which a model checker replaces.
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex};
}
