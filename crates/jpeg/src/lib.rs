//! A JPEG decoder for datasets: decodes no more of an image than a request needs, to the pixels of libjpeg-turbo.
//!
//! ```text
//! markers ─┬─ bitstream → entropy → sequential ─┬─ transform → pixels
//!          └─ bitstream → multiscan ────────────┘
//! ```
//!
//! | module | part |
//! |---|---|
//! | `markers` | marker segments: headers, tables, metadata |
//! | `request`, `plan` | what a caller wants, and which blocks and samples that needs |
//! | `huffman` | lookup tables, and caches of them |
//! | `bitstream` | entropy-coded data without byte stuffing |
//! | `entropy` | the inner loops: Huffman codes to coefficients, or to the boundaries of blocks |
//! | `sequential` | one sequential scan: restart markers, DC prediction, speculation, scan-only decoding |
//! | `multiscan` | images of several scans (progressive), by way of the whole image's coefficients |
//! | `blocks`, `transform` | coefficients, and inverse transforms of them to samples |
//! | `pixels` | upsampling and colour conversion |
//! | `entry_points` | starts inside a scan, kept in an index: their bytes, finding, validating, using them |
//! | `decoder` | [`Decoder`]: all of these in reused memory |
//! | [`entries`] | the public functions for entry points, and their documentation |
//! | `transcode` | [`transcode()`]: the same coefficients in one scan with optimal codes |
//!
//! `error`, `cpu` (detection of instruction sets) and `buffer` serve all of them. Imports point up this table, with one
//! exception: `bitstream::bit_reader` and `huffman` are one step of `multiscan`, and `markers::standard` is used by all.
//!
//! `unsafe` is confined to `entropy`, whose modules state the invariants of their unchecked accesses, and to the `*_avx2` and
//! `*_avx512` modules. The latter are entered by methods of tokens that prove detection (`cpu`).

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
mod transcode;
mod transform;

pub use decoder::{DecodePath, Decoder, Outcome};
pub use error::{Damage, Error, Feature, Result};
pub use image::ParsedImage;
pub use markers::header::{Color, Component, Header, Limits, Process};
pub use markers::probe::{FrameInfo, complete_len};
pub use request::{Rect, Request, Scale};
pub use transcode::{Transcoded, transcode};
