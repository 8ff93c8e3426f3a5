//! Parses and writes the files of a dataset, which `format-spec.md` describes. Functions take byte slices and return
//! structs; nothing in this crate opens a file.
//!
//! | module | contents |
//! |---|---|
//! | `error` | [`Error`]: why bytes are not what the format says, and where |
//! | [`checksum`] | CRC32C, plain and masked |
//! | [`frame`] | TFRecord framing: length, its CRC, data, its CRC |
//! | `compression` | [`Compression`]: how a whole file is compressed, detected from its first bytes |
//! | `wire` | the protobuf wire format |
//! | [`example`] | `tf.train.Example`, read as views and written in canonical form; `tf.train.SequenceExample`, read |
//! | [`array`](mod@array) | the layout of arrays in chunks |
//! | `boxes` | [`BoxFormat`], [`BoxUnit`]: how the boxes of objects are written; [`LARGEST_FRACTION`] |
//! | [`names`] | conventional feature names, file names, splits and keys |
//! | [`index`] | the columnar index of a shard |
//! | [`manifest`] | `dataset.json` |
//! | `damage` | [`Damage`]: the names of damage |
//! | `deleted_rows` | [`DeletedRows`]: the bitmap of the deleted rows of a shard |
//! | `chain` | [`Chain`]: an error with its sources, as text |
//! | `printable` | [`printable()`]: text from files without control characters |
#![forbid(unsafe_code)]

// Checked here because every crate that touches files depends on this one. The modules `system` of the crates are written for
// these systems; other processors are not tested.
#[cfg(not(all(
    target_endian = "little",
    any(
        all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")),
        all(target_os = "macos", target_arch = "aarch64")
    )
)))]
compile_error!("shardtool supports Linux on x86-64 and aarch64, and macOS on Apple silicon only");

pub mod array;
mod boxes;
mod chain;
pub mod checksum;
mod compression;
mod damage;
mod deleted_rows;
mod error;
pub mod example;
pub mod frame;
pub mod index;
pub mod manifest;
pub mod names;
mod printable;
mod wire;

pub use boxes::{BoxFormat, BoxUnit, LARGEST_FRACTION};
pub use chain::Chain;
pub use compression::Compression;
pub use damage::{Damage, UnknownDamage};
pub use deleted_rows::DeletedRows;
pub use error::{Error, Result};
pub use printable::printable;
