//! Everything that can be wrong with an image, a limit or a request.

use crate::format::Format;
use crate::geometry::Rect;

/// What is wrong with an image, or with what was asked of it. The caller adds which image it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bad data: the first bytes belong to no format that is read here.
    #[error("not an image: {} bytes beginning [{}]; expected JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, HEIF, JPEG XL or JPEG 2000", .len, hex(.start))]
    UnknownFormat {
        /// Length of the data in bytes.
        len: usize,
        /// The first bytes, at most eight.
        start: Vec<u8>,
    },
    /// Bad data: the bytes end before the image does.
    #[error("truncated {format}: the data ends at byte {offset}, expected {expected}")]
    Truncated {
        /// Format told by the first bytes.
        format: Format,
        /// Length of the data in bytes.
        offset: usize,
        /// What should have followed.
        expected: &'static str,
    },
    /// Bad data: a header that contradicts its format.
    #[error("bad {format}: found {found:#x} at byte {offset}, expected {expected}")]
    Header {
        /// Format told by the first bytes.
        format: Format,
        /// Where the wrong value begins, in bytes.
        offset: usize,
        /// What should have stood there.
        expected: &'static str,
        /// What stands there.
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
    /// Bad data: what the PNG decoder says of a label map.
    #[error("bad PNG: {source}")]
    Png {
        /// Its own account.
        source: png::DecodingError,
    },
    /// A valid file that uses a feature which is not decoded here.
    #[error("{format} with {feature} is not supported; convert it to 8-bit baseline JPEG or PNG")]
    Unsupported {
        /// Format of the image.
        format: Format,
        /// The feature.
        feature: &'static str,
    },
    /// A limit: the image is larger than allowed. Nothing was allocated for it.
    #[error("{format} of {width}x{height}: {needed} {kind} exceed the limit of {allowed}; raise `{}` if it is meant", .kind.name())]
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
    /// Bad data, found by the decoder of that format.
    #[error("bad {format}: {source}")]
    Decoder {
        /// Format of the image.
        format: Format,
        /// The decoder's own account.
        source: image::ImageError,
    },
    /// A format whose header is read, but whose images this build does not decode.
    #[error("{format} images are not decoded: {reason}")]
    NotDecoded {
        /// Format of the image.
        format: Format,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// Bad data, found by the decoder of a format that a feature of this crate adds.
    #[error("bad {format}: {source}")]
    Foreign {
        /// Format of the image.
        format: Format,
        /// The decoder's own account.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Bad data, or a decoder at fault: the decoder of that format panicked. Its memory is discarded, and the next image is
    /// not affected.
    #[error("the {format} decoder panicked: {message}; convert the image to another format, or leave it out")]
    Panic {
        /// Format of the image.
        format: Format,
        /// The panic's message.
        message: String,
    },
    /// Bad data, found by our JPEG decoder.
    #[error("bad jpeg: {source}")]
    Jpeg {
        /// The decoder's own account.
        source: shardtool_jpeg::Error,
    },
    /// Bad data: a zstd frame that does not decompress.
    #[error("bad raw-zstd: {source}")]
    Zstd {
        /// zstd's own account.
        source: std::io::Error,
    },
    /// Bad data: a payload that is not one zstd frame.
    #[error("bad raw-zstd: expected {expected}, found a payload of {found} bytes that is not")]
    ZstdFrame {
        /// What the payload should be.
        expected: &'static str,
        /// Length of the payload in bytes.
        found: u64,
    },
    /// Bad data: a zstd frame whose header does not say how many bytes it holds, so that it cannot be checked first.
    #[error("bad raw-zstd: the frame does not declare its content size")]
    ZstdSize,
    /// Bad data or a bad argument: bytes of pixels that do not fit their size.
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
    /// Bad data: a label map in a form that holds more than one number of at most 8 bits a pixel, or loses numbers.
    #[error(
        "a {format} of this kind is no label map; store one number a pixel as a grey or palette PNG of at most 8 bits"
    )]
    Labels {
        /// Format of the image.
        format: Format,
    },
    /// Bad argument: a buffer that does not fit a label map's result.
    #[error("{width}x{height} labels are {} bytes, found {found}", u64::from(*.width) * u64::from(*.height))]
    LabelBytes {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Bytes given.
        found: u64,
    },
    /// Bad data: the image has another size than its record or index says.
    #[error("the image is {}x{}, expected {}x{} as recorded; rebuild the index", .found.0, .found.1, .expected.0, .expected.1)]
    SizeMismatch {
        /// Width and height as recorded.
        expected: (u32, u32),
        /// Width and height of the image.
        found: (u32, u32),
    },
    /// A bad argument: the payload's format is an encoded one.
    #[error("{found} is not a raw format; decode it by its content")]
    NotRaw {
        /// The format given.
        found: Format,
    },
    /// A bad argument: quality out of range.
    #[error("JPEG quality {found}; expected 1 to 100")]
    Quality {
        /// The quality given.
        found: u8,
    },
    /// A bad argument: a size that no image here can have.
    #[error("an image of {width}x{height} cannot be made; expected sides of 1 to 65535 pixels")]
    Side {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The JPEG encoder refused.
    #[error("encoding JPEG: {source}")]
    Encode {
        /// The encoder's own account.
        source: jpeg_encoder::EncodingError,
    },
    /// A bad argument: a list of transforms that cannot be carried out.
    #[error("transforms: {reason}")]
    Transforms {
        /// What is wrong with it.
        reason: TransformError,
    },
    /// A crop larger than the image it is taken from.
    #[error("centre crop {}x{} is larger than the image of {}x{}; put a resize before it", .crop.0, .crop.1, .image.0, .image.1)]
    CropTooLarge {
        /// Width and height of the crop.
        crop: (u32, u32),
        /// Width and height of the image.
        image: (u32, u32),
    },
    /// A bad argument: pixels that lack a part of what the geometry needs.
    #[error("the decoded window {found:?} lacks a part of {needed:?}, which the geometry needs")]
    Region {
        /// The part of the stored image that is needed.
        needed: Rect,
        /// The part that was given.
        found: Rect,
    },
}

impl Error {
    /// The error for bytes of no known format.
    pub(crate) fn unknown(bytes: &[u8]) -> Self {
        Error::UnknownFormat { len: bytes.len(), start: bytes[..bytes.len().min(8)].to_vec() }
    }
}

/// What is wrong with a list of transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransformError {
    /// The size of the result would depend on the image.
    #[error("the size of the result depends on the image; end with random_resized_crop, resize_to or center_crop")]
    NoSize,
    /// Only one step may resize.
    #[error("step {step} resizes what was resized before; keep one of random_resized_crop, resize and resize_to")]
    SecondResize {
        /// Which step, counted from 0.
        step: usize,
    },
    /// A crop larger than what stands before it.
    #[error("step {step} crops more than is left by the steps before it")]
    Crop {
        /// Which step, counted from 0.
        step: usize,
    },
    /// A number out of its range.
    #[error("step {step}: {name} is out of range; expected {expected}")]
    Range {
        /// Which step, counted from 0.
        step: usize,
        /// Name of the field.
        name: &'static str,
        /// Its range.
        expected: &'static str,
    },
}

/// Which of the [`Limits`](crate::Limits) an image exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// `max_pixels`: width times height.
    Pixels,
    /// `max_side`: the longer side, in pixels.
    Side,
    /// `max_bytes`: memory to decode, in bytes.
    Bytes,
}

impl LimitKind {
    /// The field of [`Limits`](crate::Limits) it stands for.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Pixels => "max_pixels",
            LimitKind::Side => "max_side",
            LimitKind::Bytes => "max_bytes",
        }
    }
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LimitKind::Pixels => "pixels",
            LimitKind::Side => "pixels along a side",
            LimitKind::Bytes => "bytes to decode",
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}
