//! Bytes of any image format in, rows of RGB out. In the data's way this crate stands between the record that `read`
//! hands over and the batch that `load` fills; `pack` uses it to look at images before it stores them.
//!
//! | module | its one job |
//! |---|---|
//! | `format` | which format the bytes are, told by content |
//! | `limits` | how large an image may be, checked before anything is allocated |
//! | `markers` | the JPEG marker chain: header, completeness |
//! | `probe` | size, channels and orientation from the header alone |
//! | `complete` | whether the bytes reach the end that their format announces |
//! | `pixels` | `[H, W, 3]` u8 RGB, owned, borrowed, mutable |
//! | `transform` | the steps that make a sample, as plain data; the geometry they give an image |
//! | `random_crop` | which part of an image a training step sees |
//! | `geometry` | which stored pixels become which pixels of the result |
//! | `orientation` | the eight ways to turn and mirror an image |
//! | `window` | what was decoded of an image, at which size and by which way |
//! | `decode` | bytes of any format to RGB, all of it or what a geometry needs |
//! | `jpeg` | the one place where JPEG bytes become pixels |
//! | `entries` | JPEG entry points of an index: found, and checked |
//! | `foreign` | isolates decoders not written here: a panic inside one is an error of that image |
//! | `header` | headers of AVIF, HEIF, JPEG XL and JPEG 2000, in every build |
//! | `jxl`, `jp2` | JPEG XL and JPEG 2000, where built with the features of these names |
//! | `library` | all other formats, and rare JPEGs, through the `image` crate |
//! | `tiff` | TIFF, as Pillow reads it |
//! | `raw` | pixels stored as they are, or as one zstd frame |
//! | `resize` | pixels of one size from pixels of another |
//! | `nearest` | the nearest pixel, for masks |
//! | `taps`, `bilinear`, `bilinear_avx2` | the weights along an axis, and the two passes that use them |
//! | `vectors` | loads and stores of AVX2 vectors |
//! | `labels` | label maps (segmentation masks): one number a pixel, through the geometry of their image |
//! | `memory` | what a sample takes of memory, told before it is decoded |
//! | `output`, `normalize`, `normalize_avx2` | pixels to normalised numbers of a type and layout |
//! | `apply` | geometry and pixels to their place in the batch |
//! | `encode` | RGB to JPEG, for `pack` |
//! | `error` | everything that can be wrong with an image or a request |
//!
//! `unsafe` is confined to `bilinear_avx2`, `normalize_avx2` and `vectors`.
#![deny(unsafe_code)]

mod apply;
mod bilinear;
#[cfg(target_arch = "x86_64")]
mod bilinear_avx2;
mod complete;
mod decode;
mod encode;
mod entries;
mod error;
mod foreign;
mod format;
mod geometry;
mod header;
#[cfg(feature = "jp2")]
mod jp2;
mod jpeg;
#[cfg(feature = "jxl")]
mod jxl;
mod labels;
mod library;
mod limits;
mod markers;
mod memory;
mod nearest;
mod normalize;
#[cfg(target_arch = "x86_64")]
mod normalize_avx2;
mod orientation;
mod output;
mod pixels;
mod probe;
mod random_crop;
mod raw;
mod resize;
mod taps;
mod tiff;
mod transform;
#[cfg(target_arch = "x86_64")]
mod vectors;
mod window;

pub use apply::{ResizeScratch, apply_geometry};
pub use complete::check_complete;
pub use decode::{DecodeOptions, Decoder, decode, decode_into};
pub use encode::encode_jpeg;
pub use entries::{check_entries, entry_points};
pub use error::{Error, LimitKind, TransformError};
pub use foreign::silence_decoder_panics;
pub use format::{Format, sniff};
pub use geometry::{Geometry, Rect};
pub use labels::LabelMap;
pub use limits::Limits;
pub use memory::{scratch_bound, scratch_bytes};
pub use normalize::Normalizer;
pub use orientation::Orientation;
pub use output::{Dtype, Layout, Output, OutputError};
pub use pixels::{Pixels, PixelsMut, PixelsRef};
pub use probe::{ImageInfo, probe};
pub use raw::{decode_raw, encode_raw_zstd};
pub use resize::{Filter, reduce_longer, reduce_shorter, resize};
pub use transform::{Pipeline, PixelFn, Random, Transform};
pub use window::{DecodePath, DecodedRegion, RegionOptions};
