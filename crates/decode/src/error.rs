//! The errors of this crate.

use crate::format::{ConvertedFormat, Format};
use crate::transform::rect::Rect;
use shardtool_format::array::ArrayError;
use std::borrow::Cow;

/// Why an image could not be read, decoded, transformed or encoded. The caller adds which image it is. `Display` is one
/// link of the chain: an error with a source does not print it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bad data: the first bytes are not those of a known format.
    #[error("not an image: {} bytes beginning [{}]; expected JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, HEIF, JPEG XL or JPEG 2000", .len, hex(.start))]
    UnknownFormat {
        /// Length of the data in bytes.
        len: usize,
        /// The first bytes, at most eight.
        start: Vec<u8>,
    },
    /// Bad data: the data ends before the end of the image.
    #[error("truncated {format}: the data ends at byte {offset}, expected {expected}")]
    Truncated {
        /// Format, detected from the first bytes.
        format: Format,
        /// Length of the data in bytes.
        offset: usize,
        /// What should have followed.
        expected: &'static str,
    },
    /// Bad data: an invalid value in a header.
    #[error("bad {format}: found {found:#x} at byte {offset}, expected {expected}")]
    Header {
        /// Format, detected from the first bytes.
        format: Format,
        /// Offset of the value in bytes.
        offset: usize,
        /// What was expected there.
        expected: &'static str,
        /// What was found.
        found: u64,
    },
    /// Bad data: an image without pixels.
    #[error("{format} of {width}x{height} pixels; expected at least 1x1")]
    Empty {
        /// Format of the image.
        format: Format,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// A valid file with a feature that is not supported.
    #[error("{format} with {feature} is not supported; convert it to 8-bit baseline JPEG or PNG")]
    Unsupported {
        /// Format of the image.
        format: Format,
        /// The feature.
        feature: &'static str,
    },
    /// A limit: the image is larger than allowed. Nothing was allocated for it.
    #[error("{format} of {width}x{height}: {needed} {kind} exceed the limit of {allowed}; {}", .kind.advice())]
    Limit {
        /// Format of the image.
        format: Format,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Which limit.
        kind: LimitKind,
        /// What the image needs.
        needed: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// An image file with more chunks than allowed.
    #[error("{format} of {found} chunks, more than the limit of {allowed}")]
    Chunks {
        /// Format of the image.
        format: Format,
        /// Chunks of the file.
        found: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// A valid file with floating-point samples, for which no range was given.
    #[error("{format} with floating-point samples needs a range of values to scale to 0 to 255; set `float_range`")]
    FloatSamples {
        /// Format of the image.
        format: Format,
    },
    /// Bad data, found by the decoder of that format.
    #[error("invalid {format} data")]
    Decoder {
        /// Format of the image.
        format: Format,
        /// The decoder's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Bad data, or a kind that is not read: an image of a format that is stored as PNG.
    #[error("the {format} image cannot be converted to PNG: {problem}")]
    Conversion {
        /// Format of the image.
        format: ConvertedFormat,
        /// What is wrong with it.
        problem: Cow<'static, str>,
    },
    /// A format of which this build reads the header but does not decode images.
    #[error("{format} images are not decoded: {reason}")]
    NotDecoded {
        /// Format of the image.
        format: Format,
        /// Why not, and what to do.
        reason: &'static str,
    },
    /// Bad data, or a defect of a decoder: the decoder of that format panicked. Its memory is discarded, so the next image
    /// is not affected.
    #[error("the {format} decoder panicked: {message}; convert the image to another format, or leave it out")]
    Panic {
        /// Format of the image.
        format: Format,
        /// The panic's message.
        message: String,
    },
    /// Bad data, found by our JPEG decoder.
    #[error("invalid jpeg data")]
    Jpeg {
        /// The decoder's error.
        source: shardtool_jpeg::Error,
    },
    /// An image whose metadata cannot be removed.
    #[error(
        "the metadata of this {format} cannot be removed: {problem}; convert it to PNG or JPEG, leave it out, or keep metadata"
    )]
    Metadata {
        /// Format of the image.
        format: Format,
        /// Why not.
        problem: &'static str,
    },
    /// Bad data: a zstd frame that does not decompress.
    #[error("invalid zstd data")]
    Zstd {
        /// zstd's error.
        source: std::io::Error,
    },
    /// Bad data: a payload that is not one zstd frame.
    #[error("bad zstd data: expected {expected}, found a payload of {found} bytes that is not")]
    ZstdFrame {
        /// What the payload should be.
        expected: &'static str,
        /// Length of the payload in bytes.
        found: u64,
    },
    /// Bad data: a zstd frame whose header does not declare its content size, which is checked before decompression.
    #[error("bad zstd data: the frame does not declare its content size")]
    ZstdSize,
    /// Bad data: an array whose shape, chunks, type or codec are invalid.
    #[error("invalid array")]
    Array {
        /// What is wrong.
        source: ArrayError,
    },
    /// A limit: the chunk of an array is larger than allowed. Nothing was allocated for it.
    #[error("a chunk of {needed} bytes exceeds the limit of {allowed}; raise `max_bytes` to allow it")]
    ArrayLimit {
        /// Size of the chunk in bytes.
        needed: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// Bad argument: a buffer of another length than the array.
    #[error("an array of {expected} bytes, and a buffer of {found}")]
    ArrayBuffer {
        /// Size of the array in bytes.
        expected: u64,
        /// Length of the buffer in bytes.
        found: u64,
    },
    /// Bad argument: a box that leaves its array, or the buffer that it is written into.
    #[error("a box of {size:?} elements from {start:?} does not fit an array of {shape:?}, or its buffer")]
    ArrayBox {
        /// The shape of the array.
        shape: Vec<i64>,
        /// The first index in each dimension.
        start: Vec<u64>,
        /// The length in each dimension.
        size: Vec<u64>,
    },
    /// Bad data or argument: a number of bytes that does not match the size in pixels.
    #[error("{width}x{height} RGB pixels are {expected} bytes, found {found}")]
    PixelBytes {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// `width * height * 3`.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// Bad data: a label map in a format that is lossy or holds other than one value of at most 16 bits per pixel.
    #[error(
        "a {format} of this kind is not a label map; store one value per pixel as a grey or palette PNG; ids that RGB codes need the type int32"
    )]
    Labels {
        /// Format of the image.
        format: Format,
    },
    /// Bad data: an image whose values cannot be taken as they are stored.
    #[error("values cannot be taken from this {format}: {problem}; store them as .npy, PNG, or TIFF of one plane")]
    Values {
        /// Format of the image.
        format: Format,
        /// What is wrong.
        problem: &'static str,
    },
    /// Bad data: a mask, or another image of a sample, of another size than its image.
    #[error("{}x{} pixels, but the stored image has {}x{}; scale it to this size before it is packed", .found.0, .found.1, .expected.0, .expected.1)]
    MaskSize {
        /// Width and height of the mask.
        found: (u32, u32),
        /// Width and height of the image, without its EXIF orientation.
        expected: (u32, u32),
    },
    /// Bad argument: a buffer of the wrong length for a label map.
    #[error("{width}x{height} labels are {expected} bytes, found {found}")]
    LabelBytes {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Bytes of the labels.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// Bad data: a label over 255 in a map that is loaded with 8 bits per label.
    #[error(
        "label {value} at column {x}, row {y} of a {format} does not fit 8 bits; load 16-bit labels (the `dtype` of the mask)"
    )]
    LabelValue {
        /// Format of the image.
        format: Format,
        /// The label.
        value: u16,
        /// Column, from 0.
        x: u32,
        /// Row, from 0.
        y: u32,
    },
    /// Bad data: the size of the image differs from the one in its record or index.
    #[error("the image is {}x{}, expected {}x{} as recorded; rebuild the index", .found.0, .found.1, .expected.0, .expected.1)]
    SizeMismatch {
        /// Width and height as recorded.
        expected: (u32, u32),
        /// Width and height of the image.
        found: (u32, u32),
    },
    /// Bad argument: a format other than `raw` and `raw-zstd`.
    #[error("{found} is not a raw format; decode it by its content")]
    NotRaw {
        /// The format given.
        found: Format,
    },
    /// Bad argument: quality out of range.
    #[error("JPEG quality {found}; expected 1 to 100")]
    Quality {
        /// The quality given.
        found: u8,
    },
    /// Bad argument: a size out of range.
    #[error("an image of {width}x{height} cannot be made; expected sides of 1 to 65535 pixels")]
    Side {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The JPEG encoder failed.
    #[error("cannot encode JPEG")]
    Encode {
        /// The encoder's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Bad argument: an invalid list of transforms.
    #[error("invalid transforms: {reason}")]
    Transforms {
        /// What is invalid. Part of the message, not a source, because serde keeps only the message.
        reason: TransformError,
    },
    /// A crop larger than the image.
    #[error("crop of {}x{} is larger than the image of {}x{}; put a resize or padding before it", .crop.0, .crop.1, .image.0, .image.1)]
    CropTooLarge {
        /// Width and height of the crop.
        crop: (u32, u32),
        /// Width and height of the image.
        image: (u32, u32),
    },
    /// Padding by reflection that is as large as the image or larger.
    #[error("padding {padding:?} (left, top, right, bottom) reflects more than the image of {}x{} has; use less padding, or the mode symmetric", .image.0, .image.1)]
    ReflectPadding {
        /// Pixels to the left, top, right and bottom.
        padding: [u32; 4],
        /// Width and height of the image.
        image: (u32, u32),
    },
    /// Bad argument: a parameter of an operation is out of range.
    #[error("{operation}: {name} is out of range; expected {expected}")]
    Operation {
        /// Name of the operation.
        operation: &'static str,
        /// Name of the parameter.
        name: &'static str,
        /// The valid range.
        expected: &'static str,
    },
    /// Bad argument: an operation that is not defined for pixels of a format.
    #[error("{operation}: not defined for pixels of {format}")]
    OperationFormat {
        /// Name of the operation.
        operation: &'static str,
        /// Name of the format ([`PixelFormat::name`](crate::PixelFormat::name)).
        format: &'static str,
    },
    /// Bad argument: the kernel of a blur is too large for the image, whose edges reflect.
    #[error("gaussian_blur: a kernel of {}x{} pixels is too large for an image of {}x{}; half of its side, rounded down, must be less than the image's", .kernel[0], .kernel[1], .image.0, .image.1)]
    BlurKernel {
        /// Width and height of the kernel.
        kernel: [u32; 2],
        /// Width and height of the image.
        image: (u32, u32),
    },
    /// Bad argument: a region that does not contain all pixels that the geometry needs.
    #[error("the decoded region {found:?} does not contain {needed:?}, which the geometry needs")]
    Region {
        /// The needed rectangle of the stored image.
        needed: Rect,
        /// The decoded rectangle.
        found: Rect,
    },
}

impl Error {
    /// Makes the error for bytes of no known format.
    pub(crate) fn unknown(bytes: &[u8]) -> Self {
        Error::UnknownFormat { len: bytes.len(), start: bytes[..bytes.len().min(8)].to_vec() }
    }
}

/// Why a list of transforms is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// The size of the result depends on the image.
    #[error(
        "the size of the result depends on the image; end with random_resized_crop, resize_to, center_crop or fixed_size_crop"
    )]
    NoSize,
    /// A crop larger than the result of the steps before it.
    #[error("step {step} crops a larger area than the steps before it leave")]
    Crop {
        /// Index of the step, from 0.
        step: usize,
    },
    /// A number out of its range.
    #[error("step {step}: {name} is out of range; expected {expected}")]
    Range {
        /// Index of the step, from 0.
        step: usize,
        /// Name of the field.
        name: &'static str,
        /// The valid range.
        expected: &'static str,
    },
}

/// Which of the [`Limits`](crate::Limits) an image exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitKind {
    /// `max_pixels`: width times height.
    Pixels,
    /// `max_side`: the longer side, in pixels.
    Side,
    /// `max_bytes`: memory to decode, in bytes.
    Bytes,
    /// The process's share of the container's memory, in bytes ([`DecodeBudget`](crate::DecodeBudget)).
    Memory,
}

impl LimitKind {
    /// Returns what allows the image: which field of [`Limits`](crate::Limits) to raise.
    fn advice(self) -> &'static str {
        match self {
            LimitKind::Pixels => "raise `max_pixels` to allow it",
            LimitKind::Side => "raise `max_side` to allow it",
            LimitKind::Bytes => "raise `max_bytes` to allow it",
            LimitKind::Memory => "that is half of the memory that the container leaves this process",
        }
    }
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LimitKind::Pixels => "pixels",
            LimitKind::Side => "pixels along a side",
            LimitKind::Bytes | LimitKind::Memory => "bytes to decode",
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}
