//! The value around an array that is smaller than its crop.

use half::{bf16, f16};
use shardtool_format::array::ArrayDtype;

/// Returns a number as the little-endian bytes of an element; `None` if the type cannot hold it.
pub(crate) fn element(value: f64, dtype: ArrayDtype) -> Option<Vec<u8>> {
    // 2⁶⁴ is the first number that no integer type holds, and every f64 below it is exact in 128 bits.
    let integer = || (value.fract() == 0.0 && value.abs() <= 2f64.powi(64)).then_some(value as i128);
    macro_rules! integer {
        ($type:ty) => {
            <$type>::try_from(integer()?).ok()?.to_le_bytes().to_vec()
        };
    }
    Some(match dtype {
        ArrayDtype::U8 => integer!(u8),
        ArrayDtype::I8 => integer!(i8),
        ArrayDtype::U16 => integer!(u16),
        ArrayDtype::I16 => integer!(i16),
        ArrayDtype::U32 => integer!(u32),
        ArrayDtype::I32 => integer!(i32),
        ArrayDtype::U64 => integer!(u64),
        ArrayDtype::I64 => integer!(i64),
        ArrayDtype::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        ArrayDtype::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        ArrayDtype::F32 => (value as f32).to_le_bytes().to_vec(),
        ArrayDtype::F64 => value.to_le_bytes().to_vec(),
        ArrayDtype::Bool if value == 0.0 || value == 1.0 => vec![value as u8],
        ArrayDtype::Bool => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_only_what_the_type_holds() {
        assert_eq!(element(-1000.0, ArrayDtype::I16), Some(vec![0x18, 0xfc]));
        assert_eq!(element(255.0, ArrayDtype::U8), Some(vec![255]));
        assert_eq!(element(1.5, ArrayDtype::F32), Some(vec![0, 0, 0xc0, 0x3f]));
        assert_eq!(element(1.0, ArrayDtype::F16), Some(vec![0, 0x3c]));
        assert_eq!(element(1.0, ArrayDtype::Bf16), Some(vec![0x80, 0x3f]));
        assert_eq!(element(1.0, ArrayDtype::Bool), Some(vec![1]));
        assert_eq!(element(-9_223_372_036_854_775_808.0, ArrayDtype::I64), Some([vec![0; 7], vec![0x80]].concat()));
        for (value, dtype) in [
            (256.0, ArrayDtype::U8),
            (-1.0, ArrayDtype::U64),
            (0.5, ArrayDtype::I32),
            (2.0, ArrayDtype::Bool),
            (f64::NAN, ArrayDtype::I8),
            (f64::INFINITY, ArrayDtype::U64),
            (2f64.powi(64), ArrayDtype::U64),
        ] {
            assert_eq!(element(value, dtype), None, "{value} as {}", dtype.name());
        }
    }
}
