//! Encodings of MDS columns. Source: mosaicml-streaming, `streaming/base/format/mds/encodings.py`.

use crate::sample::{Number as Number64, Values};
use crate::source::archive::json;
use crate::source::json_text;

/// How the values of a column are encoded.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Encoding {
    /// Raw bytes: images, texts, pickles, lists of images.
    Bytes,
    /// A number as text.
    TextInt,
    TextFloat,
    Scalar(Number),
    /// An array. Its type and shape are in the encoding's name or precede its values.
    Array {
        number: Option<Number>,
        shape: Option<Vec<u64>>,
    },
    /// Decoded pixels of PIL: u32 width, height and length of the mode's name; the mode; the pixels.
    Pil,
    Json,
}

/// Types of numbers, with their length in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Unsigned(usize),
    Signed(usize),
    Float(usize),
}

/// A decoded value.
pub(super) enum Decoded {
    Values(Values),
    /// Numbers and their shape.
    Array(Values, Vec<i64>),
    /// The members of a JSON object.
    Members(Vec<(String, Values)>),
}

impl Encoding {
    /// Parses an encoding's name; `None` if it is unknown.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (base, arguments) = name.split_once(':').map_or((name, None), |(base, rest)| (base, Some(rest)));
        Some(match base {
            "ndarray" => {
                let mut arguments = arguments.into_iter().flat_map(|text| text.split(':'));
                let number = match arguments.next() {
                    Some(number) => Some(Number::parse(number)?),
                    None => None,
                };
                let sides = |text: &str| text.split(',').map(|n| n.parse().ok()).collect::<Option<_>>();
                let shape = match arguments.next() {
                    Some(text) => Some(sides(text)?),
                    None => None,
                };
                Encoding::Array { number, shape }
            }
            "bytes" | "str" | "jpeg" | "png" | "pkl" | "jpegarray" | "jpeg_array" | "str_decimal" | "list[pil]"
            | "list[jpeg]" | "list[png]" => Encoding::Bytes,
            "int" => Encoding::Scalar(Number::Signed(8)),
            "str_int" => Encoding::TextInt,
            "str_float" => Encoding::TextFloat,
            "pil" => Encoding::Pil,
            "json" => Encoding::Json,
            _ => Encoding::Scalar(Number::parse(base)?),
        })
    }

    /// Decodes a value that is not the sample's image; `None` if it does not follow this encoding.
    pub(super) fn decode(&self, value: &[u8]) -> Option<Decoded> {
        let text = || std::str::from_utf8(value).ok();
        Some(Decoded::Values(match self {
            Encoding::Bytes | Encoding::Pil => Values::Bytes(value.into()),
            Encoding::TextInt => Values::Int64(text()?.parse().ok()?),
            Encoding::TextFloat => Values::Numbers([Number64::Float64(text()?.trim().parse().ok()?)].into()),
            Encoding::Scalar(number) if number.bytes() != value.len() => return None,
            Encoding::Scalar(number) => match number.values(value) {
                Values::Int64s(one) => Values::Int64(one[0]),
                Values::Floats(one) => Values::Float(one[0]),
                other => other,
            },
            Encoding::Array { .. } => {
                let (number, shape, content) = self.array(value)?;
                let shape = shape.iter().map(|side| i64::try_from(*side).ok()).collect::<Option<_>>()?;
                return Some(Decoded::Array(number.values(content), shape));
            }
            Encoding::Json => match json_text::parse(value).ok()? {
                serde_json::Value::Object(members) => {
                    let members = members.iter().map(|(name, value)| (name.clone(), json::values(value)));
                    return Some(Decoded::Members(members.collect()));
                }
                other => json::values(&other),
            },
        }))
    }

    /// Returns the sample's image as a file: as stored, or converted to a BMP in `buffer` if it is stored as pixels.
    /// `None` if it cannot be converted.
    pub(super) fn image<'a>(&self, value: &'a [u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let (width, height, channels, pixels) = match self {
            Encoding::Bytes => return Some(value),
            Encoding::Pil => {
                let (head, rest) = value.split_first_chunk::<12>()?;
                let number = |at: usize| head[at..].first_chunk().map(|n| u32::from_le_bytes(*n));
                let (mode, pixels) = rest.split_at_checked(number(8)? as usize)?;
                let channels = match mode {
                    b"RGB" => 3,
                    b"L" => 1,
                    _ => return None,
                };
                (number(0)?, number(4)?, channels, pixels)
            }
            Encoding::Array { .. } => match self.array(value)? {
                (Number::Unsigned(1), shape, pixels) => match shape[..] {
                    [height, width, channels @ (1 | 3)] => {
                        (width.try_into().ok()?, height.try_into().ok()?, channels as usize, pixels)
                    }
                    [height, width] => (width.try_into().ok()?, height.try_into().ok()?, 1, pixels),
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        };
        bmp(width, height, channels, pixels, buffer)?;
        Some(buffer)
    }

    /// Returns the type, the shape and the bytes of an array.
    fn array<'a>(&self, mut value: &'a [u8]) -> Option<(Number, Vec<u64>, &'a [u8])> {
        let Encoding::Array { number, shape } = self else { return None };
        let number = match number {
            Some(number) => *number,
            None => {
                let (code, rest) = value.split_first()?;
                value = rest;
                Number::of_code(*code)?
            }
        };
        let shape = match shape {
            Some(shape) => shape.clone(),
            None => {
                // Low two bits: log2 of the bytes per dimension; high bits: number of dimensions.
                let (head, rest) = value.split_first()?;
                let side = 1usize << (head & 3);
                let (sides, rest) = rest.split_at_checked(usize::from(head >> 2) * side)?;
                value = rest;
                sides.chunks_exact(side).map(unsigned).collect()
            }
        };
        let count = shape.iter().try_fold(1u64, |count, side| count.checked_mul(*side))?;
        (count.checked_mul(number.bytes() as u64)? == value.len() as u64).then_some((number, shape, value))
    }
}

impl Number {
    fn parse(name: &str) -> Option<Self> {
        let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let bytes = match digits {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            _ => return None,
        };
        match name.strip_suffix(digits)? {
            "uint" => Some(Number::Unsigned(bytes)),
            "int" => Some(Number::Signed(bytes)),
            "float" if bytes > 1 => Some(Number::Float(bytes)),
            _ => None,
        }
    }

    /// Parses the code of a type before an array: its size in bits, and its kind in the low two bits.
    fn of_code(code: u8) -> Option<Self> {
        let bytes = match code & !3 {
            bits @ (8 | 16 | 32 | 64) => usize::from(bits / 8),
            _ => return None,
        };
        match code & 3 {
            0 => Some(Number::Unsigned(bytes)),
            1 => Some(Number::Signed(bytes)),
            2 if bytes > 1 => Some(Number::Float(bytes)),
            _ => None,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Number::Unsigned(bytes) | Number::Signed(bytes) | Number::Float(bytes) => bytes,
        }
    }

    /// Decodes whole numbers or floats.
    fn values(self, bytes: &[u8]) -> Values {
        let chunks = bytes.chunks_exact(self.bytes());
        match self {
            Number::Unsigned(8) => Values::logical(chunks.map(unsigned)),
            Number::Unsigned(_) => Values::Int64s(chunks.map(|chunk| unsigned(chunk) as i64).collect()),
            Number::Signed(bytes) => {
                let unused = 64 - 8 * bytes as u32;
                Values::Int64s(chunks.map(|chunk| (unsigned(chunk) << unused) as i64 >> unused).collect())
            }
            Number::Float(8) => Values::logical(chunks.map(|chunk| f64::from_bits(unsigned(chunk)))),
            Number::Float(bytes) => Values::Floats(chunks.map(|chunk| float(unsigned(chunk), bytes)).collect()),
        }
    }
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Converts IEEE 754 binary16 or binary32 to binary32.
fn float(bits: u64, bytes: usize) -> f32 {
    match bytes {
        4 => f32::from_bits(bits as u32),
        _ => match half::f16::from_bits(bits as u16) {
            // Drops the payload of the NaN, so that equal arrays are stored as equal bytes.
            nan if nan.is_nan() => f32::NAN.copysign(nan.to_f32()),
            number => number.to_f32(),
        },
    }
}

/// Writes a BMP of 24 bits per pixel, top row first, which preserves grey and RGB pixels exactly.
fn bmp(width: u32, height: u32, channels: usize, pixels: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let row = u64::from(width) * channels as u64;
    if row == 0 || u64::from(height).checked_mul(row)? != pixels.len() as u64 {
        return None;
    }
    let (wide, high) = (i32::try_from(width).ok()?, i32::try_from(height).ok()?);
    let stride = (3 * width as usize).next_multiple_of(4);
    let size = u32::try_from(stride.checked_mul(height as usize)?.checked_add(54)?).ok()?;
    out.clear();
    out.extend_from_slice(b"BM");
    // BITMAPFILEHEADER, then BITMAPINFOHEADER; a negative height means top row first.
    for number in [size, 0, 54, 40] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [wide, -high, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for row in pixels.chunks_exact(row as usize) {
        let begin = out.len();
        match channels {
            1 => row.iter().for_each(|grey| out.extend_from_slice(&[*grey; 3])),
            _ => row.chunks_exact(3).for_each(|rgb| out.extend_from_slice(&[rgb[2], rgb[1], rgb[0]])),
        }
        out.resize(begin + stride, 0);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_float16_and_sign_extends_integers() {
        for (bits, value) in [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 5.960_464_5e-8), (0x7bff, 65504.0), (0, 0.0)] {
            assert_eq!(float(bits, 2), value);
        }
        assert_eq!(float(0x7c00, 2), f32::INFINITY);
        assert_eq!(float(0x7c01, 2).to_bits(), f32::NAN.to_bits());
        assert_eq!(float(0x83ff, 2), -6.097_555e-5);
        assert_eq!(Number::Signed(2).values(&[0xff, 0xff, 2, 0]), Values::Int64s([-1, 2].into()));
        assert_eq!(Number::Unsigned(8).values(&[0xff; 8]), Values::logical([u64::MAX]));
    }
}
