//! Rotation of coordinates, and noise. Sines, cosines and logarithms are those of `libm`, which are the same on every machine.

use crate::options::Axis;
use shardtool_decode::Random;
use shardtool_format::array::ArrayDtype;

/// A rotation by an angle about an axis, right-handed.
pub(super) struct Motion {
    axis: Axis,
    sin: f64,
    cos: f64,
}

impl Motion {
    /// Draws an angle of up to `degrees` to either side.
    pub(super) fn draw(axis: Axis, degrees: f64, random: &mut impl Random) -> Self {
        let angle = (2.0 * random.unit() - 1.0) * degrees.to_radians();
        Motion { axis, sin: libm::sin(angle), cos: libm::cos(angle) }
    }

    fn apply(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        let Motion { sin, cos, .. } = self;
        let turn = |a: f64, b: f64| (a * cos - b * sin, a * sin + b * cos);
        match self.axis {
            Axis::X => {
                let (y, z) = turn(y, z);
                [x, y, z]
            }
            Axis::Y => {
                let (z, x) = turn(z, x);
                [x, y, z]
            }
            Axis::Z => {
                let (x, y) = turn(x, y);
                [x, y, z]
            }
        }
    }
}

/// Rotates the first three columns of rows of `bytes` bytes.
pub(super) fn rotate(rows: &mut [u8], bytes: usize, dtype: ArrayDtype, motion: &Motion) {
    change(rows, bytes, dtype, |point| motion.apply(point));
}

/// Adds normal noise of a standard deviation, and perhaps within a limit, to the first three columns of rows of `bytes` bytes.
pub(super) fn jitter(
    rows: &mut [u8],
    bytes: usize,
    dtype: ArrayDtype,
    (deviation, limit): (f64, Option<f64>),
    random: &mut impl Random,
) {
    let limit = limit.unwrap_or(f64::INFINITY);
    change(rows, bytes, dtype, |point| {
        let [a, b] = normal(random);
        let [c, _] = normal(random);
        let noise = [a, b, c].map(|noise| (noise * deviation).clamp(-limit, limit));
        std::array::from_fn(|n| point[n] + noise[n])
    });
}

/// Returns two independent normal numbers of deviation 1 (Box and Muller, 1958).
fn normal(random: &mut impl Random) -> [f64; 2] {
    // 1 − u lies in (0, 1].
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.unit()));
    let angle = 2.0 * std::f64::consts::PI * random.unit();
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}

/// Replaces the first three numbers of each row of `bytes` bytes.
fn change(rows: &mut [u8], bytes: usize, dtype: ArrayDtype, mut f: impl FnMut([f64; 3]) -> [f64; 3]) {
    for row in rows.chunks_exact_mut(bytes) {
        if dtype == ArrayDtype::F64 {
            let (numbers, _) = row.as_chunks_mut::<8>();
            let moved = f([0, 1, 2].map(|n| f64::from_le_bytes(numbers[n])));
            numbers.iter_mut().zip(moved).for_each(|(number, value)| *number = value.to_le_bytes());
        } else {
            let (numbers, _) = row.as_chunks_mut::<4>();
            let moved = f([0, 1, 2].map(|n| f32::from_le_bytes(numbers[n]).into()));
            numbers.iter_mut().zip(moved).for_each(|(number, value)| *number = (value as f32).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::SampleDraws;

    #[test]
    fn a_quarter_turn_takes_each_axis_to_the_next() {
        let turn = |axis| Motion { axis, sin: 1.0, cos: 0.0 };
        assert_eq!(turn(Axis::Z).apply([1.0, 0.0, 5.0]), [0.0, 1.0, 5.0]);
        assert_eq!(turn(Axis::X).apply([5.0, 1.0, 0.0]), [5.0, 0.0, 1.0]);
        assert_eq!(turn(Axis::Y).apply([0.0, 5.0, 1.0]), [1.0, 5.0, 0.0]);
    }

    #[test]
    fn noise_is_normal() {
        let mut random = SampleDraws { seed: 1, epoch: 0, source_position: 0 }.ragged(0, 2);
        let numbers: Vec<f64> = (0..50_000).flat_map(|_| normal(&mut random)).collect();
        let mean = |power: i32| numbers.iter().map(|x| x.powi(power)).sum::<f64>() / numbers.len() as f64;
        // The moments of the normal distribution, within five deviations of their means.
        for (power, expected, deviation) in
            [(1, 0.0, 1.0), (2, 1.0, 2f64.sqrt()), (3, 0.0, 15f64.sqrt()), (4, 3.0, 96f64.sqrt())]
        {
            let most = 5.0 * deviation / (numbers.len() as f64).sqrt();
            assert!((mean(power) - expected).abs() < most, "moment {power}: {}", mean(power));
        }
    }
}
