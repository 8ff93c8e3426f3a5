//! Optical flow in the codings of its datasets, converted to one: `[H, W, 2]` floats, how far a pixel moves to the right and down in
//! pixels, NaN where it is not known.

use super::Array;
use crate::error::ArrayRefusal;
use half::f16;
use shardtool_format::array::ArrayDtype;
use std::borrow::Cow;

/// In `.flo` files, a pixel whose flow is not known has larger values (Middlebury, "flow-code").
const UNKNOWN: f64 = 1e9;

/// Converts an array: floats of two values, or of three whose third is 0 (PFM), or 16-bit integers of three (KITTI's PNGs), whose
/// third says whether the flow is known.
///
/// # Errors
/// [`ArrayRefusal::Vectors`].
pub(super) fn of_flow(array: Array<'_>) -> Result<Array<'_>, ArrayRefusal> {
    let refused = || Err(ArrayRefusal::Vectors { dtype: array.dtype.name(), shape: array.shape.clone() });
    let [height, width, values] = array.shape[..] else { return refused() };
    let floats: Vec<u8> = match (array.dtype, values) {
        (ArrayDtype::U16, 3) if array.data.as_chunks::<6>().0.iter().any(|pixel| !is_flag([pixel[4], pixel[5]])) => {
            return refused();
        }
        (ArrayDtype::U16, 3) => array.data.as_chunks::<6>().0.iter().flat_map(kitti).flatten().collect(),
        (ArrayDtype::F16, 2) => {
            let float = |bytes: &[u8; 2]| f16::from_le_bytes(*bytes).to_f32().to_le_bytes();
            array.data.as_chunks().0.iter().flat_map(float).collect()
        }
        (ArrayDtype::F32, 2) => array.data.into_owned(),
        (ArrayDtype::F32, 3) => {
            let pixels = array.data.as_chunks::<12>().0;
            if pixels.iter().any(|pixel| f32::from_le_bytes(last(pixel)) != 0.0) {
                return refused();
            }
            pixels.iter().flat_map(|pixel| &pixel[..8]).copied().collect()
        }
        (ArrayDtype::F64, 2) => {
            let mut data = array.data.into_owned();
            mark::<16>(
                &mut data,
                |pixel| [0, 8].map(|at| f64::from_le_bytes(eight(pixel, at))),
                f64::NAN.to_le_bytes(),
            );
            return Ok(Array { data: Cow::Owned(data), ..array });
        }
        _ => return refused(),
    };
    let mut data = floats;
    mark::<8>(&mut data, |pixel| [0, 4].map(|at| f32::from_le_bytes(four(pixel, at)).into()), f32::NAN.to_le_bytes());
    Ok(Array { shape: vec![height, width, 2], dtype: ArrayDtype::F32, data: Cow::Owned(data) })
}

/// Returns whether the third value of a pixel of KITTI says whether its flow is known: 0 or 1.
fn is_flag(value: [u8; 2]) -> bool {
    u16::from_le_bytes(value) <= 1
}

/// Converts a pixel of KITTI: "u-flow = (u - 2^15) / 64", of the first and the second value; the third is 0 where it is not known
/// (development kit of the flow benchmark).
fn kitti(pixel: &[u8; 6]) -> [[u8; 4]; 2] {
    let value = |at: usize| u16::from_le_bytes([pixel[at], pixel[at + 1]]);
    let known = value(4) != 0;
    [0, 2].map(|at| if known { (f32::from(value(at)) - 32_768.0) / 64.0 } else { f32::NAN }.to_le_bytes())
}

/// Makes both values of pixels NaN of which one is too large or not finite.
fn mark<const B: usize>(data: &mut [u8], load: impl Fn(&[u8; B]) -> [f64; 2], nan: impl AsRef<[u8]>) {
    for pixel in data.as_chunks_mut::<B>().0 {
        // Also if one is NaN.
        if !load(pixel).iter().all(|value| value.abs() <= UNKNOWN) {
            pixel.chunks_exact_mut(B / 2).for_each(|value| value.copy_from_slice(nan.as_ref()));
        }
    }
}

fn last(pixel: &[u8; 12]) -> [u8; 4] {
    std::array::from_fn(|byte| pixel[8 + byte])
}

fn four(pixel: &[u8; 8], at: usize) -> [u8; 4] {
    std::array::from_fn(|byte| pixel[at + byte])
}

fn eight(pixel: &[u8; 16], at: usize) -> [u8; 8] {
    std::array::from_fn(|byte| pixel[at + byte])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(dtype: ArrayDtype, values: u64, data: Vec<u8>) -> Array<'static> {
        let pixels = data.len() as u64 / (values * dtype.bytes() as u64);
        Array { shape: vec![1, pixels, values], dtype, data: Cow::Owned(data) }
    }

    fn floats(array: &Array<'_>) -> Vec<f32> {
        array.data.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
    }

    #[test]
    fn codings_of_datasets() {
        // 1.5 to the right, 2 up; then a pixel that is not known.
        let pixels = [32_768u16 + 96, 32_768 - 128, 1, 32_768, 32_768, 0];
        let kitti = of_flow(array(ArrayDtype::U16, 3, pixels.map(u16::to_le_bytes).concat())).unwrap();
        assert_eq!((kitti.shape.clone(), kitti.dtype), (vec![1, 2, 2], ArrayDtype::F32));
        assert_eq!(floats(&kitti)[..2], [1.5, -2.0]);
        assert!(floats(&kitti)[2..].iter().all(|value| value.is_nan()));
        let middlebury = [1.0f32, -2.0, 1.666_666_8e9, 0.5, 0.25, f32::INFINITY];
        let found = floats(&of_flow(array(ArrayDtype::F32, 2, middlebury.map(f32::to_le_bytes).concat())).unwrap());
        assert_eq!(found[..2], [1.0, -2.0]);
        assert!(found[2..].iter().all(|value| value.is_nan()));
        let things = [1.0f32, -2.0, 0.0, 3.0, 4.0, -0.0];
        let found = of_flow(array(ArrayDtype::F32, 3, things.map(f32::to_le_bytes).concat())).unwrap();
        assert_eq!(floats(&found), [1.0, -2.0, 3.0, 4.0]);
        let double = of_flow(array(ArrayDtype::F64, 2, [0.1f64, 2e9].map(f64::to_le_bytes).concat())).unwrap();
        assert_eq!(double.dtype, ArrayDtype::F64);
        assert!(double.data.as_chunks().0.iter().all(|value| f64::from_le_bytes(*value).is_nan()));
        let half = of_flow(array(ArrayDtype::F16, 2, vec![0, 0x3c, 0, 0xc0])).unwrap();
        assert_eq!(floats(&half), [1.0, -2.0]);
    }

    #[test]
    fn other_arrays_are_refused() {
        let normals = [0.0f32, 0.0, 1.0].map(f32::to_le_bytes).concat();
        for other in [
            array(ArrayDtype::U16, 3, [32_768u16, 32_768, 2].map(u16::to_le_bytes).concat()),
            array(ArrayDtype::F32, 3, normals),
            array(ArrayDtype::U8, 3, vec![0; 3]),
            array(ArrayDtype::I16, 2, vec![0; 4]),
            array(ArrayDtype::F32, 1, vec![0; 4]),
            Array { shape: vec![2, 2], dtype: ArrayDtype::F32, data: Cow::Owned(vec![0; 16]) },
        ] {
            assert!(matches!(of_flow(other), Err(ArrayRefusal::Vectors { .. })));
        }
    }
}
