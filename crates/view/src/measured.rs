//! Values that a record has for each pixel of its image, as pictures: depths and disparities in grey, optical flow in the colours of its
//! directions, surface normals as colours.

use crate::picture::{self, Error, Stored, admit, limits};
use shardtool_decode::{
    ArrayBox, EncodedImage, Format, Limits, PixelFormat, StoredSamples, catch_library_panic, decode_array_box_of,
    decode_values, mask_dtype, reduce_longer,
};
use shardtool_format::array::{ArrayDtype, ArrayFeatures, ArrayLayout};
use shardtool_format::example::{Example, Feature};

/// Bytes of working memory for each byte of values: as stored, and as floats.
const COPIES: u64 = 4;

/// Where the values of a pixel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Values of a pixel: 1, 2 of a flow, or 3 of a normal.
    count: usize,
    /// Whether they lie in planes, `[count, H, W]`, else `[H, W]` or `[H, W, count]`.
    planes: bool,
}

impl Layout {
    const ONE: Layout = Layout { count: 1, planes: false };

    /// Returns the layout of an array that has values for each pixel of an image of this size (width, height).
    fn of(shape: &[i64], (width, height): (u32, u32)) -> Option<Self> {
        let (width, height) = (i64::from(width), i64::from(height));
        match *shape {
            [h, w] if (h, w) == (height, width) => Some(Layout::ONE),
            [h, w, count @ (2 | 3)] if (h, w) == (height, width) => {
                Some(Layout { count: count as usize, planes: false })
            }
            [count @ (2 | 3), h, w] if (h, w) == (height, width) => {
                Some(Layout { count: count as usize, planes: true })
            }
            _ => None,
        }
    }
}

/// Returns the features that have values for each pixel of the record's image: arrays, and grey images of 16 bits that are not named
/// for masks.
pub(crate) fn names(example: &Example<'_>, image: &Stored<'_>) -> Vec<String> {
    let is = |(name, feature): &(std::borrow::Cow<'_, str>, Feature<'_>)| match ArrayFeatures::of(example, name) {
        Some(array) => Layout::of(&array.shape.iter().collect::<Vec<_>>(), image.size).is_some(),
        None => match feature {
            Feature::Bytes(list) => list.single().is_some_and(|bytes| is_deep(name, bytes, image)),
            _ => false,
        },
    };
    example.features().iter().filter(|feature| is(feature)).map(|(name, _)| name.to_string()).collect()
}

/// Returns whether bytes are a grey image of 16 bits of the size of the record's image, which are not those of the image itself, and
/// their feature is not named for masks.
pub(crate) fn is_deep(name: &str, bytes: &[u8], image: &Stored<'_>) -> bool {
    let is_own = std::ptr::eq(bytes.as_ptr(), image.bytes.as_ptr());
    !is_own
        && mask_dtype(name).is_none()
        && Stored::parse(bytes).is_ok_and(|found| {
            let samples = EncodedImage::parse(bytes).ok().and_then(|image| image.stored_samples());
            let grey = |samples: StoredSamples| samples.format == PixelFormat::GRAY16;
            matches!(found.format, Format::Png | Format::Tiff) && found.size == image.size && samples.is_some_and(grey)
        })
}

/// Returns the values of a feature as a PNG of at most `side` pixels.
pub(crate) fn drawn(example: &Example<'_>, name: &str, image: &Stored<'_>, side: u32) -> Result<Vec<u8>, Error> {
    let bytes = u64::from(image.size.0) * u64::from(image.size.1) * 16;
    let _held = admit(COPIES * bytes)?;
    let draw = || -> Result<Vec<u8>, Error> {
        let (layout, values) = values(example, name, image.size)?;
        let size = reduce_longer(image.size, side);
        picture::png(size, &pixels(layout, &values, image.size, size), png::ColorType::Rgb)
    };
    catch_library_panic(draw).map_err(Error::Panic)?
}

/// Returns the values of a feature.
fn values(example: &Example<'_>, name: &str, size: (u32, u32)) -> Result<(Layout, Vec<f32>), Error> {
    let Some(array) = ArrayFeatures::of(example, name) else {
        let found = decode_values(example.bytes(name).ok_or(Error::NoImage)?, &limits())?;
        return Ok((Layout::ONE, floats(found.dtype, &found.data)));
    };
    let (shape, chunk): (Vec<_>, Vec<_>) = (array.shape.iter().collect(), array.chunk.iter().collect());
    let layout = Layout::of(&shape, size).ok_or(Error::NoImage)?;
    let stored = ArrayLayout::new(&shape, &chunk, array.dtype, array.codec)
        .map_err(|source| shardtool_decode::Error::Array { source })?;
    let allowed = Limits::default().with_max_bytes(limits().max_bytes.min(u64::from(size.0) * u64::from(size.1) * 16));
    let mut data = vec![0; stored.bytes() as usize];
    let chunks = || array.chunks.into_iter().flat_map(|list| list.iter());
    let whole = ArrayBox::contiguous(vec![0; shape.len()], shape.iter().map(|length| *length as u64).collect());
    decode_array_box_of(&stored, &whole, chunks, &allowed, &mut vec![], &mut data)?;
    let mut values = floats(stored.dtype(), &data);
    // Of integers that code normals, 0 is -1 and the largest 1.
    let largest = match stored.dtype() {
        ArrayDtype::U8 => 255.0,
        ArrayDtype::U16 => 65535.0,
        _ => return Ok((layout, values)),
    };
    if layout.count == 3 {
        values.iter_mut().for_each(|value| *value = 2.0 * *value / largest - 1.0);
    }
    Ok((layout, values))
}

/// Converts little-endian elements.
fn floats(dtype: ArrayDtype, data: &[u8]) -> Vec<f32> {
    macro_rules! all {
        ($type:ty) => {
            data.as_chunks().0.iter().map(|bytes| <$type>::from_le_bytes(*bytes) as f32).collect()
        };
    }
    match dtype {
        ArrayDtype::U8 | ArrayDtype::Bool => all!(u8),
        ArrayDtype::I8 => all!(i8),
        ArrayDtype::U16 => all!(u16),
        ArrayDtype::I16 => all!(i16),
        ArrayDtype::U32 => all!(u32),
        ArrayDtype::I32 => all!(i32),
        ArrayDtype::U64 => all!(u64),
        ArrayDtype::I64 => all!(i64),
        ArrayDtype::F32 => all!(f32),
        ArrayDtype::F64 => all!(f64),
        ArrayDtype::F16 => data.as_chunks().0.iter().map(|bytes| half::f16::from_le_bytes(*bytes).to_f32()).collect(),
        ArrayDtype::Bf16 => data.as_chunks().0.iter().map(|bytes| half::bf16::from_le_bytes(*bytes).to_f32()).collect(),
    }
}

/// Returns RGB pixels of the size `to`, each that of the nearest pixel. What is not finite is white.
fn pixels(layout: Layout, values: &[f32], from: (u32, u32), to: (u32, u32)) -> Vec<u8> {
    let all = from.0 as usize * from.1 as usize;
    let at = |pixel: usize| {
        let value = |number: usize| match number < layout.count {
            true if layout.planes => values[number * all + pixel],
            true => values[layout.count * pixel + number],
            false => 0.0,
        };
        [0, 1, 2].map(value)
    };
    let measure = |[x, y, z]: [f32; 3]| if layout.count == 1 { x } else { x.hypot(y).hypot(z) };
    let known: Vec<f32> = (0..all).map(at).map(measure).filter(|value| value.is_finite()).collect();
    let (low, high) = range(known);
    let colour = |value: [f32; 3]| match layout.count {
        _ if !measure(value).is_finite() => [255; 3],
        1 => [((value[0] - low) / (high - low).max(f32::MIN_POSITIVE) * 255.0) as u8; 3],
        2 => direction([value[0], value[1]], high),
        _ => normal(value),
    };
    let source = |place: u32, from: u32, to: u32| (u64::from(place) * u64::from(from) / u64::from(to)) as usize;
    let rows = (0..to.1).map(|y| source(y, from.1, to.1));
    rows.flat_map(|y| (0..to.0).map(move |x| y * from.0 as usize + source(x, from.0, to.0)))
        .flat_map(|pixel| colour(at(pixel)))
        .collect()
}

/// Returns the values below which two and 98 hundredths lie.
fn range(mut values: Vec<f32>) -> (f32, f32) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mut share = |hundredths: usize| {
        let at = (values.len() - 1) * hundredths / 100;
        *values.select_nth_unstable_by(at, f32::total_cmp).1
    };
    (share(2), share(98))
}

/// Returns the colour of a surface normal, as datasets code it in 8 bits; one that is not known is white.
fn normal(values: [f32; 3]) -> [u8; 3] {
    if values == [0.0; 3] {
        return [255; 3];
    }
    values.map(|value| ((value + 1.0) / 2.0 * 255.0).round() as u8)
}

/// Returns the colour of a vector: white where it is 0, full where it is as long as `longest`.
fn direction([x, y]: [f32; 2], longest: f32) -> [u8; 3] {
    let full = (x.hypot(y) / longest.max(f32::MIN_POSITIVE)).min(1.0);
    // Three cosines a third of a turn apart: each direction has another hue.
    [0.0, 1.0, 2.0].map(|third| {
        let hue = 0.5 + 0.5 * (y.atan2(x) - third * std::f32::consts::TAU / 3.0).cos();
        ((1.0 - full + full * hue) * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_have_colours_and_lengths_saturate() {
        let [right, left, still] = [[4.0, 0.0], [-4.0, 0.0], [0.0, 0.0]].map(|vector| direction(vector, 4.0));
        assert_eq!((right, left, still), ([255, 64, 64], [0, 191, 191], [255, 255, 255]));
        assert_eq!(direction([40.0, 0.0], 4.0), right);
        assert_eq!(direction([2.0, 0.0], 4.0), [255, 159, 159]);
    }

    #[test]
    fn layouts_are_those_of_the_image() {
        assert!(Layout::of(&[3, 4], (4, 3)) == Some(Layout::ONE));
        assert!(Layout::of(&[3, 4, 2], (4, 3)) == Some(Layout { count: 2, planes: false }));
        assert!(Layout::of(&[2, 3, 4], (4, 3)) == Some(Layout { count: 2, planes: true }));
        assert!(Layout::of(&[3, 4, 3], (4, 3)) == Some(Layout { count: 3, planes: false }));
        assert!(Layout::of(&[3, 3, 4], (4, 3)) == Some(Layout { count: 3, planes: true }));
        for other in [&[4, 3][..], &[3, 4, 4], &[3], &[2, 4, 3], &[]] {
            assert!(Layout::of(other, (4, 3)).is_none(), "{other:?}");
        }
    }

    #[test]
    fn normals_have_the_colours_of_their_coding() {
        let towards = [0.0, 0.0, 1.0];
        assert_eq!((normal(towards), normal([-1.0, 1.0, 0.0])), ([128, 128, 255], [0, 255, 128]));
        let values = [towards, [1.0, 0.0, 0.0], [0.0; 3], [f32::NAN; 3]];
        let picture = [128, 128, 255, 255, 128, 128, 255, 255, 255, 255, 255, 255];
        let vectors = values.concat();
        assert_eq!(pixels(Layout { count: 3, planes: false }, &vectors, (2, 2), (2, 2)), picture);
        let planes: Vec<f32> = (0..3).flat_map(|number| values.map(|value| value[number])).collect();
        assert_eq!(pixels(Layout { count: 3, planes: true }, &planes, (2, 2), (2, 2)), picture);
    }

    #[test]
    fn greys_lie_between_the_hundredths_and_the_unknown_is_white() {
        let values: Vec<f32> = (0..100).map(|n| n as f32).collect();
        let found = pixels(Layout::ONE, &values, (10, 10), (10, 10));
        assert_eq!((found[0], found[3 * 50], found[3 * 99]), (0, 130, 255));
        let found = pixels(Layout::ONE, &[1.0, f32::NAN, f32::INFINITY, 3.0], (2, 2), (2, 2));
        assert_eq!(found, [0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
        // Of four columns, the first and the third are shown.
        let planes = [1.0, 9.0, -1.0, 9.0, 0.0, 9.0, 0.0, 9.0];
        let flow = pixels(Layout { count: 2, planes: true }, &planes, (4, 1), (2, 1));
        let pairs = [1.0, 0.0, 9.0, 9.0, -1.0, 0.0, 9.0, 9.0];
        assert_eq!(flow, pixels(Layout { count: 2, planes: false }, &pairs, (4, 1), (2, 1)));
    }
}
