//! The marker segments of a file (T.81, annex B), up to the entropy-coded data, and what they say.
//!
//! | file | part |
//! |---|---|
//! | `segment` | the sequence of markers and segments |
//! | `standard` | constants of T.81 |
//! | `huffman_spec` | a Huffman table as DHT specifies it |
//! | `header` | the frame header, and limits |
//! | `parser` | the segments in order: tables in force, scan headers; checks all that decoders rely on |
//! | `metadata`, `exif` | EXIF and XMP: the orientation; whether they have a position and a thumbnail |
//! | `probe` | size and orientation of any JPEG, and where it ends |

mod exif;
pub(crate) mod header;
pub(crate) mod huffman_spec;
pub(crate) mod metadata;
pub(crate) mod parser;
pub(crate) mod probe;
pub(crate) mod segment;
pub(crate) mod standard;
