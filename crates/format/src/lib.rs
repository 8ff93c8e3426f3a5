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

// Checked here because every crate that touches files depends on this one. Memory limits, mapping and durable renames are
// written for Linux; other processors are not tested.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("shardtool supports Linux on x86-64 and aarch64 only");

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
