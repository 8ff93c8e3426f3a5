//! Rows of packed samples to one byte a sample: undoes the predictor, then keeps what a pixel's byte needs of each sample.

use super::layout::{Layout, unsupported};
use crate::error::Error;

/// How rows of one image become bytes.
#[derive(Clone, Copy)]
pub(super) struct Samples {
    bits: u8,
    big_endian: bool,
    signed: bool,
    /// Horizontal predictor: how many samples a pixel has.
    predictor: Option<usize>,
}

impl Samples {
    /// Samples of bytes, as JPEG has them.
    pub(super) const BYTES: Samples = Samples { bits: 8, big_endian: false, signed: false, predictor: None };

    pub(super) fn new(layout: &Layout<'_>) -> Result<Self, Error> {
        let Layout { bits, big_endian, .. } = *layout;
        match (layout.sample_format, bits) {
            (3, _) => return Err(unsupported("floating-point samples")),
            // Signed bytes count as unsigned, and undefined samples as well, as in Pillow.
            (1 | 2 | 4, 1 | 2 | 4 | 8 | 12 | 16 | 32) => {}
            (1 | 2 | 4, _) => return Err(unsupported("samples of other than 1, 2, 4, 8, 12, 16 or 32 bits")),
            _ => return Err(unsupported("complex samples")),
        }
        let predictor = match (layout.predictor, bits) {
            (2, 8 | 16 | 32) => Some(layout.chunk_samples()),
            (2, _) => return Err(unsupported("a predictor of samples other than 8, 16 or 32 bits")),
            (3, _) => return Err(unsupported("a floating-point predictor")),
            _ => None,
        };
        Ok(Samples { bits, big_endian, signed: layout.sample_format == 2, predictor })
    }

    /// Writes one byte for each sample: values of up to 8 bits as they are, the upper 8 bits of 12 and 16,
    /// and signed or 32-bit values limited to 0 to 255, as Pillow limits them.
    pub(super) fn row(self, row: &mut [u8], out: &mut [u8]) {
        if let Some(samples) = self.predictor {
            self.undo(row, samples);
        }
        match self.bits {
            8 => out.copy_from_slice(&row[..out.len()]),
            16 if self.signed => self.each::<2>(row, out, |v| i32::from(v as u16 as i16).clamp(0, 255) as u8),
            16 => self.each::<2>(row, out, |v| (v >> 8) as u8),
            32 => self.each::<4>(row, out, |v| (v as i32).clamp(0, 255) as u8),
            12 => out.iter_mut().enumerate().for_each(|(i, out)| {
                // Two values in three bytes.
                let at = i / 2 * 3 + i % 2;
                *out = if i % 2 == 0 { row[at] } else { row[at] << 4 | row[at + 1] >> 4 };
            }),
            bits => {
                let (per_byte, mask) = (8 / usize::from(bits), (1u8 << bits) - 1);
                out.iter_mut().enumerate().for_each(|(i, out)| {
                    let shift = 8 - usize::from(bits) * (i % per_byte + 1);
                    *out = row[i / per_byte] >> shift & mask;
                });
            }
        }
    }

    fn each<const N: usize>(self, row: &[u8], out: &mut [u8], byte: impl Fn(u32) -> u8) {
        row.as_chunks::<N>().0.iter().zip(out).for_each(|(field, out)| *out = byte(self.load(field)));
    }

    fn load(self, field: &[u8]) -> u32 {
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        if self.big_endian { field.iter().fold(0, add) } else { field.iter().rev().fold(0, add) }
    }

    /// Each sample is the difference to the same sample of the pixel before it, modulo its range.
    fn undo(self, row: &mut [u8], samples: usize) {
        let width = usize::from(self.bits / 8);
        for at in (samples * width..row.len() / width * width).step_by(width) {
            let before = self.load(&row[at - samples * width..][..width]);
            let value = self.load(&row[at..at + width]).wrapping_add(before);
            for (i, byte) in row[at..at + width].iter_mut().enumerate() {
                *byte = (value >> (8 * if self.big_endian { width - 1 - i } else { i })) as u8;
            }
        }
    }
}
