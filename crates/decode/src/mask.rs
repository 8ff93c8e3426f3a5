//! Whether a stored file is a segmentation mask of its image.

use crate::format::ConvertedFormat;
use crate::{DecodeBudget, DecodeOptions, Error, LabelDtype, LabelMap, Limits, probe};

/// Extensions of stored formats that masks have.
const STORED: [&str; 3] = ["png", "tif", "tiff"];

/// Returns whether a feature of byte strings holds masks, by its name: `mask`, or one that ends with `/mask` or `_mask`, perhaps
/// followed by the extension of a format that masks have, stored or converted.
pub fn is_mask_name(name: &str) -> bool {
    let is_extension = |extension: &str| {
        let converted = ConvertedFormat::EXTENSIONS.iter().find(|(known, _)| *known == extension);
        STORED.contains(&extension) || converted.is_some_and(|(_, pixels)| pixels.may_be_labels())
    };
    let name = name.rsplit_once('.').filter(|(_, extension)| is_extension(extension)).map_or(name, |(name, _)| name);
    name.strip_suffix("mask").is_some_and(|before| before.is_empty() || before.ends_with(['/', '_']))
}

/// Checks that a file is a mask of an image of this size (width, height).
///
/// # Errors
/// As [`LabelMap::decode`]; [`Error::MaskSize`].
pub fn check_mask(bytes: &[u8], image: (u32, u32), limits: &Limits) -> Result<(), Error> {
    let info = probe(bytes, limits)?;
    if (info.width, info.height) != image {
        return Err(Error::MaskSize { found: (info.width, info.height), expected: image });
    }
    let _admitted = DecodeBudget::of_process().admit(bytes, &DecodeOptions::default().with_limits(*limits))?;
    LabelMap::default().decode(bytes, LabelDtype::U16, limits)
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
            assert!(super::is_mask_name(name), "{name}");
        }
        for name in ["unmask", "masks", "mask.npy", "mask.json", "mask.qoi", "mask_id", "image/encoded"] {
            assert!(!super::is_mask_name(name), "{name}");
        }
    }
}
