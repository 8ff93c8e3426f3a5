//! Operations that map each channel through a table made from its values: autocontrast and equalize.

use super::planes::read_planes;
use super::vectorised::vectorised;

vectorised!(ranges = ranges_kernel(pixels: &[[u8; 3]]) -> [(u8, u8); 3]);

/// Stretches the values of each channel to 0 to 255 (`autocontrast`). A constant channel is left as it is.
pub(super) fn autocontrast(data: &mut [u8]) {
    let pixels = data.as_chunks_mut().0;
    map(pixels, &ranges(pixels).map(stretched));
}

/// Distributes the values of each channel evenly, as PIL's `ImageOps.equalize` and torchvision's `equalize` do.
pub(super) fn equalize(data: &mut [u8]) {
    let pixels = data.as_chunks_mut().0;
    map(pixels, &count(pixels).map(|counts| equalized(&counts)));
}

/// As [`autocontrast`], for a grey image.
pub(super) fn autocontrast_gray(data: &mut [u8]) {
    let range = data.iter().fold((u8::MAX, u8::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    let table = stretched(range);
    data.iter_mut().for_each(|v| *v = table[usize::from(*v)]);
}

/// As [`equalize`], for a grey image.
pub(super) fn equalize_gray(data: &mut [u8]) {
    let mut counts = [0; 256];
    data.iter().for_each(|v| counts[usize::from(*v)] += 1);
    let table = equalized(&counts);
    data.iter_mut().for_each(|v| *v = table[usize::from(*v)]);
}

/// Returns the smallest and the largest value of each channel.
#[inline(always)]
fn ranges_kernel(pixels: &[[u8; 3]]) -> [(u8, u8); 3] {
    let mut ranges = [(u8::MAX, u8::MIN); 3];
    read_planes(pixels, pixels[0], |planes| {
        for ((smallest, largest), plane) in ranges.iter_mut().zip(planes) {
            *smallest = plane.iter().fold(*smallest, |a, b| a.min(*b));
            *largest = plane.iter().fold(*largest, |a, b| a.max(*b));
        }
    });
    ranges
}

/// Returns how often each value occurs in each channel.
fn count(pixels: &[[u8; 3]]) -> [[u64; 256]; 3] {
    // Two tables for alternate pixels: neighbours often have the same value, and a count waits for the one before it.
    let mut even = [[0; 256]; 3];
    let mut odd = even;
    let add = |counts: &mut [[u64; 256]; 3], pixel: &[u8; 3]| {
        counts.iter_mut().zip(pixel).for_each(|(counts, sample)| counts[usize::from(*sample)] += 1);
    };
    let (pairs, last) = pixels.as_chunks();
    for [a, b] in pairs {
        add(&mut even, a);
        add(&mut odd, b);
    }
    last.iter().for_each(|pixel| add(&mut even, pixel));
    even.as_flattened_mut().iter_mut().zip(odd.as_flattened()).for_each(|(even, odd)| *even += odd);
    even
}

fn map(pixels: &mut [[u8; 3]], [red, green, blue]: &[[u8; 256]; 3]) {
    for [r, g, b] in pixels {
        [*r, *g, *b] = [red[usize::from(*r)], green[usize::from(*g)], blue[usize::from(*b)]];
    }
}

/// Computes (value − smallest) ÷ ((largest − smallest) · 1/255) in f32, rounded down.
fn stretched((smallest, largest): (u8, u8)) -> [u8; 256] {
    let scale = f32::from(largest - smallest) * (1.0 / 255.0);
    std::array::from_fn(|value| match smallest == largest {
        true => value as u8,
        false => ((value as f32 - f32::from(smallest)) / scale) as u8,
    })
}

/// Computes (number of smaller samples + step ÷ 2) ÷ step in integers, where a step is 1/255 of the samples without those
/// of the largest value. If a step is less than one sample, the channel is left as it is.
fn equalized(counts: &[u64; 256]) -> [u8; 256] {
    let total: u64 = counts.iter().sum();
    let of_largest = counts.iter().rfind(|&&count| count > 0).copied().unwrap_or(0);
    let step = (total - of_largest) / 255;
    if step == 0 {
        return std::array::from_fn(|value| value as u8);
    }
    let mut smaller = 0;
    counts.map(|count| {
        let value = (smaller + step / 2) / step;
        smaller += count;
        value.min(255) as u8
    })
}
