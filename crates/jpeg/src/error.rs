//! The errors of this crate.

/// Why a JPEG was not decoded, scanned or transcoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not start with the SOI marker.
    #[error("not a JPEG: expected it to start with ff d8, found {found:02x?}")]
    NotJpeg {
        /// The first bytes, at most two.
        found: Vec<u8>,
    },
    /// The bytes end before the header does.
    #[error("the JPEG ends at byte {offset}, inside or before {expected}: the file was cut short")]
    Ends {
        /// Length of the data in bytes.
        offset: usize,
        /// What the data end before or inside of.
        expected: &'static str,
    },
    /// An invalid marker segment.
    #[error("JPEG segment ff{marker:02x} at byte {offset}: expected {expected}, found {found}")]
    Segment {
        /// Second byte of the marker.
        marker: u8,
        /// Byte offset of the marker in the image.
        offset: usize,
        /// What the format requires.
        expected: &'static str,
        /// The number found.
        found: u64,
    },
    /// A valid JPEG of a kind that this crate does not decode.
    #[error("this JPEG uses {0}, which this decoder does not read; use a general image decoder")]
    Unsupported(Feature),
    /// The image is beyond the caller's [`Limits`](crate::Limits).
    #[error("the JPEG has {found} {what}, the limit is {allowed}; raise the limit if the image is genuine")]
    Limit {
        /// What the limit is on: `pixels`, `scans`, or `passes over its blocks`.
        what: &'static str,
        /// The limit.
        allowed: u64,
        /// What the image has.
        found: u64,
    },
    /// The entropy-coded data are damaged.
    #[error("the JPEG's image data are damaged in MCU row {row} of {rows}, near byte {offset}: {damage}")]
    Damaged {
        /// MCU row, from 0.
        row: u32,
        /// Number of MCU rows of the scan.
        rows: u32,
        /// Approximate byte offset in the image.
        offset: usize,
        /// The kind of damage.
        damage: Damage,
    },
    /// The transcoded image does not have the same coefficients.
    #[error("the transcoded JPEG does not have the same coefficients; keep the original, and report this as a bug")]
    TranscodeMismatch,
    /// The requested rectangle is empty or not inside the image.
    #[error("rectangle {width}x{height} at ({x}, {y}) is empty or outside the {image_width}x{image_height} image")]
    Rectangle {
        /// Left edge, in pixels of the scaled image.
        x: u32,
        /// Top edge.
        y: u32,
        /// Requested width.
        width: u32,
        /// Requested height.
        height: u32,
        /// Width of the scaled image.
        image_width: u32,
        /// Height of the scaled image.
        image_height: u32,
    },
    /// The output buffer is too small.
    #[error("the output buffer holds {found} bytes with {stride} a row, the pixels need {expected}")]
    Buffer {
        /// Bytes needed.
        expected: usize,
        /// Bytes of the buffer.
        found: usize,
        /// Bytes from row to row, as given.
        stride: usize,
    },
}

/// Features of JPEGs that this crate does not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Feature {
    /// Arithmetic coding.
    #[error("arithmetic coding")]
    Arithmetic,
    /// Lossless or hierarchical coding.
    #[error("lossless or hierarchical coding")]
    Lossless,
    /// Samples with other than 8 bits.
    #[error("{0}-bit samples")]
    Precision(u8),
    /// Other than one, three or four components (two-channel images); or four components, where they are not transcoded.
    #[error("{0} colour components")]
    Components(u8),
    /// Sampling factors that do not divide the largest ones.
    #[error("sampling factors that do not divide each other")]
    Sampling,
    /// A scan of several components with more than 10 blocks in an MCU.
    #[error("more than 10 blocks in an MCU")]
    McuBlocks,
    /// A height that is only given after the first scan (DNL marker).
    #[error("a height given after the image data")]
    Height,
    /// An image of which scans are missing. Only transcoding reports it.
    #[error("scans of which some are missing")]
    Incomplete,
    /// Coefficients beyond the range of 8-bit samples. Only transcoding reports them.
    #[error("coefficients beyond the range of a sequential scan")]
    Range,
}

/// Kinds of damage to entropy-coded data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// Bits that are no Huffman code of the table.
    #[error("bits that are no Huffman code")]
    Code,
    /// More coefficients than a block has.
    #[error("a block with more than 64 coefficients")]
    Block,
    /// The data end before the last block.
    #[error("the data end before the image does (the file was cut short, or bytes were lost)")]
    Ends,
    /// Data left over at the end of a restart interval.
    #[error("bytes left over before a restart marker")]
    LeftOver,
    /// A restart marker is missing or out of order.
    #[error("a restart marker is missing or out of order")]
    Restart,
    /// Progressive scans that do not continue each other.
    #[error("progressive scans that contradict each other")]
    Progression,
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
