//! Shifts the hue as torchvision's `adjust_hue` does: RGB to HSV and back in f32, with its order of operations.

use super::planes::{BLOCK, map_planes};
use super::sample::truncated;
use super::vectorised::vectorised;

vectorised!(shift = shift_kernel(pixels: &mut [[u8; 3]], by: f32));

/// Adds `factor`, −0.5 to 0.5 turns, to the hue of each pixel.
pub(super) fn adjust_hue(data: &mut [u8], factor: f64) {
    shift(data.as_chunks_mut().0, factor as f32);
}

#[inline(always)]
fn shift_kernel(pixels: &mut [[u8; 3]], by: f32) {
    map_planes(pixels, |[red, green, blue]| {
        for i in 0..BLOCK {
            [red[i], green[i], blue[i]] = shifted([red[i], green[i], blue[i]], by);
        }
    });
}

#[inline(always)]
fn shifted(pixel: [u8; 3], by: f32) -> [u8; 3] {
    let [r, g, b] = pixel.map(|sample| f32::from(sample) * (1.0 / 255.0));
    let (hue, saturation, value) = hsv(r, g, b);
    // The remainder of a division by 1: the sum is between −0.5 and 1.5.
    let hue = hue + by;
    let hue = if hue < 0.0 { hue + 1.0 } else { hue };
    let hue = if hue >= 1.0 { hue - 1.0 } else { hue };
    // 255.999: torchvision converts f32 to u8 by scaling to just below 256 and rounding down.
    rgb(hue, saturation, value).map(|channel| truncated(channel * 255.999))
}

/// Returns hue in turns, saturation and value, each 0 to 1.
#[inline(always)]
fn hsv(r: f32, g: f32, b: f32) -> (f32, f32, f32) {
    let smaller = |a: f32, b: f32| if a < b { a } else { b };
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let (smallest, largest) = (smaller(smaller(r, g), b), larger(larger(r, g), b));
    let range = largest - smallest;
    let gray = range == 0.0;
    let saturation = range / if gray { 1.0 } else { largest };
    let divisor = if gray { 1.0 } else { range };
    // Red, green and blue are at 0, 2 and 4 sixths of a turn. The hue is at the largest channel, moved towards the next one
    // or the one before, whichever is larger.
    let (offset, far, near) = if largest == g { (2.0, r, b) } else { (4.0, g, r) };
    let (offset, far, near) = if largest == r { (0.0, b, g) } else { (offset, far, near) };
    let sixths = (largest - far) / divisor + offset - (largest - near) / divisor;
    let hue = sixths * (1.0 / 6.0) + 1.0;
    (if hue >= 1.0 { hue - 1.0 } else { hue }, saturation, largest)
}

/// Returns red, green and blue, each 0 to 1 up to rounding.
#[inline(always)]
fn rgb(hue: f32, saturation: f32, value: f32) -> [f32; 3] {
    let sixths = hue * 6.0;
    let sector = sixths.floor();
    let product = saturation * (sixths - sector);
    let rest = 1.0 - saturation;
    // A hue that was rounded to 1 is in sector 6, which is sector 0.
    let sector = if sector >= 6.0 { 0.0 } else { sector };
    let odd = sector * 0.5 != (sector * 0.5).floor();
    let factor = if odd { 1.0 - product } else { product + rest };
    let (middle, smallest) = (factor * value, rest * value);
    // A channel is the largest in two sectors, and the middle one in the sectors next to these.
    let channel = |distance: f32| {
        let other = if distance < 2.0 { middle } else { smallest };
        if distance < 1.0 { value } else { other }
    };
    [channel(3.0 - (sector - 2.5).abs()), channel((sector - 1.5).abs()), channel((sector - 3.5).abs())]
}
