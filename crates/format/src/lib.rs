//! First in the data's way: bytes of a dataset's files ⇄ structs. Slices go in, structs come out; nothing here opens a
//! file. `format-spec.md` explains the bytes.
//!
//! | module | what it turns into structs |
//! |---|---|
//! | [`checksum`] | CRC32C, plain and masked |
//! | [`frame`] | TFRecord framing: length, its CRC, data, its CRC |
//! | [`example`] | `tf.train.Example`, read as views and written canonically |
//! | [`names`] | conventional feature names, file names |
//! | [`index`] | the columnar index beside each shard |
//! | [`manifest`] | `dataset.json` |
//! | [`Chain`] | an error with its sources, as text |
#![forbid(unsafe_code)]

mod chain;
pub mod checksum;
mod error;
pub mod example;
pub mod frame;
pub mod index;
pub mod manifest;
pub mod names;
mod wire;

pub use chain::Chain;
pub use error::{Error, Result};
