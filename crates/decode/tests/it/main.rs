//! Tests of headers, decoding and transforms, in one program.

#[path = "../made/split_mix.rs"]
mod split_mix;

mod array;
mod conversion;
mod decoding;
mod headers;
mod label_map;
mod newer_formats;
mod operations;
mod region;
mod strip;
mod tiff;
mod transform;
