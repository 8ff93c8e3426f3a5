//! Images of several scans: progressive ones, and sequential ones with a scan for each component.
//!
//! | file | part |
//! |---|---|
//! | `coefficients` | the coefficients of a whole image, and the scans that they come from |
//! | `scan_decoder` | the state of one scan, and the blocks of a sequential one |
//! | `progressive` | the order of progressive scans, and their blocks |

pub(crate) mod coefficients;
mod progressive;
mod scan_decoder;
