//! JPEG for datasets: the bytes of an image in, pixels out, decoding no more of it than is needed.
//!
//! ```text
//! segments → reader ─┬─ unstuffed → entropy (sequential) ──┐
//!                    └─ coefficients (progression) ────┴─ idct → upsample → color → pixels
//! ```
//!
//! | module | its part |
//! |---|---|
//! | `segments`, `header`, `reader`, `standard` | markers, and what they say; limits |
//! | `huffman` | code tables, and a memory of them |
//! | `unstuffed` | entropy-coded data without byte stuffing |
//! | `entropy`, `stream`, `hot` | the inner loop: one or two segments at a time, known or speculative_mcus |
//! | `skip` | passing over blocks: the loop for which only their places count |
//! | `sequential` | a scan's MCUs over restart markers, from any known state |
//! | `pass` | passing over MCUs: where each begins, in three places at once |
//! | `ahead` | a scan whose only known state is its start: rounds with a guess ahead |
//! | [`entries`] | entry points: finding them, their bytes, entering by them |
//! | `coefficients`, `progression` | images of several scans |
//! | `plan` | what a rectangle and a scale need |
//! | `idct`, `upsample`, `color` | transforms, with `*_avx2` and `idct_avx512` beside them |
//! | `writer` | rows of blocks to rows of pixels |
//! | `strips` | images of one sequential scan, a few rows at a time |
//! | `decoder` | all of these, in reused memory |
//! | `relayout`, `symbols`, `codes` | the same coefficients in the best plan |
//!
//! `unsafe` is confined to `entropy` and its parts, where the loop's bounds are checked once a block, to `skip`, where they
//! are checked before a number of rounds, to `*_avx2` and `*_avx512`, and to the calls of these.

mod bitstream;
mod decoder;
pub mod entries;
mod entropy;
mod error;
mod huffman;
mod markers;
mod multiscan;
mod pixels;
mod plan;
mod sequential;
mod transcode;
mod transform;

pub use decoder::{DecodePath, Decoder, Outcome};
pub use error::{Damage, Error, Feature, Result};
pub use markers::header::{Color, Component, Header, Limits, Process};
pub use plan::{Rect, Request, Scale};
pub use transcode::{Transcoded, transcode};
