//! Gamma, beta, Dirichlet and normal distributions.

use crate::transform::random::Random;

/// Draws from the standard normal distribution (Box and Muller, 1958; one of the two numbers is used).
fn normal(random: &mut dyn Random) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - random.unit())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * random.unit())
}

/// Draws from the gamma distribution of this shape and scale 1 (Marsaglia and Tsang, "A simple method for generating gamma
/// variables", 2000).
fn gamma(shape: f64, random: &mut dyn Random) -> f64 {
    if shape < 1.0 {
        let u = 1.0 - random.unit();
        return gamma(shape + 1.0, random) * libm::exp(libm::log(u) / shape);
    }
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
    let weights: Vec<_> = (0..n).map(|_| gamma(alpha, random)).collect();
    let sum: f64 = weights.iter().sum();
    // With a tiny `alpha` every weight can underflow to 0.
    if sum > 0.0 { weights.into_iter().map(|w| w / sum).collect() } else { vec![1.0 / n as f64; n] }
}

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

    #[test]
    fn dirichlet_weights_sum_to_one() {
        let mut random = SplitMix(3);
        for alpha in [1e-300, 0.01, 1.0, 50.0] {
            let weights = dirichlet(alpha, 5, &mut random);
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{weights:?}");
        }
    }
}
