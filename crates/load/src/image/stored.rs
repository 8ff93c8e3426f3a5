//! The images of a record.

use super::{pixels, size};
use crate::error::SampleError;
use crate::groups::{Images, Labels};
use shardtool_decode::{Format, ImageInfo};
use shardtool_format::{index, names};
use shardtool_read::{Record, Shard};

/// A stored image: its bytes, and its properties from the index or its header.
#[derive(Clone)]
pub(crate) struct StoredImage<'r> {
    pub(crate) bytes: &'r [u8],
    /// The format, if the image is stored as raw pixels.
    pub(crate) format: Option<Format>,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
    pub(crate) orientation: u8,
    /// JPEG entry points, if the index has any: hints, which the decoder checks.
    pub(crate) entries: Option<&'r [u8]>,
}

impl<'r> StoredImage<'r> {
    /// Returns the image of a record. Size and orientation come from the index, otherwise from the image's header.
    pub(crate) fn of(record: &'r Record, images: &Images) -> Result<Self, SampleError> {
        let bytes = record.image()?.ok_or(SampleError::NoImage)?;
        let (shard, row) = (record.shard(), record.row());
        let indexed = indexed_size(shard, row)?;
        if maybe_raw(bytes, indexed)
            && let Some(format) = raw_format(record)?
        {
            let size = match indexed {
                Some(size) => size,
                None => raw_size(record)?,
            };
            return Ok(StoredImage { bytes, format: Some(format), size, orientation: 1, entries: None });
        }
        let orientation = match images.pixels.apply_orientation {
            true => shard.feature::<i64>(names::IMAGE_ORIENTATION)?.and_then(|c| c.get(row)),
            false => Some(1),
        };
        let entries = shard.variable(index::JPEG_ENTRIES)?.and_then(|c| c.get(row)).filter(|e| !e.is_empty());
        match (indexed, orientation.and_then(|o| u8::try_from(o).ok())) {
            (Some(size), Some(orientation)) => Ok(StoredImage { bytes, format: None, size, orientation, entries }),
            _ => StoredImage { bytes, format: None, size: (0, 0), orientation: 1, entries }.with_header(images),
        }
    }

    /// Sets size and orientation from the image's header.
    pub(crate) fn with_header(self, images: &Images) -> Result<Self, SampleError> {
        let ImageInfo { width, height, orientation, .. } = shardtool_decode::probe(self.bytes, &images.pixels.limits)?;
        let orientation = if images.pixels.apply_orientation { orientation } else { 1 };
        Ok(StoredImage { size: (width, height), orientation, ..self })
    }
}

/// Returns the one value of a feature of byte strings that holds a further image; `None` if the record lacks it.
pub(crate) fn further<'r>(record: &'r Record, feature: &str) -> Result<Option<&'r [u8]>, SampleError> {
    Ok(record.example()?.bytes(feature).filter(|image| !image.is_empty()))
}

/// Returns the texts of a feature that has one for each object of a record.
pub(super) fn texts<'r>(record: &'r Record, feature: &str) -> Result<Vec<&'r [u8]>, SampleError> {
    Ok(record.example()?.byte_strings(feature).unwrap_or_default())
}

fn indexed_size(shard: &Shard, row: u64) -> Result<Option<(u32, u32)>, SampleError> {
    let width = shard.feature::<i64>(names::IMAGE_WIDTH)?.and_then(|c| c.get(row));
    let height = shard.feature::<i64>(names::IMAGE_HEIGHT)?.and_then(|c| c.get(row));
    Ok(width.zip(height).and_then(|(w, h)| size(w, h)))
}

/// Returns whether the bytes could be raw pixels: only then is the record parsed for its format.
fn maybe_raw(bytes: &[u8], size: Option<(u32, u32)>) -> bool {
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    bytes.starts_with(&ZSTD)
        || size.is_some_and(|size| 3 * pixels(size) == bytes.len() as u64)
        || shardtool_decode::sniff(bytes).is_none()
}

fn raw_format(record: &Record) -> Result<Option<Format>, SampleError> {
    let example = record.example()?;
    let name = example.bytes(names::IMAGE_FORMAT).and_then(|name| std::str::from_utf8(name).ok());
    Ok(name.and_then(Format::from_name).filter(|f| matches!(f, Format::Raw | Format::RawZstd)))
}

/// What a mask of an image is made of.
pub(super) enum StoredMask<'r> {
    /// An encoded label map.
    Map(&'r [u8]),
    /// The whole image.
    Whole,
}

impl<'r> StoredMask<'r> {
    /// Returns what a mask of a record is made of.
    pub(super) fn of(record: &'r Record, labels: &Labels) -> Result<Self, SampleError> {
        let Some(feature) = &labels.feature else { return Ok(StoredMask::Whole) };
        let map = further(record, feature)?.ok_or_else(|| SampleError::NoMask { feature: feature.clone() })?;
        Ok(StoredMask::Map(map))
    }
}

fn raw_size(record: &Record) -> Result<(u32, u32), SampleError> {
    let example = record.example()?;
    let side = |feature| {
        let side = example.int64(feature).and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        side.ok_or(SampleError::RawSize { feature })
    };
    Ok((side(names::IMAGE_WIDTH)?, side(names::IMAGE_HEIGHT)?))
}
