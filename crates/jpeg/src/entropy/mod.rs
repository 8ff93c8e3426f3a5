//! Entropy decoding of one sequential scan: the inner loops.
//!
//! | file | part |
//! |---|---|
//! | `block` | decoded blocks, and the tables for them |
//! | `block_stream` | a run of blocks: its position, and where it ends |
//! | `decode` | decodes several runs of blocks to coefficients, some of them speculatively if their start is unknown |
//! | `lookup`, `rounds_x86_64` | the loop of `decode`, and the same in assembly |
//! | `scanner` | scan-only decoding: finds where blocks begin, and skips their coefficients |

pub(crate) mod block;
pub(crate) mod block_stream;
pub(crate) mod decode;
mod lookup;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod rounds_x86_64;
pub(crate) mod scanner;

/// The most blocks of an MCU (T.81, B.2.3).
pub(crate) const MAX_MCU_BLOCKS: usize = 10;
