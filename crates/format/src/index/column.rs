//! Values of a column, as views into the index's bytes.

use crate::{Error, Result};
use std::marker::PhantomData;

/// The type of a column's elements. Its code in the file is the discriminant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    /// Byte strings: the elements of variable columns.
    Bytes = 0,
    /// u32, little-endian, like all numbers.
    U32 = 1,
    /// u64.
    U64 = 2,
    /// i64.
    I64 = 3,
    /// IEEE 754 binary32.
    F32 = 4,
}

impl Element {
    pub(super) fn from_code(code: u8) -> Option<Self> {
        [Element::Bytes, Element::U32, Element::U64, Element::I64, Element::F32].into_iter().find(|e| *e as u8 == code)
    }

    /// Returns the width of one element in a fixed-width column, in bytes.
    pub fn width(self) -> usize {
        match self {
            Element::Bytes => 1,
            Element::U32 | Element::F32 => 4,
            Element::U64 | Element::I64 => 8,
        }
    }
}

/// A number that a fixed-width column can hold.
pub trait Scalar: Copy {
    /// The element type in the file.
    const ELEMENT: Element;
    /// Reads a value from the first bytes of a slice.
    ///
    /// # Panics
    /// If the slice is shorter than the value.
    fn read(bytes: &[u8]) -> Self;
    /// Appends the value, little-endian.
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! scalar {
    ($($type:ty => $element:ident),*) => {$(
        impl Scalar for $type {
            const ELEMENT: Element = Element::$element;
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                <$type>::from_le_bytes(*bytes.first_chunk().expect("a whole element"))
            }
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
scalar!(u32 => U32, u64 => U64, i64 => I64, f32 => F32);

/// Values of a fixed-width column.
#[derive(Debug, Clone, Copy)]
pub struct Fixed<'a, T> {
    bytes: &'a [u8],
    element: PhantomData<T>,
}

impl<'a, T: Scalar> Fixed<'a, T> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Fixed { bytes, element: PhantomData }
    }

    /// Returns the number of values.
    #[expect(clippy::len_without_is_empty, reason = "a column has as many values as its shard has records")]
    pub fn len(&self) -> usize {
        self.bytes.len() / size_of::<T>()
    }

    /// Returns the value of a row; `None` past the end.
    #[inline]
    pub fn get(&self, row: u64) -> Option<T> {
        let start = usize::try_from(row).ok()?.checked_mul(size_of::<T>())?;
        self.bytes.get(start..)?.get(..size_of::<T>()).map(T::read)
    }

    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        self.bytes.chunks_exact(size_of::<T>()).map(T::read)
    }

    /// Returns the values as stored: little-endian, at a multiple of 64 bytes in the file.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Values of a variable column.
#[derive(Debug, Clone, Copy)]
pub struct Variable<'a> {
    ends: Fixed<'a, u64>,
    bytes: &'a [u8],
}

impl<'a> Variable<'a> {
    pub(super) fn new(ends: &'a [u8], bytes: &'a [u8]) -> Self {
        Variable { ends: Fixed::new(ends), bytes }
    }

    /// Returns the bytes of a row; `None` past the end, or if the row ends of an unchecked column are inconsistent.
    #[inline]
    pub fn get(&self, row: u64) -> Option<&'a [u8]> {
        let start = if row == 0 { 0 } else { self.ends.get(row - 1)? };
        let end = self.ends.get(row)?;
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Iterates over the values in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let column = *self;
        (0..self.ends.len() as u64).map(move |row| column.get(row).unwrap_or_default())
    }

    pub(super) fn check(&self, column: &str) -> Result<()> {
        let wrong = |row, problem| Error::ColumnValue { column: column.to_owned(), row, problem };
        let (mut before, mut rows) = (0, 0);
        for end in self.ends.iter() {
            if end < before {
                return Err(wrong(rows, "a row that ends before the preceding one"));
            }
            (before, rows) = (end, rows + 1);
        }
        if before != self.bytes.len() as u64 {
            return Err(wrong(rows.saturating_sub(1), "the last row does not end where the column does"));
        }
        Ok(())
    }
}
