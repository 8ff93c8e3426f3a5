//! Random colour operations and erasing.

use super::{chance, uniform};
use crate::operation::Operation;
use crate::transform::random::Random;
use crate::transform::rect::Rect;
use crate::transform::step::EraseValue;

/// Draws torchvision's `ColorJitter`: brightness, contrast, saturation and hue, each if it has a range, in random order.
pub(crate) fn color_jitter(
    [brightness, contrast, saturation, hue]: [Option<[f64; 2]>; 4],
    random: &mut dyn Random,
) -> Vec<Operation> {
    let order = permutation::<4>(random);
    let mut draw = |range: Option<[f64; 2]>| range.map(|range| uniform(range, random));
    let factors = [draw(brightness), draw(contrast), draw(saturation), draw(hue)];
    let operation = |which: usize| {
        factors[which].map(|factor| match which {
            0 => Operation::Brightness { factor },
            1 => Operation::Contrast { factor },
            2 => Operation::Saturation { factor },
            _ => Operation::Hue { factor },
        })
    };
    order.into_iter().filter_map(operation).collect()
}

/// Draws torchvision's `RandomPhotometricDistort`.
pub(crate) fn photometric_distort(
    [brightness, contrast, saturation, hue]: [[f64; 2]; 4],
    p: f64,
    random: &mut dyn Random,
) -> Vec<Operation> {
    let mut draw = |range| chance(p, random).then(|| uniform(range, random));
    let [brightness, contrast, saturation, hue] = [draw(brightness), draw(contrast), draw(saturation), draw(hue)];
    let contrast = contrast.map(|factor| Operation::Contrast { factor });
    let before = chance(0.5, random);
    let permutation = chance(p, random).then(|| permutation::<3>(random).map(|channel| channel as u8));
    let (first, last) = if before { (contrast, None) } else { (None, contrast) };
    let steps = [
        brightness.map(|factor| Operation::Brightness { factor }),
        first,
        saturation.map(|factor| Operation::Saturation { factor }),
        hue.map(|factor| Operation::Hue { factor }),
        last,
        permutation.map(|order| Operation::ChannelPermutation { order }),
    ];
    steps.into_iter().flatten().collect()
}

/// Draws the rectangle of torchvision's `RandomErasing`: up to ten tries with an area uniform in `scale` of the image's and a
/// ratio height ÷ width log-uniform in `ratio`. `None` if no rectangle is smaller than the image in both directions.
pub(crate) fn erasing(
    (width, height): (u32, u32),
    scale: [f64; 2],
    ratio: [f64; 2],
    value: EraseValue,
    random: &mut dyn Random,
) -> Option<Operation> {
    let area = f64::from(width) * f64::from(height);
    let log_ratio = ratio.map(libm::log);
    for _ in 0..10 {
        let erased = area * uniform(scale, random);
        let aspect = libm::exp(uniform(log_ratio, random));
        let h = (erased * aspect).sqrt().round_ties_even();
        let w = (erased / aspect).sqrt().round_ties_even();
        if h < f64::from(height) && w < f64::from(width) {
            let (w, h) = (w as u32, h as u32);
            let top = random.below(u64::from(height - h) + 1) as u32;
            let left = random.below(u64::from(width - w) + 1) as u32;
            let rect = Rect { left, top, width: w, height: h };
            return Some(match value {
                EraseValue::Color(value) => Operation::Erase { rect, value },
                EraseValue::Noise(_) => {
                    let mut half = || random.below(1 << 32);
                    Operation::EraseNoise { rect, key: half() << 32 | half() }
                }
            });
        }
    }
    None
}

/// Returns a random permutation of the numbers below N (Fisher and Yates).
fn permutation<const N: usize>(random: &mut dyn Random) -> [usize; N] {
    let mut order = std::array::from_fn(|i| i);
    for i in (1..N).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}
