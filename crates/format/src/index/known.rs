//! The columns that a shard's index has by this format: which must exist, and of which kind each must be.

use super::{
    Column, Element, FEATURE_PREFIX, IMAGE_LENGTH, IMAGE_OFFSET, Index, JPEG_ENTRIES, KEY, RECORD_OFFSET,
    VALUES_PREFIX, VIRTUAL_BYTES, VIRTUAL_FILES, VIRTUAL_RANGES,
};
use crate::{Error, Result};

/// Positions of the required columns in [`Index::columns`].
#[derive(Debug, Clone, Copy)]
pub struct Required {
    /// Position of [`RECORD_OFFSET`].
    pub record_offset: usize,
    /// Position of [`IMAGE_OFFSET`].
    pub image_offset: usize,
    /// Position of [`IMAGE_LENGTH`].
    pub image_length: usize,
    /// Position of [`KEY`].
    pub key: usize,
}

/// Positions of the columns of a virtual shard in [`Index::columns`].
#[derive(Debug, Clone, Copy)]
pub struct VirtualColumns {
    /// Position of [`VIRTUAL_FILES`].
    pub files: usize,
    /// Position of [`VIRTUAL_RANGES`].
    pub ranges: usize,
    /// Position of [`VIRTUAL_BYTES`].
    pub bytes: usize,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Returns the positions of the columns of a virtual shard, whose types [`Index::required`] has checked.
    ///
    /// # Errors
    /// [`Error::IndexColumn`] for the first one that is absent.
    pub fn virtual_columns(&self) -> Result<VirtualColumns> {
        let position = |name: &str| self.position(name).ok_or_else(|| Error::IndexColumn { column: name.to_owned() });
        Ok(VirtualColumns {
            files: position(VIRTUAL_FILES)?,
            ranges: position(VIRTUAL_RANGES)?,
            bytes: position(VIRTUAL_BYTES)?,
        })
    }

    /// Returns the positions of the required columns, after checking that each column that this format names has the
    /// right kind and element, and a validity bitmap only if it may have one.
    ///
    /// # Errors
    /// [`Error::IndexColumn`] for the first column that is wrong, or else for the first required one that is absent.
    pub fn required(&self) -> Result<Required> {
        let wrong = |name: &str| Error::IndexColumn { column: name.to_owned() };
        if let Some(column) = self.columns().iter().find(|column| !has_its_type(column)) {
            return Err(wrong(column.name()));
        }
        let position = |name| self.position(name).ok_or_else(|| wrong(name));
        Ok(Required {
            record_offset: position(RECORD_OFFSET)?,
            image_offset: position(IMAGE_OFFSET)?,
            image_length: position(IMAGE_LENGTH)?,
            key: position(KEY)?,
        })
    }
}

/// Returns whether a column has the type that its name requires. Columns with unknown names may have any.
fn has_its_type(column: &Column) -> bool {
    let elements: &[Element] = match column.name() {
        RECORD_OFFSET => &[Element::U64],
        IMAGE_OFFSET | IMAGE_LENGTH => &[Element::U32],
        KEY | JPEG_ENTRIES | VIRTUAL_FILES | VIRTUAL_RANGES | VIRTUAL_BYTES => &[Element::Bytes],
        name if name.starts_with(VALUES_PREFIX) => &[Element::Bytes],
        name if name.starts_with(FEATURE_PREFIX) => {
            return matches!(column.element(), Element::I64 | Element::F32 | Element::Bytes);
        }
        _ => return true,
    };
    elements.contains(&column.element()) && !column.nullable()
}
