//! Converts rows of packed samples to one byte per sample, or to 16 bits, after undoing the predictor.

use half::f16;

use super::error::unsupported;
use super::layout::Layout;
use super::tags::{predictor, sample_format};
use crate::error::Error;
use crate::float_range::FloatRange;
use crate::format::Format;

/// The conversion for one image.
#[derive(Clone, Copy)]
pub(super) struct Samples {
    bits: u8,
    big_endian: bool,
    kind: SampleKind,
    predictor: Predictor,
    /// Samples per pixel within a chunk.
    per_pixel: usize,
}

#[derive(Clone, Copy)]
enum SampleKind {
    Unsigned,
    Signed,
    /// Floating point of 16, 32 or 64 bits, scaled by the range.
    Float(FloatRange),
}

/// Predictor (tag 317).
#[derive(Clone, Copy, PartialEq)]
enum Predictor {
    None,
    /// Differences between pixels.
    Horizontal,
    /// Differences between bytes, which are ordered by significance (Adobe Photoshop TIFF Technical Note 3).
    FloatingPoint,
}

impl Samples {
    /// Samples of one byte, as in JPEG.
    pub(super) const BYTES: Samples =
        Samples { bits: 8, big_endian: false, kind: SampleKind::Unsigned, predictor: Predictor::None, per_pixel: 1 };

    pub(super) fn new(layout: &Layout<'_>, float_range: Option<FloatRange>) -> Result<Self, Error> {
        let Layout { bits, big_endian, .. } = *layout;
        let kind = match (layout.sample_format, bits) {
            (sample_format::FLOAT, 16 | 32 | 64) => {
                SampleKind::Float(float_range.ok_or(Error::FloatSamples { format: Format::Tiff })?)
            }
            (sample_format::FLOAT, _) => {
                return Err(unsupported("floating-point samples of other than 16, 32 or 64 bits"));
            }
            (sample_format::SIGNED, 1 | 2 | 4 | 8 | 12 | 16 | 32) => SampleKind::Signed,
            // Undefined samples count as unsigned, as in Pillow.
            (sample_format::UNSIGNED | sample_format::UNDEFINED, 1 | 2 | 4 | 8 | 12 | 16 | 32) => SampleKind::Unsigned,
            (sample_format::UNSIGNED | sample_format::SIGNED | sample_format::UNDEFINED, _) => {
                return Err(unsupported("samples of other than 1, 2, 4, 8, 12, 16 or 32 bits"));
            }
            _ => return Err(unsupported("complex samples")),
        };
        let predictor = match (layout.predictor, bits) {
            _ if !layout.has_predictor() => Predictor::None,
            (predictor::HORIZONTAL, 8 | 16 | 32) => Predictor::Horizontal,
            (predictor::HORIZONTAL, _) => {
                return Err(unsupported("a predictor of samples other than 8, 16 or 32 bits"));
            }
            (predictor::FLOATING_POINT, _) if layout.is_float() => Predictor::FloatingPoint,
            (predictor::FLOATING_POINT, _) => return Err(unsupported("a floating-point predictor of integers")),
            _ => Predictor::None,
        };
        Ok(Samples { bits, big_endian, kind, predictor, per_pixel: layout.chunk_samples() })
    }

    /// Converts a row of samples to one byte each: up to 8 bits unchanged, the upper 8 of 12 and 16 bits, signed and 32-bit
    /// values clamped to 0 to 255 as in Pillow (except signed bytes, which count as unsigned, as in Pillow), and
    /// floating-point values scaled by the range. The predictor is undone in `row`.
    pub(super) fn row(self, row: &mut [u8], out: &mut [u8]) {
        self.undo_predictor(row);
        match (self.kind, self.bits) {
            (SampleKind::Float(range), bits) => self.floats(row, bits, out, |value| range.scale(value)),
            (_, 8) => out.copy_from_slice(&row[..out.len()]),
            (SampleKind::Signed, 16) => {
                self.each::<2, u8>(row, out, |v| i32::from(v as u16 as i16).clamp(0, 255) as u8);
            }
            (_, 16) => self.each::<2, u8>(row, out, |v| (v >> 8) as u8),
            (_, 32) => self.each::<4, u8>(row, out, |v| (v as i32).clamp(0, 255) as u8),
            (_, 12) => out.iter_mut().enumerate().for_each(|(i, out)| {
                // Two values in three bytes.
                let at = i / 2 * 3 + i % 2;
                *out = if i % 2 == 0 { row[at] } else { row[at] << 4 | row[at + 1] >> 4 };
            }),
            (_, bits) => {
                let (per_byte, mask) = (8 / usize::from(bits), (1u8 << bits) - 1);
                out.iter_mut().enumerate().for_each(|(i, out)| {
                    let shift = 8 - usize::from(bits) * (i % per_byte + 1);
                    *out = row[i / per_byte] >> shift & mask;
                });
            }
        }
    }

    /// Converts a row of samples of more than 8 bits to 16 bits each: 16 bits unchanged, 12 bits with their upper 4 repeated,
    /// signed and 32-bit values clamped to 0 to 65535, and floating-point values scaled by the range. The predictor is undone in
    /// `row`.
    pub(super) fn row_16(self, row: &mut [u8], out: &mut [u16]) {
        self.undo_predictor(row);
        match (self.kind, self.bits) {
            (SampleKind::Float(range), bits) => self.floats(row, bits, out, |value| range.scale_16(value)),
            (SampleKind::Signed, 16) => self.each::<2, u16>(row, out, |v| (v as u16 as i16).max(0) as u16),
            (_, 16) => self.each::<2, u16>(row, out, |v| v as u16),
            (_, 32) => self.each::<4, u16>(row, out, |v| (v as i32).clamp(0, 65_535) as u16),
            // 12 bits: two values in three bytes.
            _ => out.iter_mut().enumerate().for_each(|(i, out)| {
                let at = i / 2 * 3 + i % 2;
                let two = u16::from_be_bytes([row[at], row[at + 1]]);
                let value = if i % 2 == 0 { two >> 4 } else { two & 0xfff };
                *out = value << 4 | value >> 8;
            }),
        }
    }

    fn undo_predictor(self, row: &mut [u8]) {
        match self.predictor {
            Predictor::None => {}
            Predictor::Horizontal => self.undo_horizontal(row),
            Predictor::FloatingPoint => undo_bytes(row, self.per_pixel),
        }
    }

    fn each<const N: usize, T>(self, row: &[u8], out: &mut [T], convert: impl Fn(u32) -> T) {
        row.as_chunks::<N>().0.iter().zip(out).for_each(|(field, out)| *out = convert(self.load(field) as u32));
    }

    /// Scales floating-point samples of `bits` bits.
    fn floats<T>(self, row: &[u8], bits: u8, out: &mut [T], scale: impl Fn(f64) -> T) {
        let width = usize::from(bits / 8);
        let samples = row.len() / width;
        for (i, out) in out.iter_mut().enumerate() {
            let value = match self.predictor {
                // The most significant bytes of all samples come first.
                Predictor::FloatingPoint => (0..width).fold(0, |sum, k| sum << 8 | u64::from(row[k * samples + i])),
                _ => self.load(&row[i * width..][..width]),
            };
            *out = scale(match bits {
                16 => f16::from_bits(value as u16).to_f64(),
                32 => f32::from_bits(value as u32).into(),
                _ => f64::from_bits(value),
            });
        }
    }

    fn load(self, field: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        if self.big_endian { field.iter().fold(0, add) } else { field.iter().rev().fold(0, add) }
    }

    /// Adds to each sample the same sample of the previous pixel, modulo its range.
    fn undo_horizontal(self, row: &mut [u8]) {
        let (width, samples) = (usize::from(self.bits / 8), self.per_pixel);
        for at in (samples * width..row.len() / width * width).step_by(width) {
            let before = self.load(&row[at - samples * width..][..width]);
            let value = self.load(&row[at..at + width]).wrapping_add(before);
            for (i, byte) in row[at..at + width].iter_mut().enumerate() {
                *byte = (value >> (8 * if self.big_endian { width - 1 - i } else { i })) as u8;
            }
        }
    }
}

/// Adds to each byte the byte `distance` before it, modulo 256.
fn undo_bytes(row: &mut [u8], distance: usize) {
    for at in distance..row.len() {
        row[at] = row[at].wrapping_add(row[at - distance]);
    }
}
