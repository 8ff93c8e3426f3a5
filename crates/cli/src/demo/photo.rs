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

/// Value noise in [-1, 1]: random values on a lattice, interpolated. Each lattice point is computed once, because most of the
/// time of generating a photograph is spent here.
struct Noise {
    points: Vec<f32>,
    points_per_row: usize,
    /// For each x, the lattice point to its left and the weight of the one to its right.
    columns: Vec<(usize, f32)>,
    scale: f32,
}

impl Noise {
    /// Creates the noise of an image, with `scale` pixels between lattice points.
    fn new(seed: u64, width: u32, height: u32, scale: f32) -> Noise {
        let columns: Vec<_> = (0..width).map(|x| position(x, scale)).collect();
        let [points_per_row, rows] = [width, height].map(|length| position(length, scale).0 + 2);
        let point = |i: usize, j: usize| {
            2.0 * unit(seed ^ hash((i as u64).wrapping_mul(0x1_0001).wrapping_add((j as u64) << 20))) - 1.0
        };
        let points = (0..rows).flat_map(|j| (0..points_per_row).map(move |i| point(i, j))).collect();
        Noise { points, points_per_row, columns, scale }
    }

    /// Returns the values of row `y`, one for each column.
    fn row(&self, y: u32) -> impl Iterator<Item = f32> {
        let (j, v) = position(y, self.scale);
        let [top, bottom] = [j, j + 1].map(|j| &self.points[j * self.points_per_row..][..self.points_per_row]);
        self.columns.iter().map(move |&(i, u)| {
            let [top, bottom] = [top, bottom].map(|points| points[i] * (1.0 - u) + points[i + 1] * u);
            top * (1.0 - v) + bottom * v
        })
    }
}

/// Returns the lattice point before a coordinate, and the smoothed distance from it in [0, 1).
fn position(coordinate: u32, scale: f32) -> (usize, f32) {
    let t = coordinate as f32 / scale;
    let fraction = t.fract();
    (t as usize, fraction * fraction * (3.0 - 2.0 * fraction))
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
    let [clouds, coarse, fine, grain] =
        [(0, 90.0), (1, 14.0), (2, 4.0), (3, 1.3)].map(|(k, scale)| Noise::new(seed ^ k, width, height, scale));
    for y in 0..height {
        let texture = coarse.row(y).zip(fine.row(y)).map(|(coarse, fine)| 16.0 * coarse + 10.0 * fine);
        let rows = clouds.row(y).zip(texture).zip(grain.row(y));
        for (x, ((clouds, texture), grain)) in rows.enumerate() {
            let (x, y) = (x as f32, y as f32);
            let below = ((y - horizon) / 12.0).clamp(0.0, 1.0);
            let mut light = 18.0 * clouds;
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
            pixels.extend(colour.map(|c| (c + light + busy * texture + 5.0 * grain).clamp(0.0, 255.0) as u8));
        }
    }
    let pixels = PixelsRef::new(width, height, &pixels).expect("three bytes per pixel were pushed");
    encode_jpeg(pixels, 88).expect("a small image can be encoded")
}
