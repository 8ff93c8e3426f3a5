//! Whether a stored file is a segmentation mask of its image.

use crate::format::ConvertedFormat;
use crate::{DecodeBudget, DecodeOptions, Error, LabelDtype, LabelMap, Limits, probe};

/// Extensions of stored formats that masks have.
const STORED: [&str; 3] = ["png", "tif", "tiff"];

/// Returns the type of the labels of a feature that holds masks, by its name; `None` if it holds none: `mask`, or one that ends with
/// `/mask` or `_mask`, has up to 16 bits, `panoptic` likewise up to 24, which RGB codes. An extension of a format that masks have, stored
/// or converted, may follow.
pub fn mask_dtype(name: &str) -> Option<LabelDtype> {
    let is_extension = |extension: &str| {
        let converted = ConvertedFormat::EXTENSIONS.iter().find(|(known, _)| *known == extension);
        STORED.contains(&extension) || converted.is_some_and(|(_, pixels)| pixels.may_be_labels())
    };
    let name = name.rsplit_once('.').filter(|(_, extension)| is_extension(extension)).map_or(name, |(name, _)| name);
    let ends = |word: &str| {
        let before = name.strip_suffix(word);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['/', '_']))
    };
    let known = [("mask", LabelDtype::U16), ("panoptic", LabelDtype::I32)];
    known.into_iter().find(|(word, _)| ends(word)).map(|(_, dtype)| dtype)
}

/// Checks that a file is a mask of an image of this size (width, height), with labels of this type. Returns the labels.
///
/// # Errors
/// As [`LabelMap::decode`]; [`Error::MaskSize`].
pub fn check_mask(bytes: &[u8], dtype: LabelDtype, image: (u32, u32), limits: &Limits) -> Result<LabelMap, Error> {
    let info = probe(bytes, limits)?;
    if (info.width, info.height) != image {
        return Err(Error::MaskSize { found: (info.width, info.height), expected: image });
    }
    let _admitted = DecodeBudget::of_process().admit(bytes, &DecodeOptions::default().with_limits(*limits))?;
    let mut labels = LabelMap::default();
    labels.decode(bytes, dtype, limits)?;
    Ok(labels)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_masks() {
        for name in [
            "mask",
            "image/mask",
            "eye_mask",
            "mask.png",
            "image/object/mask.tiff",
            "mask.pgm",
            "eye_mask.pam",
            "mask.tga",
        ] {
            assert_eq!(super::mask_dtype(name), Some(super::LabelDtype::U16), "{name}");
        }
        for name in ["panoptic", "image/panoptic", "coco_panoptic.png"] {
            assert_eq!(super::mask_dtype(name), Some(super::LabelDtype::I32), "{name}");
        }
        for name in ["panoptics", "unmask", "masks", "mask.npy", "mask.json", "mask.qoi", "mask_id", "image/encoded"] {
            assert_eq!(super::mask_dtype(name), None, "{name}");
        }
    }
}
