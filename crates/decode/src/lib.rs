//! Bytes of any image format in, rows of RGB out. In the data's way this crate stands between the record that `read`
//! hands over and the batch that `load` fills; `pack` uses it to look at images before it stores them.
//!
//! | module | its one job |
//! |---|---|
//! | [`format`] | which format the bytes are, told by content |
//! | [`limits`] | how large an image may be, checked before anything is allocated |
//! | [`mod@probe`] | size, channels and orientation from the header alone |
//! | [`markers`] | the JPEG marker chain: header, completeness |
//! | [`complete`] | whether the bytes reach the end that their format announces |
//! | [`error`] | everything that can be wrong with an image or a request |
#![forbid(unsafe_code)]

pub mod complete;
pub mod error;
pub mod format;
pub mod limits;
mod markers;
pub mod probe;

pub use complete::check_complete;
pub use error::{Error, LimitKind};
pub use format::{Format, sniff};
pub use limits::Limits;
pub use probe::{Info, probe};
