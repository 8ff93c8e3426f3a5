//! Entropy decoding of one sequential scan: the inner loops.
//!
//! | file | part |
//! |---|---|
//! | `job` | a run of blocks to decode |
//! | `decode` | decodes one or two runs of blocks to coefficients, the second one speculatively if its start is unknown |
//! | `block_stream` | a run of blocks: what happens between blocks, and where it ends |
//! | `symbol_state` | the state that each symbol changes, kept in registers |
//! | `scanner` | scan-only decoding: finds where blocks begin, and skips their coefficients |

mod block_stream;
pub(crate) mod decode;
pub(crate) mod job;
pub(crate) mod scanner;
mod symbol_state;

/// The most blocks of an MCU (T.81, B.2.3).
pub(crate) const MAX_MCU_BLOCKS: usize = 10;
