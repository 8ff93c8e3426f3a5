//! Augmentation policies: AutoAugment, RandAugment, TrivialAugment and AugMix, with torchvision's ranges of magnitudes.

use super::distributions::dirichlet;
use super::tables::{Name, sub_policies};
use super::warp::Affine;
use crate::operation::{Interpolation, Operation};
use crate::transform::random::Random;
use crate::transform::step::AutoAugmentPolicy;

/// The magnitudes that a policy uses.
#[derive(Clone, Copy, Debug)]
struct Space {
    /// Largest shear: pixels across per pixel down.
    shear: f32,
    /// Largest translation to the right and down, in pixels.
    translate: [f32; 2],
    /// Largest angle in degrees.
    rotate: f32,
    /// Largest change of a colour factor.
    colour: f32,
    /// Bits that the smallest and the largest magnitude of `Posterize` keep.
    posterize: [f32; 2],
}

impl Space {
    /// The magnitudes of AutoAugment and RandAugment.
    fn standard((width, height): (u32, u32)) -> Self {
        let part = |side: u32| (150.0 / 331.0 * f64::from(side)) as f32;
        Space { shear: 0.3, translate: [part(width), part(height)], rotate: 30.0, colour: 0.9, posterize: [8.0, 4.0] }
    }

    /// The magnitudes of TrivialAugment.
    const WIDE: Space = Space { shear: 0.99, translate: [32.0; 2], rotate: 135.0, colour: 0.99, posterize: [8.0, 2.0] };

    /// The magnitudes of AugMix.
    fn aug_mix((width, height): (u32, u32)) -> Self {
        let part = |side: u32| (f64::from(side) / 3.0) as f32;
        Space { translate: [part(width), part(height)], posterize: [4.0, 0.0], ..Space::standard((width, height)) }
    }
}

/// How operations that move pixels sample them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    pub(crate) interpolation: Interpolation,
    pub(crate) fill: [u8; 3],
}

/// One of `bins` magnitudes, numbered from 0.
#[derive(Clone, Copy, Debug)]
struct Magnitude {
    number: u32,
    bins: u32,
}

impl Magnitude {
    /// Returns the magnitude between two bounds, computed as `torch.linspace` does.
    fn between(self, low: f32, high: f32) -> f32 {
        let last = self.bins.saturating_sub(1);
        if last == 0 {
            return low;
        }
        let step = (high - low) / last as f32;
        if self.number < self.bins / 2 {
            low + step * self.number as f32
        } else {
            high - step * (last - self.number.min(last)) as f32
        }
    }
}

/// The operations of RandAugment and TrivialAugment.
const RANDOM_NAMES: [Name; 14] = [
    Name::Identity,
    Name::ShearX,
    Name::ShearY,
    Name::TranslateX,
    Name::TranslateY,
    Name::Rotate,
    Name::Brightness,
    Name::Color,
    Name::Contrast,
    Name::Sharpness,
    Name::Posterize,
    Name::Solarize,
    Name::AutoContrast,
    Name::Equalize,
];

/// The operations of AugMix; the first nine without those that change colours gradually.
const AUG_MIX_NAMES: [Name; 13] = [
    Name::ShearX,
    Name::ShearY,
    Name::TranslateX,
    Name::TranslateY,
    Name::Rotate,
    Name::Posterize,
    Name::Solarize,
    Name::AutoContrast,
    Name::Equalize,
    Name::Brightness,
    Name::Color,
    Name::Contrast,
    Name::Sharpness,
];

impl Name {
    /// Returns whether the magnitude has a random sign.
    fn is_signed(self) -> bool {
        use Name::*;
        matches!(self, ShearX | ShearY | TranslateX | TranslateY | Rotate | Brightness | Color | Contrast | Sharpness)
    }

    /// Returns the operation of a magnitude, whose sign is drawn if it has one; `None` for the identity.
    fn operation(
        self,
        (width, height): (u32, u32),
        magnitude: Magnitude,
        space: &Space,
        sampling: Sampling,
        random: &mut dyn Random,
    ) -> Option<Operation> {
        let negative = self.is_signed() && random.unit() <= 0.5;
        let signed = |most: f32| {
            let value = f64::from(magnitude.between(0.0, most));
            if negative { -value } else { value }
        };
        let affine = |affine: Affine| Operation::Affine {
            matrix: affine.inverse(),
            interpolation: sampling.interpolation,
            fill: sampling.fill,
        };
        let degrees = |shear: f64| libm::atan(shear).to_degrees();
        // Shears keep the upper left corner.
        let centre = [-0.5 * f64::from(width), -0.5 * f64::from(height)];
        Some(match self {
            Name::Identity => return None,
            Name::ShearX => affine(Affine { shear: [degrees(signed(space.shear)), 0.0], centre, ..Affine::default() }),
            Name::ShearY => affine(Affine { shear: [0.0, degrees(signed(space.shear))], centre, ..Affine::default() }),
            Name::TranslateX => {
                affine(Affine { translate: [signed(space.translate[0]).trunc(), 0.0], ..Affine::default() })
            }
            Name::TranslateY => {
                affine(Affine { translate: [0.0, signed(space.translate[1]).trunc()], ..Affine::default() })
            }
            Name::Rotate => affine(Affine::rotation(signed(space.rotate))),
            Name::Brightness => Operation::Brightness { factor: 1.0 + signed(space.colour) },
            Name::Color => Operation::Saturation { factor: 1.0 + signed(space.colour) },
            Name::Contrast => Operation::Contrast { factor: 1.0 + signed(space.colour) },
            Name::Sharpness => Operation::Sharpness { factor: 1.0 + signed(space.colour) },
            Name::Posterize => {
                let [least, most] = space.posterize;
                let part = (magnitude.bins.max(2) - 1) as f32 / (least - most);
                Operation::Posterize { bits: (least - magnitude.number as f32 / part).round_ties_even() as u8 }
            }
            Name::Solarize => Operation::Solarize { threshold: 255.0 * f64::from(magnitude.between(1.0, 0.0)) },
            Name::AutoContrast => Operation::Autocontrast,
            Name::Equalize => Operation::Equalize,
            Name::Invert => Operation::Invert,
        })
    }
}

fn any<T: Copy>(of: &[T], random: &mut dyn Random) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// Draws torchvision's `AutoAugment`.
pub(crate) fn auto_augment(
    size: (u32, u32),
    policy: AutoAugmentPolicy,
    sampling: Sampling,
    random: &mut dyn Random,
) -> Vec<Operation> {
    let space = Space::standard(size);
    let mut operations = vec![];
    for (name, tenths, number) in any(sub_policies(policy), random) {
        if random.unit() <= f64::from(tenths) / 10.0 {
            let magnitude = Magnitude { number: number.into(), bins: 10 };
            operations.extend(name.operation(size, magnitude, &space, sampling, random));
        }
    }
    operations
}

/// Draws torchvision's `RandAugment`.
pub(crate) fn rand_augment(
    size: (u32, u32),
    num_ops: u32,
    number: u32,
    bins: u32,
    sampling: Sampling,
    random: &mut dyn Random,
) -> Vec<Operation> {
    let (space, magnitude) = (Space::standard(size), Magnitude { number, bins });
    let draw = |_| any(&RANDOM_NAMES, random).operation(size, magnitude, &space, sampling, random);
    (0..num_ops).filter_map(draw).collect()
}

/// Draws torchvision's `TrivialAugmentWide`.
pub(crate) fn trivial_augment(
    size: (u32, u32),
    bins: u32,
    sampling: Sampling,
    random: &mut dyn Random,
) -> Option<Operation> {
    let name = any(&RANDOM_NAMES, random);
    let magnitude = Magnitude { number: random.below(bins.into()) as u32, bins };
    name.operation(size, magnitude, &Space::WIDE, sampling, random)
}

/// Parameters of torchvision's `AugMix`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AugMix {
    /// Largest number of a magnitude of 10.
    pub(crate) severity: u32,
    /// Number of chains.
    pub(crate) width: u32,
    /// Operations of a chain; `None` draws 1 to 3.
    pub(crate) depth: Option<u32>,
    pub(crate) alpha: f64,
    pub(crate) all: bool,
}

/// Draws torchvision's `AugMix`.
pub(crate) fn aug_mix(
    size: (u32, u32),
    AugMix { severity, width, depth, alpha, all }: AugMix,
    sampling: Sampling,
    random: &mut dyn Random,
) -> Operation {
    let space = Space::aug_mix(size);
    let names = if all { &AUG_MIX_NAMES[..] } else { &AUG_MIX_NAMES[..9] };
    let shares = dirichlet(alpha, 2, random);
    let weights = dirichlet(alpha, width as usize, random).into_iter().map(|w| (w * shares[1]) as f32).collect();
    let chains = (0..width).map(|_| {
        let depth = depth.unwrap_or_else(|| 1 + random.below(3) as u32);
        let draw = |_| {
            let name = any(names, random);
            let magnitude = Magnitude { number: random.below(severity.into()) as u32, bins: 10 };
            name.operation(size, magnitude, &space, sampling, random)
        };
        (0..depth).filter_map(draw).collect()
    });
    Operation::AugMix { chains: chains.collect(), image: shares[0] as f32, weights }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.linspace(0, 0.9, 31)[9]` and its neighbours, as torch prints them with 9 digits.
    #[test]
    fn magnitudes_are_those_of_linspace() {
        let at = |number| Magnitude { number, bins: 31 }.between(0.0, 0.9);
        assert_eq!([at(0), at(15), at(30)], [0.0, 0.45, 0.9]);
        assert!((at(9) - 0.27).abs() < 1e-7);
        assert_eq!(Magnitude { number: 0, bins: 1 }.between(1.0, 0.0), 1.0);
    }
}
