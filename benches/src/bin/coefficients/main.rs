//! Compares Huffman-coded JPEGs with their coefficients in other layouts and coders, which are made for vector instructions: bytes,
//! and the time of the entropy decoder for the whole image, a crop, and an eighth of the size. `docs/numbers.md` says what
//! follows from it.
//!
//! `cargo run --release -p shardtool-benches --bin coefficients -- FOLDER [ROUNDS] [IMAGES]`, on x86-64, by CPU time of one thread;
//! `SHARDTOOL_SIMD=avx2` or `portable` limits the instructions of all candidates.
//!
//! | module | responsibility |
//! |---|---|
//! | `baseline` | the coefficients of a JPEG |
//! | `layout`, `simd` | their division into streams of bytes, and putting blocks together, also with vectors |
//! | `rans`, `huffman` | coders of bytes |
//! | `coded` | images in a layout and a coder |
//! | `level` | the instructions that are used |

#[cfg(target_arch = "x86_64")]
mod baseline;
#[cfg(target_arch = "x86_64")]
mod coded;
#[cfg(target_arch = "x86_64")]
mod huffman;
#[cfg(target_arch = "x86_64")]
mod layout;
#[cfg(target_arch = "x86_64")]
mod level;
#[cfg(target_arch = "x86_64")]
mod rans;
#[cfg(target_arch = "x86_64")]
mod simd;
#[cfg(target_arch = "x86_64")]
mod study;

#[cfg(target_arch = "x86_64")]
fn main() {
    study::run();
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("skipped: the study has vector code for x86-64 only");
}
