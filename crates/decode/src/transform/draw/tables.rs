//! The tables of AutoAugment (Cubuk et al., "AutoAugment: learning augmentation strategies from data", 2019), as torchvision
//! has them: for each sub-policy two operations with their probability in tenths and the number of their magnitude.

use self::Name::*;
use crate::transform::step::AutoAugmentPolicy;

/// The operations of policies, by their names in the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Invert,
}

/// An operation, its probability in tenths, and the number of its magnitude.
pub(crate) type Step = (Name, u8, u8);

/// Returns the sub-policies of a table.
pub(crate) fn sub_policies(policy: AutoAugmentPolicy) -> &'static [[Step; 2]; 25] {
    match policy {
        AutoAugmentPolicy::Imagenet => &IMAGENET,
        AutoAugmentPolicy::Cifar10 => &CIFAR10,
        AutoAugmentPolicy::Svhn => &SVHN,
    }
}

#[rustfmt::skip]
const IMAGENET: [[Step; 2]; 25] = [
    [(Posterize, 4, 8), (Rotate, 6, 9)],
    [(Solarize, 6, 5), (AutoContrast, 6, 0)],
    [(Equalize, 8, 0), (Equalize, 6, 0)],
    [(Posterize, 6, 7), (Posterize, 6, 6)],
    [(Equalize, 4, 0), (Solarize, 2, 4)],
    [(Equalize, 4, 0), (Rotate, 8, 8)],
    [(Solarize, 6, 3), (Equalize, 6, 0)],
    [(Posterize, 8, 5), (Equalize, 10, 0)],
    [(Rotate, 2, 3), (Solarize, 6, 8)],
    [(Equalize, 6, 0), (Posterize, 4, 6)],
    [(Rotate, 8, 8), (Color, 4, 0)],
    [(Rotate, 4, 9), (Equalize, 6, 0)],
    [(Equalize, 0, 0), (Equalize, 8, 0)],
    [(Invert, 6, 0), (Equalize, 10, 0)],
    [(Color, 6, 4), (Contrast, 10, 8)],
    [(Rotate, 8, 8), (Color, 10, 2)],
    [(Color, 8, 8), (Solarize, 8, 7)],
    [(Sharpness, 4, 7), (Invert, 6, 0)],
    [(ShearX, 6, 5), (Equalize, 10, 0)],
    [(Color, 4, 0), (Equalize, 6, 0)],
    [(Equalize, 4, 0), (Solarize, 2, 4)],
    [(Solarize, 6, 5), (AutoContrast, 6, 0)],
    [(Invert, 6, 0), (Equalize, 10, 0)],
    [(Color, 6, 4), (Contrast, 10, 8)],
    [(Equalize, 8, 0), (Equalize, 6, 0)],
];

#[rustfmt::skip]
const CIFAR10: [[Step; 2]; 25] = [
    [(Invert, 1, 0), (Contrast, 2, 6)],
    [(Rotate, 7, 2), (TranslateX, 3, 9)],
    [(Sharpness, 8, 1), (Sharpness, 9, 3)],
    [(ShearY, 5, 8), (TranslateY, 7, 9)],
    [(AutoContrast, 5, 0), (Equalize, 9, 0)],
    [(ShearY, 2, 7), (Posterize, 3, 7)],
    [(Color, 4, 3), (Brightness, 6, 7)],
    [(Sharpness, 3, 9), (Brightness, 7, 9)],
    [(Equalize, 6, 0), (Equalize, 5, 0)],
    [(Contrast, 6, 7), (Sharpness, 6, 5)],
    [(Color, 7, 7), (TranslateX, 5, 8)],
    [(Equalize, 3, 0), (AutoContrast, 4, 0)],
    [(TranslateY, 4, 3), (Sharpness, 2, 6)],
    [(Brightness, 9, 6), (Color, 2, 8)],
    [(Solarize, 5, 2), (Invert, 0, 0)],
    [(Equalize, 2, 0), (AutoContrast, 6, 0)],
    [(Equalize, 2, 0), (Equalize, 6, 0)],
    [(Color, 9, 9), (Equalize, 6, 0)],
    [(AutoContrast, 8, 0), (Solarize, 2, 8)],
    [(Brightness, 1, 3), (Color, 7, 0)],
    [(Solarize, 4, 5), (AutoContrast, 9, 0)],
    [(TranslateY, 9, 9), (TranslateY, 7, 9)],
    [(AutoContrast, 9, 0), (Solarize, 8, 3)],
    [(Equalize, 8, 0), (Invert, 1, 0)],
    [(TranslateY, 7, 9), (AutoContrast, 9, 0)],
];

#[rustfmt::skip]
const SVHN: [[Step; 2]; 25] = [
    [(ShearX, 9, 4), (Invert, 2, 0)],
    [(ShearY, 9, 8), (Invert, 7, 0)],
    [(Equalize, 6, 0), (Solarize, 6, 6)],
    [(Invert, 9, 0), (Equalize, 6, 0)],
    [(Equalize, 6, 0), (Rotate, 9, 3)],
    [(ShearX, 9, 4), (AutoContrast, 8, 0)],
    [(ShearY, 9, 8), (Invert, 4, 0)],
    [(ShearY, 9, 5), (Solarize, 2, 6)],
    [(Invert, 9, 0), (AutoContrast, 8, 0)],
    [(Equalize, 6, 0), (Rotate, 9, 3)],
    [(ShearX, 9, 4), (Solarize, 3, 3)],
    [(ShearY, 8, 8), (Invert, 7, 0)],
    [(Equalize, 9, 0), (TranslateY, 6, 6)],
    [(Invert, 9, 0), (Equalize, 6, 0)],
    [(Contrast, 3, 3), (Rotate, 8, 4)],
    [(Invert, 8, 0), (TranslateY, 0, 2)],
    [(ShearY, 7, 6), (Solarize, 4, 8)],
    [(Invert, 6, 0), (Rotate, 8, 4)],
    [(ShearY, 3, 7), (TranslateX, 9, 3)],
    [(ShearX, 1, 6), (Invert, 6, 0)],
    [(Solarize, 7, 2), (TranslateY, 6, 7)],
    [(ShearY, 8, 4), (Invert, 8, 0)],
    [(ShearX, 7, 9), (TranslateY, 8, 3)],
    [(ShearY, 8, 5), (AutoContrast, 7, 0)],
    [(ShearX, 7, 2), (Invert, 1, 0)],
];
