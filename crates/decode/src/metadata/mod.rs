//! Finds the EXIF and XMP metadata of PNG and WebP files, whose decoders do not look everywhere where writers put them. What
//! the metadata say about the orientation is the rule of [`Metadata`], as for JPEG and TIFF.

mod png;
mod webp;

pub(crate) use png::metadata as png;
pub(crate) use shardtool_jpeg::Metadata;
pub(crate) use webp::{chunks as webp_chunks, metadata as webp};
