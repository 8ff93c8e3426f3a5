//! JPEG for datasets: the bytes of an image in, pixels out, decoding no more of it than is needed.
//!
//! ```text
//! segments → reader ─┬─ plain → entropy (sequential) ──┐
//!                    └─ coefficients (progression) ────┴─ idct → upsample → color → pixels
//! ```
//!
//! | module | its part |
//! |---|---|
//! | `segments`, `header`, `reader`, `standard` | markers, and what they say; limits |
//! | `huffman` | code tables, and a memory of them |
//! | `plain` | entropy-coded data without byte stuffing |
//! | `entropy`, `stream`, `hot` | the inner loop: one or two segments at a time, known or guessed |
//! | `skip` | passing over blocks: the loop for which only their places count |
//! | `sequential` | a scan's MCUs over restart markers, from any known state |
//! | `pass` | passing over MCUs: where each begins, in three places at once |
//! | `ahead` | a scan whose only known state is its start: rounds with a guess ahead |
//! | [`entries`] | entry points: finding them, their bytes, entering by them |
//! | `coefficients`, `progression` | images of several scans |
//! | `layout` | what a rectangle and a scale need |
//! | `idct`, `upsample`, `color` | transforms, with `*_avx2` and `idct_avx512` beside them |
//! | `raster` | rows of blocks to rows of pixels |
//! | `strips` | images of one sequential scan, a few rows at a time |
//! | `decoder` | all of these, in reused memory |
//! | `relayout`, `symbols`, `codes` | the same coefficients in the best layout |
//!
//! `unsafe` is confined to `entropy` and its parts, where the loop's bounds are checked once a block, to `skip`, where they
//! are checked before a number of rounds, to `*_avx2` and `*_avx512`, and to the calls of these.

mod ahead;
mod codes;
mod coefficients;
mod color;
mod decoder;
pub mod entries;
mod entropy;
mod error;
mod header;
mod hot;
mod huffman;
mod idct;
#[cfg(target_arch = "x86_64")]
mod idct_avx2;
#[cfg(target_arch = "x86_64")]
mod idct_avx512;
mod layout;
mod pass;
#[cfg(target_arch = "x86_64")]
mod pixels_avx2;
mod plain;
mod progression;
mod raster;
mod reader;
#[cfg(target_arch = "x86_64")]
mod reduced_avx2;
mod relayout;
mod segments;
mod sequential;
mod skip;
mod standard;
mod stream;
mod strips;
mod symbols;
mod upsample;

pub use decoder::{Decoder, Outcome, Path};
pub use error::{Damage, Error, Feature, Result};
pub use header::{Color, Component, Header, Limits, Process};
pub use layout::{Rect, Request, Scale};
pub use relayout::{Relaid, relayout};
