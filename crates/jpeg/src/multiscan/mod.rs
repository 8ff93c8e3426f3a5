//! Images of several scans: progressive ones, and sequential ones with a scan for each component.

pub(crate) mod coefficients;
mod progressive;
