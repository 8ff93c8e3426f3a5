//! Gamma, beta, Dirichlet and normal distributions.

use crate::transform::random::Random;

/// Draws from the standard normal distribution (Box and Muller, 1958; one of the two numbers is used).
fn normal(random: &mut dyn Random) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - random.unit())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * random.unit())
}

/// A number above 0 as the product of a factor and of e to a power, because the product may be too small for a float.
struct Scaled {
    factor: f64,
    power: f64,
}

/// Draws from the gamma distribution of this shape, above 0, and scale 1 (Marsaglia and Tsang, "A simple method for generating gamma
/// variables", 2000).
fn gamma(shape: f64, random: &mut dyn Random) -> Scaled {
    if shape < 1.0 {
        let power = libm::log(1.0 - random.unit()) / shape;
        return Scaled { factor: gamma_from_one(shape + 1.0, random), power };
    }
    Scaled { factor: gamma_from_one(shape, random), power: 0.0 }
}

/// Draws from the gamma distribution of this shape, at least 1.
fn gamma_from_one(shape: f64, random: &mut dyn Random) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    // A try succeeds with a probability above 0.95.
    for _ in 0..1000 {
        let x = normal(random);
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        let u = 1.0 - random.unit();
        if v > 0.0 && libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
    shape
}

/// Draws from the beta distribution with both parameters `alpha`, above 0.
pub fn beta(alpha: f64, random: &mut dyn Random) -> f64 {
    dirichlet(alpha, 2, random)[0]
}

/// Draws from the symmetric Dirichlet distribution of `n` weights, which sum to 1.
pub(crate) fn dirichlet(alpha: f64, n: usize, random: &mut dyn Random) -> Vec<f64> {
    // Below, logarithms would be infinite.
    let alpha = alpha.max(1e-300);
    let drawn: Vec<_> = (0..n).map(|_| gamma(alpha, random)).collect();
    let share = |weights: Vec<f64>| {
        let sum: f64 = weights.iter().sum();
        (sum > SMALLEST_SUM).then(|| weights.into_iter().map(|w| w / sum).collect())
    };
    share(drawn.iter().map(|w| w.factor * libm::exp(w.power)).collect())
        .or_else(|| {
            // With a tiny `alpha` all weights can underflow: only their quotients count.
            let logarithm = |w: &Scaled| libm::log(w.factor) + w.power;
            let largest = drawn.iter().map(logarithm).fold(f64::NEG_INFINITY, f64::max);
            share(drawn.iter().map(|w| libm::exp(logarithm(w) - largest)).collect())
        })
        .unwrap_or_else(|| vec![1.0 / n as f64; n])
}

/// Sums of weights below this have lost digits.
const SMALLEST_SUM: f64 = 1e-300;

#[cfg(test)]
mod tests {
    use super::*;

    struct SplitMix(u64);

    impl Random for SplitMix {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn below(&mut self, n: u64) -> u64 {
            (self.unit() * n as f64) as u64
        }
    }

    /// Mean and variance of beta(a, a) are 1/2 and 1/(4(2a + 1)).
    #[test]
    fn beta_has_its_mean_and_variance() {
        for alpha in [0.1, 0.2, 0.8, 1.0, 4.0] {
            let mut random = SplitMix(7);
            let draws: Vec<f64> = (0..40_000).map(|_| beta(alpha, &mut random)).collect();
            assert!(draws.iter().all(|d| (0.0..=1.0).contains(d)));
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / draws.len() as f64;
            let expected = 1.0 / (4.0 * (2.0 * alpha + 1.0));
            assert!((mean - 0.5).abs() < 0.01, "alpha {alpha}: mean {mean}");
            assert!(
                (variance / expected - 1.0).abs() < 0.03,
                "alpha {alpha}: variance {variance}, expected {expected}"
            );
        }
    }

    /// Half of the draws are near 0 and half near 1: beta(a, a) has a probability of about 1/2 - 2.3a below 0.01.
    #[test]
    fn beta_of_a_tiny_alpha_is_zero_or_one() {
        for alpha in [1e-3, 1e-4, 1e-6, 1e-12, 5e-324] {
            let mut random = SplitMix(11);
            let draws: Vec<f64> = (0..10_000).map(|_| beta(alpha, &mut random)).collect();
            let (low, high) =
                (draws.iter().filter(|d| **d < 0.01).count(), draws.iter().filter(|d| **d > 0.99).count());
            assert!(low + high > 9900 && (4800..5200).contains(&low), "alpha {alpha}: {low} and {high}");
        }
    }

    #[test]
    fn dirichlet_weights_sum_to_one() {
        let mut random = SplitMix(3);
        for alpha in [1e-300, 0.01, 1.0, 50.0] {
            let weights = dirichlet(alpha, 5, &mut random);
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{weights:?}");
        }
    }
}
