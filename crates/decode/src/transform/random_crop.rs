//! torchvision's `RandomResizedCrop.get_params`.

use super::Random;
use super::rect::Rect;

/// Draws a rectangle of an image of `(width, height)`: up to ten tries with an area uniform in `scale` of the image's and a
/// ratio width ÷ height log-uniform in `ratio`. If none fits the image, returns the largest centred rectangle whose ratio
/// is in range.
///
/// Logarithm and exponential are those of `libm`, not the system's, whose rounding differs between machines: the same seed
/// must give the same pixels everywhere.
pub(crate) fn random_resized_crop(
    (width, height): (u32, u32),
    scale: [f64; 2],
    ratio: [f64; 2],
    random: &mut dyn Random,
) -> Rect {
    let (w, h) = (f64::from(width), f64::from(height));
    let (log_low, log_high) = (libm::log(ratio[0]), libm::log(ratio[1]));
    for _ in 0..10 {
        let target = w * h * uniform(scale[0], scale[1], random);
        let aspect = libm::exp(uniform(log_low, log_high, random));
        let crop_w = (target * aspect).sqrt().round_ties_even();
        let crop_h = (target / aspect).sqrt().round_ties_even();
        if (1.0..=w).contains(&crop_w) && (1.0..=h).contains(&crop_h) {
            let (crop_w, crop_h) = (crop_w as u32, crop_h as u32);
            let top = random.below(u64::from(height - crop_h) + 1) as u32;
            let left = random.below(u64::from(width - crop_w) + 1) as u32;
            return Rect { left, top, width: crop_w, height: crop_h };
        }
    }
    let (crop_w, crop_h) = match w / h {
        r if r < ratio[0] => (width, (w / ratio[0]).round_ties_even() as u32),
        r if r > ratio[1] => ((h * ratio[1]).round_ties_even() as u32, height),
        _ => (width, height),
    };
    let (crop_w, crop_h) = (crop_w.clamp(1, width), crop_h.clamp(1, height));
    Rect { left: (width - crop_w) / 2, top: (height - crop_h) / 2, width: crop_w, height: crop_h }
}

fn uniform(low: f64, high: f64, random: &mut dyn Random) -> f64 {
    low + (high - low) * random.unit()
}
