//! One sequential scan as a sequence of MCUs: restart markers, DC prediction, scan-only decoding and speculation.
//!
//! | file | part |
//! |---|---|
//! | `layout` | the blocks of an MCU, and their tables |
//! | `parameters` | how much is decoded at a time, and when to speculate |
//! | `state` | the position in a scan, and restart markers |
//! | `run` | decoding of runs of MCUs over restart markers, several in one loop |
//! | `speculation` | decoding in three places at once, two of them estimated |
//! | `scan_only` | skipping MCUs, in three places at once |
//! | `workspace` | the buffers that all of these reuse |

pub(crate) mod layout;
pub(crate) mod parameters;
pub(crate) mod run;
pub(crate) mod scan_only;
pub(crate) mod speculation;
pub(crate) mod state;
pub(crate) mod workspace;
