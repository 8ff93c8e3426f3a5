//! The part of the protobuf wire format that `tf.train.Example` needs: varints, and fields of the wire types varint (0),
//! 64-bit (1), length-delimited (2) and 32-bit (5). Groups (3, 4) are refused.

use crate::{Error, Result};

/// Reads a part of a record's data; `base` is the part's offset in the record, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    base: usize,
}

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    /// A length-delimited field.
    Delimited(Reader<'a>),
    /// A field of a type that an Example never uses, skipped.
    Fixed64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, base: 0 }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the reader's offset in the record.
    pub(crate) fn offset(&self) -> usize {
        self.base
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[cold]
    pub(crate) fn error(&self, problem: &'static str) -> Error {
        Error::MalformedExample { offset: self.base, problem }
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) =
            self.bytes.split_at_checked(n).ok_or_else(|| self.error("a field longer than the record"))?;
        self.bytes = tail;
        self.base += n;
        Ok(head)
    }

    #[inline(always)]
    pub(crate) fn varint(&mut self) -> Result<u64> {
        match self.bytes {
            // Almost every tag, and most lengths.
            [byte, rest @ ..] if *byte < 0x80 => {
                (self.bytes, self.base) = (rest, self.base + 1);
                Ok(u64::from(*byte))
            }
            [low, high, rest @ ..] if *high < 0x80 => {
                (self.bytes, self.base) = (rest, self.base + 2);
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for (i, &byte) in self.bytes.iter().enumerate().take(10) {
            if i == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.take(i + 1)?;
                return Ok(value);
            }
        }
        Err(self.error(if self.bytes.len() < 10 { "an unfinished varint" } else { "a varint over 64 bits" }))
    }

    /// Returns the next field's number and value, or `None` at the end of the message.
    #[inline(always)]
    pub(crate) fn field(&mut self) -> Result<Option<(u64, Value<'a>)>> {
        if self.is_empty() {
            return Ok(None);
        }
        let start = *self;
        let tag = self.varint()?;
        if tag >> 3 == 0 || tag >> 3 >= 1 << 29 {
            return Err(start.error("an impossible field number"));
        }
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => {
                self.take(8)?;
                Value::Fixed64
            }
            2 => {
                let length = self.varint()?;
                let base = self.base;
                let length = usize::try_from(length).map_err(|_| self.error("a field longer than the record"))?;
                Value::Delimited(Reader { bytes: self.take(length)?, base })
            }
            5 => Value::Fixed32(*self.take(4)?.first_chunk().expect("four bytes")),
            _ => return Err(start.error("an unsupported wire type")),
        };
        Ok(Some((tag >> 3, value)))
    }
}

/// Returns the length of `value` as a minimal varint, in bytes.
pub(crate) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends `value` as a minimal varint.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the tag and the length of a length-delimited field.
pub(crate) fn put_delimited(field: u8, length: usize, out: &mut Vec<u8>) {
    out.push(field << 3 | 2);
    put_varint(length as u64, out);
}

/// Returns the length of a whole length-delimited field with a number below 16, in bytes.
pub(crate) fn delimited_len(length: usize) -> usize {
    1 + varint_len(length as u64) + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_their_limits() {
        for (value, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10), (1 << 63, 10)] {
            let mut out = vec![];
            put_varint(value, &mut out);
            assert_eq!((out.len(), varint_len(value)), (length, length), "{value}");
            assert_eq!(Reader::new(&out).varint().unwrap(), value);
            assert!(Reader::new(&out[..length - 1]).varint().is_err());
        }
        assert!(Reader::new(&[0xff; 10]).varint().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint().is_err());
    }
}
