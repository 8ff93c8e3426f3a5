//! Generates images that compress like photographs, each a pure function of its class and number: a smooth sky and ground,
//! texture at several scales, and a few lit shapes give JPEG a mixture of flat and detailed blocks.

use shardtool_decode::{PixelsRef, encode_jpeg};

/// Mixes 64 bits (SplitMix64 by Steele, Lea and Flood).
fn hash(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a number in [0, 1).
fn unit(seed: u64) -> f32 {
    (hash(seed) >> 40) as f32 / (1u64 << 24) as f32
}

/// Returns value noise in [-1, 1]: random values on a lattice with `scale` pixels between points, interpolated.
fn noise(seed: u64, x: f32, y: f32, scale: f32) -> f32 {
    let (x, y) = (x / scale, y / scale);
    let at = |dx: f32, dy: f32| {
        let (i, j) = ((x.floor() + dx) as u64, (y.floor() + dy) as u64);
        2.0 * unit(seed ^ hash(i.wrapping_mul(0x1_0001).wrapping_add(j << 20))) - 1.0
    };
    let smooth = |t: f32| t * t * (3.0 - 2.0 * t);
    let (u, v) = (smooth(x.fract()), smooth(y.fract()));
    let (top, bottom) = (at(0.0, 0.0) * (1.0 - u) + at(1.0, 0.0) * u, at(0.0, 1.0) * (1.0 - u) + at(1.0, 1.0) * u);
    top * (1.0 - v) + bottom * v
}

/// A disc or a box with a gradient.
struct Shape {
    centre: (f32, f32),
    radius: f32,
    colour: [f32; 3],
    disc: bool,
}

/// Returns photo `number` of a class as JPEG; its size varies around 480×360.
pub(super) fn jpeg(class: u64, number: u64) -> Vec<u8> {
    let seed = hash(class << 32 | number);
    let random = |k: u64| unit(seed.wrapping_add(k));
    let (width, height) = (360 + (random(1) * 240.0) as u32, 280 + (random(2) * 160.0) as u32);
    let hue = |k: u64| std::array::from_fn(|c| 60.0 + 140.0 * unit(hash(class).wrapping_add(10 * k + c as u64)));
    let (sky, ground): ([f32; 3], [f32; 3]) = (hue(1), hue(2));
    let shapes: Vec<_> = (0..3 + class % 3)
        .map(|k| Shape {
            centre: (random(20 + 7 * k) * width as f32, random(21 + 7 * k) * height as f32),
            radius: 20.0 + random(22 + 7 * k) * 80.0,
            colour: hue(3 + k),
            disc: class.is_multiple_of(2),
        })
        .collect();
    let horizon = height as f32 * (0.3 + 0.4 * random(3));
    let mut pixels = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            let (x, y) = (x as f32, y as f32);
            let below = ((y - horizon) / 12.0).clamp(0.0, 1.0);
            let mut light = 18.0 * noise(seed, x, y, 90.0);
            let mut busy = 0.25 + 0.75 * below;
            let mut colour: [f32; 3] = std::array::from_fn(|c| sky[c] * (1.0 - below) + ground[c] * below);
            for shape in &shapes {
                let (dx, dy) = (x - shape.centre.0, y - shape.centre.1);
                let distance = if shape.disc { dx.hypot(dy) } else { dx.abs().max(dy.abs()) };
                if distance < shape.radius {
                    (colour, busy) = (shape.colour, 0.5);
                    light += 50.0 * (-dx - dy) / (2.0 * shape.radius);
                }
            }
            let texture = 16.0 * noise(seed ^ 1, x, y, 14.0) + 10.0 * noise(seed ^ 2, x, y, 4.0);
            let grain = 5.0 * noise(seed ^ 3, x, y, 1.3);
            pixels.extend(colour.map(|c| (c + light + busy * texture + grain).clamp(0.0, 255.0) as u8));
        }
    }
    let pixels = PixelsRef::new(width, height, &pixels).expect("three bytes per pixel were pushed");
    encode_jpeg(pixels, 88).expect("a small image can be encoded")
}
