//! Values of a column, as views into the index's bytes.

use super::validity;
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
    validity: Option<&'a [u8]>,
    values: &'a [u8],
    element: PhantomData<T>,
}

impl<'a, T: Scalar> Fixed<'a, T> {
    pub(super) fn new(validity: Option<&'a [u8]>, values: &'a [u8]) -> Self {
        Fixed { validity, values, element: PhantomData }
    }

    /// Returns the number of rows.
    #[expect(clippy::len_without_is_empty, reason = "a column has as many rows as its shard has records")]
    pub fn len(&self) -> usize {
        self.values.len() / size_of::<T>()
    }

    /// Returns the value of a row; `None` past the end or if the row is null.
    #[inline]
    pub fn get(&self, row: u64) -> Option<T> {
        if self.validity.is_some_and(|bits| validity::is_set(bits, row) != Some(true)) {
            return None;
        }
        self.stored(row)
    }

    /// Iterates over the rows in order; null rows are `None`.
    pub fn iter(&self) -> impl Iterator<Item = Option<T>> + use<'a, T> {
        let column = *self;
        (0..self.len() as u64).map(move |row| column.get(row))
    }

    /// Returns the validity bitmap as stored, if a row is null: one bit a row, least significant bit first, 1 = present.
    pub fn validity(&self) -> Option<&'a [u8]> {
        self.validity
    }

    /// Returns the values as stored: little-endian, at a multiple of 64 bytes in the file, 0 in null rows.
    pub fn values(&self) -> &'a [u8] {
        self.values
    }

    /// Returns the bytes of the stored value of a row, null or not; `None` past the end.
    #[inline]
    pub fn stored_bytes(&self, row: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(row).ok()?.checked_mul(size_of::<T>())?;
        self.values.get(start..)?.get(..size_of::<T>())
    }

    /// Returns the stored value of a row, null or not; `None` past the end.
    #[inline]
    fn stored(&self, row: u64) -> Option<T> {
        self.stored_bytes(row).map(T::read)
    }
}

/// Values of a variable column.
#[derive(Debug, Clone, Copy)]
pub struct Variable<'a> {
    validity: Option<&'a [u8]>,
    offsets: Fixed<'a, i64>,
    values: &'a [u8],
}

impl<'a> Variable<'a> {
    pub(super) fn new(validity: Option<&'a [u8]>, offsets: &'a [u8], values: &'a [u8]) -> Self {
        Variable { validity, offsets: Fixed::new(None, offsets), values }
    }

    /// Returns the number of rows.
    #[expect(clippy::len_without_is_empty, reason = "a column has as many rows as its shard has records")]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the bytes of a row; `None` past the end, if the row is null, or if the offsets of an unchecked column are
    /// inconsistent.
    #[inline]
    pub fn get(&self, row: u64) -> Option<&'a [u8]> {
        if self.validity.is_some_and(|bits| validity::is_set(bits, row) != Some(true)) {
            return None;
        }
        let (start, end) = (self.offsets.stored(row)?, self.offsets.stored(row.checked_add(1)?)?);
        self.values.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// Iterates over the rows in order; null rows are `None`.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let column = *self;
        (0..self.len() as u64).map(move |row| column.get(row))
    }

    /// Returns the validity bitmap as stored, if a row is null: one bit a row, least significant bit first, 1 = present.
    pub fn validity(&self) -> Option<&'a [u8]> {
        self.validity
    }

    /// Returns the offsets as stored: rows + 1 little-endian `i64`, at a multiple of 64 bytes in the file. Row `i` is
    /// bytes `offsets[i]..offsets[i + 1]` of [`Variable::values`].
    pub fn offsets(&self) -> &'a [u8] {
        self.offsets.values()
    }

    /// Returns the bytes of all rows.
    pub fn values(&self) -> &'a [u8] {
        self.values
    }

    /// Returns whether a row, null or not, has no bytes.
    pub(super) fn is_empty_row(&self, row: u64) -> bool {
        self.offsets.stored(row) == self.offsets.stored(row + 1)
    }

    /// Returns the first row whose offsets are wrong, and what is wrong with them.
    pub(super) fn check_offsets(&self) -> Result<(), (u64, &'static str)> {
        let (mut before, mut row) = (0, 0);
        for (i, offset) in self.offsets.iter().flatten().enumerate() {
            row = (i as u64).saturating_sub(1);
            match i {
                0 if offset != 0 => return Err((row, "a first offset that is not 0")),
                _ if offset < before => return Err((row, "an offset that is less than the preceding one")),
                _ => before = offset,
            }
        }
        if before != self.values.len() as i64 {
            return Err((row, "a last offset that is not the length of the values"));
        }
        Ok(())
    }
}
