//! Images of several scans: progressive ones, and sequential ones with a scan for each component.
//!
//! All scans are decoded together, a row of MCUs at a time, so that the coefficients of one row are in memory, not those of
//! the image, and rows below those needed are not decoded.
//!
//! | file | part |
//! |---|---|
//! | `progress` | the permitted order of scans |
//! | `coefficient_row` | the coefficients of a row of MCUs, and which of them are not 0 |
//! | `band` | AC coefficients of a block: of sequential scans, and of first and refining progressive ones (T.81, G.1.2) |
//! | `smoothing` | estimates of coefficients that are missing, from the blocks around |
//! | `tables` | the Huffman tables of all scans |
//! | `scan` | a scan: its position, and what it adds to a row |
//! | `fill` | what libjpeg makes of damaged data |
//! | `decoder` | all scans of an image |

mod band;
pub(crate) mod coefficient_row;
pub(crate) mod decoder;
mod fill;
pub(crate) mod progress;
mod scan;
mod smoothing;
mod tables;
