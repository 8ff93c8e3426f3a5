//! A JPEG decoder for datasets: decodes no more of an image than a request needs, to the pixels of libjpeg-turbo.
//!
//! ```text
//! markers ─┬─ bitstream → entropy → sequential ─┬─ transform → pixels
//!          └─ bitstream → multiscan ────────────┘
//! ```
//!
//! | module | part |
//! |---|---|
//! | `error`, `cpu`, `buffer` | errors, detection of instruction sets, growing of buffers |
//! | `markers`, `image` | marker segments: headers, tables, metadata; and an image with its parsed header |
//! | `request`, `plan` | what a caller wants, and which blocks and samples that needs |
//! | `huffman` | lookup tables, and caches of them |
//! | `bitstream` | entropy-coded data without byte stuffing |
//! | `entropy` | the inner loops: Huffman codes to coefficients, or to the boundaries of blocks |
//! | `sequential` | one sequential scan: restart markers, DC prediction, speculation, scan-only decoding |
//! | `multiscan` | images of several scans (progressive), all scans together, a row of MCUs at a time |
//! | `blocks`, `transform` | rows of coefficient blocks, and inverse transforms of them to samples |
//! | `pixels` | upsampling and colour conversion |
//! | `entry_points` | starts inside a scan, kept in an index: their bytes, finding, validating, using them |
//! | `decoder` | [`Decoder`]: all of these in reused memory |
//! | [`entries`] | the public functions for entry points, and their documentation |
//! | `transcode` | [`transcode()`]: the same coefficients in one scan with optimal codes |
//! | `strip` | [`strip_metadata`]: the same image without metadata; whether it has a position or a thumbnail |
//!
//! Modules import only from modules above them in this table; `multiscan` uses `blocks`. Only documentation links point down.
//! Inside the folders there are two circles, of vector code and its portable counterpart: `pixels::sse41`, `avx2`, `avx512` and `neon`
//! use the constants of `pixels::color`, which calls them, and likewise the `transform` modules call each other by methods of tokens.
//!
//! `unsafe` is confined to `entropy`, whose modules state the invariants of their unchecked accesses, and to the vector code in
//! `transform` and `pixels`, which is entered by methods of tokens that prove detection (`cpu`).
//!
//! The environment variable `SHARDTOOL_SIMD` limits the vector instructions ([`Decoder::new`]).

mod bitstream;
mod blocks;
mod buffer;
mod cpu;
mod decoder;
pub mod entries;
mod entropy;
mod entry_points;
mod error;
mod huffman;
mod image;
mod markers;
mod multiscan;
mod pixels;
mod plan;
mod request;
mod sequential;
mod strip;
mod transcode;
mod transform;

pub use decoder::{DecodePath, Decoder, Outcome};
pub use error::{Damage, Error, Feature, Result};
pub use image::ParsedImage;
pub use markers::header::{Color, Component, Header, Limits, Process};
pub use markers::metadata::{Metadata, exif_of_orientation};
pub use markers::probe::{FrameInfo, complete_len};
pub use request::{Channels, Rect, Request, Scale};
pub use strip::{embedded_metadata, metadata_ranges, strip_metadata};
pub use transcode::{Transcoded, transcode};
