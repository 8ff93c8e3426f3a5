//! Decodes images of any format to `[H, W, 3]` u8 RGB, or to grey or 16 bits, and crops, resizes, orients and normalises them for
//! a batch.
//!
//! `shardtool-read` delivers records, this crate turns their images into pixels, and `shardtool-load` assembles batches.
//! `shardtool-pack` reads image headers with it before it stores images.
//!
//! ```
//! use shardtool_decode::{DecodeOptions, Format, Limits, decode, probe};
//!
//! // A bitmap of 2x1 pixels: blue and green, stored as BGR.
//! let mut bmp = b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x18\0".to_vec();
//! bmp.extend([0; 24]);
//! bmp.extend([255, 0, 0, 0, 255, 0, 0, 0]);
//!
//! let info = probe(&bmp, &Limits::default())?;
//! assert_eq!((info.format, info.width, info.height), (Format::Bmp, 2, 1));
//!
//! let pixels = decode(&bmp, &DecodeOptions::default())?;
//! assert_eq!(pixels.data, [0, 0, 255, 0, 255, 0]);
//! # Ok::<(), shardtool_decode::Error>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | `format`, `sniff` | formats, and their detection from content |
//! | `limits` | how large an image may be |
//! | `header` | headers of AVIF, HEIF, JPEG XL and JPEG 2000 |
//! | `markers` | JPEG marker segments |
//! | `metadata` | EXIF and XMP of PNG and WebP |
//! | `probe`, `image_info` | size, channels, orientation and samples, read from the header |
//! | `strip` | removal of metadata; whether they have a position or a thumbnail |
//! | `conversion` | Netpbm, QOI, ICO and TGA to PNG |
//! | `completeness` | detection of truncated files |
//! | `damage` | the kind of damage that an error means |
//! | `pixel_format` | channels and bits of pixels |
//! | `pixels` | images in memory |
//! | `raw_pixels` | pixels stored without coding, or in one zstd frame |
//! | `array`, `array_box` | arrays of any number of dimensions, in chunks; a box of one |
//! | `zstd_frame` | one zstd frame with its content size |
//! | `transform` | transforms, and the geometry they give an image |
//! | `encoded`, `stored_samples` | an encoded image with its parsed header; what its samples are |
//! | `decoder`, `decode_options`, `region` | decoding of a whole image, or of the region that a geometry needs |
//! | `jpeg`, `entries` | JPEG, with our own decoder, and its entry points |
//! | `codecs` | decoders of the other formats |
//! | `label_map`, `label_dtype` | label maps (segmentation masks), and the type of their values |
//! | `segmentation` | the pixels that objects cover, drawn from polygons and run lengths |
//! | `values` | the values of images that hold measurements, such as depths |
//! | `mask` | whether a file is a mask of its image |
//! | `float_range` | the range of floating-point samples |
//! | `truncated` | what happens to cut and damaged JPEGs |
//! | `resize` | crop, resize and flip of a decoded region |
//! | `operation` | operations on the pixels of an image: the deterministic part of data augmentation |
//! | `normalize` | u8 pixels to normalised floating-point values |
//! | `memory` | bounds of the memory that decoding an image takes |
//! | `decode_budget` | memory for decoding whole images in tools |
//! | `encode` | JPEG encoding (feature `encode`) |
//! | `error` | errors |
//! | `avx2` | loads and stores of vectors |
//! | `cpu` | detection of instruction sets |
//!
//! `unsafe` occurs only in `avx2`, `resize::separable_sse41`, `resize::separable_avx2`, `resize::separable_avx512`,
//! `resize::separable_neon`, `normalize::simd`, `normalize::avx2`, `normalize::neon`, `operation::vectorised`, and, with the
//! feature `libwebp`, `codecs::libwebp`.
//!
//! # Features
//!
//! - `jxl`, `jp2`: decode JPEG XL and JPEG 2000. Their headers are read in every build.
//! - `libwebp`: decode WebP with libwebp, a C library that `cc` builds. The pixels are the same, lossy images take less than
//!   half the time, and of a region the rows below are not decoded.
//! - `encode`: the function `encode_jpeg`.
#![deny(unsafe_code)]

mod array;
mod array_box;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod codecs;
mod completeness;
mod conversion;
mod cpu;
mod damage;
mod decode_budget;
mod decode_options;
mod decoder;
#[cfg(feature = "encode")]
mod encode;
mod encoded;
mod entries;
mod error;
mod float_range;
mod format;
mod header;
mod image_info;
mod jpeg;
mod label_dtype;
mod label_map;
mod limits;
mod markers;
mod mask;
mod memory;
mod metadata;
mod normalize;
mod operation;
mod pixel_format;
mod pixels;
mod probe;
mod raw_pixels;
mod region;
mod resize;
mod segmentation;
mod sniff;
mod stored_samples;
mod strip;
mod transform;
mod truncated;
mod values;
mod zstd_frame;

pub use array::{decode_array, decode_chunk, encode_array};
pub use array_box::{ArrayBox, chunks_of_box, decode_array_box, decode_array_box_of};
pub use codecs::panics::{catch_library_panic, silence_decoder_panics};
pub use completeness::check_complete;
pub use conversion::ExtensionPixels;
pub use decode_budget::DecodeBudget;
pub use decode_options::DecodeOptions;
pub use decoder::{Decoder, decode, decode_into};
#[cfg(feature = "encode")]
pub use encode::encode_jpeg;
pub use encoded::EncodedImage;
pub use entries::{check_entries, entry_points};
pub use error::{Error, LimitKind, TransformError};
pub use float_range::FloatRange;
pub use format::{ConvertedFormat, Format};
pub use image_info::ImageInfo;
pub use label_dtype::LabelDtype;
pub use label_map::LabelMap;
pub use limits::Limits;
pub use mask::{check_mask, mask_dtype};
pub use memory::{raw_scratch_bytes, scratch_bound, scratch_bytes};
pub use normalize::Normalizer;
pub use normalize::output::{Dtype, Layout, Output, OutputError};
pub use operation::scratch::OperationScratch;
pub use operation::{Interpolation, Operation};
pub use pixel_format::{Channels, Depth, PixelFormat};
pub use pixels::{Pixels, PixelsMut, PixelsRef};
pub use probe::probe;
pub use raw_pixels::{decode_raw, decode_raw_as, encode_raw_zstd};
pub use region::{DecodePath, DecodedRegion, RegionOptions};
pub use resize::apply::{ResizeScratch, apply_geometry};
pub use resize::{Filter, reduce_longer, reduce_shorter, resize};
pub use segmentation::{Segmentation, SegmentationError};
pub use sniff::sniff;
pub use stored_samples::StoredSamples;
pub use strip::{EmbeddedMetadata, embedded_metadata, strip_metadata};
pub use transform::PixelFn;
pub use transform::apply::TransformScratch;
pub use transform::draw::distributions::beta;
pub use transform::geometry::Geometry;
pub use transform::orientation::Orientation;
pub use transform::pipeline::Pipeline;
pub use transform::plan::Plan;
pub use transform::random::{Draws, Random};
pub use transform::rect::Rect;
pub use transform::step::{Align, AutoAugmentPolicy, Corner, EraseValue, Noise, PaddingMode, Transform};
pub use truncated::Truncated;
pub use values::{StoredValues, decode_values};
