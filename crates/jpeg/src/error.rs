//! What can be wrong with a JPEG, or with what is asked of it.

/// Why a JPEG was not decoded, searched or re-laid out.
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
        /// Number of bytes there are.
        offset: usize,
        /// What should have come.
        expected: &'static str,
    },
    /// A marker segment says something that cannot be.
    #[error("JPEG segment ff{marker:02x} at byte {offset}: expected {expected}, found {found}")]
    Segment {
        /// Second byte of the marker.
        marker: u8,
        /// Where the marker is, in bytes from the start of the image.
        offset: usize,
        /// What the format asks for.
        expected: &'static str,
        /// The number found.
        found: u64,
    },
    /// A valid JPEG of a kind that this decoder leaves to others.
    #[error("this JPEG uses {0}, which this decoder does not read; use a general image decoder")]
    Unsupported(Feature),
    /// The image is larger than the caller allows.
    #[error("the JPEG has {found} {what}, the limit is {allowed}; raise the limit if the image is genuine")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        allowed: u64,
        /// What the image has.
        found: u64,
    },
    /// The entropy-coded data are damaged.
    #[error("the JPEG's image data are damaged in MCU row {row} of {rows}, near byte {offset}: {damage}")]
    Damaged {
        /// MCU row, counted from 0.
        row: u32,
        /// Number of MCU rows of the scan.
        rows: u32,
        /// About where, in bytes from the start of the image.
        offset: usize,
        /// What was found there.
        damage: Damage,
    },
    /// What was written anew, read again, is not the same picture.
    #[error("the re-laid-out JPEG does not hold the same coefficients; keep the original, and report this as a fault")]
    TranscodeMismatch,
    /// The rectangle asked for is empty or not inside the image.
    #[error("rectangle {width}x{height} at ({x}, {y}) is empty or outside the {image_width}x{image_height} image")]
    Rectangle {
        /// Left edge, in pixels of the scaled image.
        x: u32,
        /// Upper edge.
        y: u32,
        /// Width asked for.
        width: u32,
        /// Height asked for.
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
        /// Bytes there are.
        found: usize,
        /// Bytes from a row to the next one, as given.
        stride: usize,
    },
}

/// Kinds of JPEG that this decoder leaves to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Feature {
    /// Arithmetic coding.
    #[error("arithmetic coding")]
    Arithmetic,
    /// Lossless or hierarchical coding.
    #[error("lossless or hierarchical coding")]
    Lossless,
    /// Samples of other than 8 bits.
    #[error("{0}-bit samples")]
    Precision(u8),
    /// Other than one or three components (CMYK, YCCK, two-channel images).
    #[error("{0} colour components")]
    Components(u8),
    /// Components whose sizes are no whole multiples of each other.
    #[error("sampling factors that do not divide each other")]
    Sampling,
    /// The height comes after the first scan (DNL marker).
    #[error("a height given after the image data")]
    Height,
    /// Some scans of a progressive image are missing; decoders that smooth show it better.
    #[error("progressive scans of which some are missing")]
    Incomplete,
    /// Coefficients beyond what 8-bit samples can give; only re-plan minds.
    #[error("coefficients beyond the range of a sequential scan")]
    Range,
}

/// How entropy-coded data can be damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// BitReader that are no code of the table.
    #[error("bits that are no Huffman code")]
    Code,
    /// More coefficients than a block has.
    #[error("a block with more than 64 coefficients")]
    Block,
    /// The data end too soon.
    #[error("the data end before the image does (the file was cut short, or bytes were lost)")]
    Ends,
    /// A restart interval ends before its data do.
    #[error("bytes left over before a restart marker")]
    LeftOver,
    /// A restart marker is missing or out of order.
    #[error("a restart marker is missing or out of order")]
    Restart,
    /// A progressive scan refines what no scan has begun, or twice.
    #[error("progressive scans that contradict each other")]
    Progression,
}

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;
