//! Why an array cannot be stored.

use shardtool_format::array::ArrayError;

/// Why an array cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayRefusal {
    /// Not an `.npy` file, nor another one that holds an array.
    #[error("not a .npy file: {problem}; expected .npy (numpy.save), .pfm, .flo, .dpt, PNG or TIFF")]
    Npy {
        /// What is wrong.
        problem: &'static str,
    },
    /// A Portable Float Map whose header is wrong.
    #[error("not a PFM file: {problem}")]
    Pfm {
        /// What is wrong.
        problem: &'static str,
    },
    /// A file of flow whose header is wrong.
    #[error("a .flo or .dpt file without width and height")]
    Flow,
    /// Not optical flow.
    #[error(
        "not optical flow, but {dtype} of shape {shape:?}; expected .flo, a PNG of three times 16 bits as KITTI codes it, or floats of \
         [height, width, 2]: how far each pixel moves to the right and down"
    )]
    Vectors {
        /// The type.
        dtype: &'static str,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A file of another kind.
    #[error("not an array, but {found}")]
    Kind {
        /// What it is, and what to do.
        found: &'static str,
    },
    /// A type that arrays cannot have.
    #[error("arrays of type `{found}` cannot be stored; expected bool, integers or floats: convert it with `astype`")]
    Dtype {
        /// The type in numpy's notation.
        found: String,
    },
    /// Other bytes than the shape says.
    #[error("the elements have {found} bytes, but the shape says {expected}")]
    Length {
        /// The bytes that the shape needs.
        expected: u64,
        /// The bytes found.
        found: u64,
    },
    /// A number instead of an array.
    #[error("the array has no dimension; store a number as a feature of type int64 or float")]
    NoDimension,
    /// Another number of dimensions than the chunks have.
    #[error("the array has shape {array:?}, but its chunks have {chunk} dimensions: give one length for each")]
    Dimensions {
        /// The shape of the array.
        array: Vec<u64>,
        /// Dimensions of the chunks.
        chunk: usize,
    },
    /// More bytes than a number of 63 bits counts.
    #[error("the array is larger than 2^63 bytes")]
    TooLarge,
    /// An invalid layout.
    #[error(transparent)]
    Layout(#[from] ArrayError),
    /// The compressor failed, or the decoder of an image whose pixels are the elements.
    #[error(transparent)]
    Encode(#[from] shardtool_decode::Error),
}
