//! Shifts the hue as torchvision's `adjust_hue` does: RGB to HSV and back in f32, with its order of operations.

use super::sample::truncated;
use super::vectorised::vectorised;

vectorised!(shift = shift_kernel(pixels: &mut [[u8; 3]], by: f32));

/// Adds `factor`, −0.5 to 0.5 turns, to the hue of each pixel.
pub(super) fn adjust_hue(data: &mut [u8], factor: f64) {
    shift(data.as_chunks_mut().0, factor as f32);
}

#[inline(always)]
fn shift_kernel(pixels: &mut [[u8; 3]], by: f32) {
    pixels.iter_mut().for_each(|pixel| *pixel = shifted(*pixel, by));
}

#[inline(always)]
fn shifted(pixel: [u8; 3], by: f32) -> [u8; 3] {
    let [r, g, b] = pixel.map(|sample| f32::from(sample) * (1.0 / 255.0));
    let (hue, saturation, value) = hsv(r, g, b);
    // The remainder of a division by 1. Both branches are one addition, because the sum is between −0.5 and 1.5.
    let hue = hue + by;
    let hue = if hue < 0.0 { hue + 1.0 } else { hue };
    let hue = if hue >= 1.0 { hue - 1.0 } else { hue };
    // 255.999: torchvision converts f32 to u8 by scaling to just below 256 and rounding down.
    rgb(hue, saturation, value).map(|value| truncated(value * 255.999))
}

/// Returns hue in turns, saturation and value, each 0 to 1.
#[inline(always)]
fn hsv(r: f32, g: f32, b: f32) -> (f32, f32, f32) {
    let least = |a: f32, b: f32| if a < b { a } else { b };
    let most = |a: f32, b: f32| if a > b { a } else { b };
    let (smallest, largest) = (least(least(r, g), b), most(most(r, g), b));
    let range = largest - smallest;
    let gray = range == 0.0;
    let saturation = range / if gray { 1.0 } else { largest };
    let divisor = if gray { 1.0 } else { range };
    let [from_r, from_g, from_b] = [r, g, b].map(|channel| (largest - channel) / divisor);
    let sixths = if largest == r {
        from_b - from_g
    } else if largest == g {
        from_r + 2.0 - from_b
    } else {
        from_g + 4.0 - from_r
    };
    let hue = sixths * (1.0 / 6.0) + 1.0;
    (if hue >= 1.0 { hue - 1.0 } else { hue }, saturation, largest)
}

/// Returns red, green and blue, each 0 to 1.
#[inline(always)]
fn rgb(hue: f32, saturation: f32, value: f32) -> [f32; 3] {
    let sixths = hue * 6.0;
    let sector = sixths.floor();
    let product = saturation * (sixths - sector);
    let rest = 1.0 - saturation;
    let at_most_1 = |value: f32| if value < 1.0 { value } else { 1.0 };
    let [p, q, t] = [rest, 1.0 - product, product + rest].map(|factor| at_most_1(factor * value));
    // A hue that was rounded to 1 is in sector 6, which is sector 0.
    let sector = if sector >= 6.0 { 0.0 } else { sector };
    let select = |at_0: f32, at_1: f32, at_2: f32, at_3: f32, at_4: f32, at_5: f32| {
        let low = if sector < 1.0 {
            at_0
        } else if sector < 2.0 {
            at_1
        } else {
            at_2
        };
        let high = if sector < 4.0 {
            at_3
        } else if sector < 5.0 {
            at_4
        } else {
            at_5
        };
        if sector < 3.0 { low } else { high }
    };
    [select(value, q, p, p, t, value), select(t, value, value, q, p, p), select(p, p, t, value, value, q)]
}
