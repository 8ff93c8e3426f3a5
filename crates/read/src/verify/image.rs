//! Decodes a record's image, and the frames of its clips, and compares them with what the record says about them.

use shardtool_decode::{self as decode, DecodeBudget, DecodeOptions, FloatRange, Format, Limits, Pixels, Truncated};
use shardtool_format::Damage;
use shardtool_format::array::array_name;
use shardtool_format::example::{Example, Feature};

/// The kind of damage, and a sentence about it.
pub(super) type Fault = (Damage, String);

/// Decodes the image of a record. `entries` are its entry points in the index. Returns whether it is cut or damaged.
pub(super) fn check(
    image: &[u8],
    example: &Example<'_>,
    entries: Option<&[u8]>,
    truncated: Truncated,
) -> Result<bool, Fault> {
    Described::of(example, "image")
        .and_then(|described| described.check(image, entries, truncated))
        .map_err(|fault| of("the image", fault))
}

/// Decodes the masks of a record, and compares their sizes with that of its image. Returns a fault for each feature that is named
/// for masks and holds something else.
pub(super) fn check_masks(image: &[u8], example: &Example<'_>) -> Vec<Fault> {
    let limits = Limits::default();
    let probed = || decode::probe(image, &limits).ok().map(|info| (info.width, info.height));
    // An image that does not decode is another finding: its size is not known.
    let described = Described::of(example, "image").ok().and_then(|described| described.size);
    let Some(size) = described.or_else(probed) else { return vec![] };
    // The chunks of an array are no images.
    let has = |name: &str| example.get(name).is_some();
    let is_array = |name: &str| array_name(&format!("{name}/codec"), has).is_some();
    let masks =
        example.features().iter().filter_map(|(name, feature)| Some((name, feature, decode::mask_dtype(name)?)));
    let named = masks.filter(|(name, ..)| !is_array(name));
    let faults = named.filter_map(|(name, feature, dtype)| {
        let Feature::Bytes(masks) = feature else { return None };
        let error = masks.iter().find_map(|mask| decode::check_mask(mask, dtype, size, &limits).err())?;
        let (damage, problem) = fault(error);
        Some((damage, format!("`{name}` is not a mask of the image: {problem}")))
    });
    faults.collect()
}

/// Decodes all frames of the clips of a record: of each feature NAME with byte strings, other than `image`, for which
/// `NAME/format` names an image format. Returns a fault for each frame that does not decode, and how many are cut or damaged.
pub(super) fn check_clips(example: &Example<'_>, image: Option<&str>, truncated: Truncated) -> (Vec<Fault>, u64) {
    let (mut faults, mut filled) = (vec![], 0);
    for (feature, _) in example.features() {
        let Some(name) = feature.strip_suffix("/format").filter(|name| Some(*name) != image) else { continue };
        let (Some(Feature::Bytes(frames)), Ok(described)) = (example.get(name), Described::of(example, name)) else {
            continue;
        };
        if described.format.is_some() {
            for (number, frame) in frames.iter().enumerate() {
                match described.check(frame, None, truncated) {
                    Ok(is_filled) => filled += u64::from(is_filled),
                    Err(fault) => faults.push(of(&format!("frame {number} of `{name}`"), fault)),
                }
            }
        }
    }
    (faults, filled)
}

/// What a record says about images.
struct Described {
    format: Option<Format>,
    /// Width and height.
    size: Option<(u32, u32)>,
}

impl Described {
    /// Reads the features `NAME/format`, `NAME/width` and `NAME/height`.
    ///
    /// # Errors
    /// An unknown format.
    fn of(example: &Example<'_>, name: &str) -> Result<Self, Fault> {
        let format = example.bytes(&format!("{name}/format")).map(|format| {
            let format = String::from_utf8_lossy(format);
            Format::from_name(&format).ok_or_else(|| undecodable(format!("unknown {name}/format `{format}`")))
        });
        let side = |side: &str| example.int64(&format!("{name}/{side}")).and_then(|n| u32::try_from(n).ok());
        let size = side("width").zip(side("height")).filter(|(width, height)| *width > 0 && *height > 0);
        Ok(Described { format: format.transpose()?, size })
    }

    /// Decodes an image. Returns whether it is cut or damaged.
    fn check(&self, image: &[u8], entries: Option<&[u8]>, truncated: Truncated) -> Result<bool, Fault> {
        let budget = DecodeBudget::of_process();
        let limits = Limits::default();
        if let Some(format @ (Format::Raw | Format::RawZstd)) = self.format.or_else(|| decode::sniff(image)) {
            let unsized_pixels = || (Damage::PixelsLength, "raw pixels without a width and a height".to_owned());
            let (width, height) = self.size.ok_or_else(unsized_pixels)?;
            let _admitted = budget.admit_raw(format, image, (width, height)).map_err(fault)?;
            let mut buffer = vec![];
            decode::decode_raw(format, image, width, height, &limits, &mut buffer).map_err(fault)?;
            return if entries.is_some() { Err(wrong_entries()) } else { Ok(false) };
        }
        // Floating-point samples decode with a range only. The pixels are dropped, so any range will do.
        let range = FloatRange::new(0.0, 1.0);
        let options = DecodeOptions::default().with_limits(limits).with_float_range(range).with_truncated(truncated);
        let _admitted = budget.admit(image, &options).map_err(fault)?;
        let mut pixels = Pixels::default();
        let filled = decode::decode_into(image, &options, &mut pixels).map_err(fault)?;
        if self.size.is_some_and(|size| size != (pixels.width, pixels.height)) {
            let (width, height, size) = (pixels.width, pixels.height, self.size);
            return Err(undecodable(format!("{width}x{height} pixels, recorded as {size:?}")));
        }
        if entries.is_some_and(|entries| !decode::check_entries(image, entries)) {
            return Err(wrong_entries());
        }
        match decode::sniff(image) {
            found if self.format.is_some() && found != self.format => {
                let name = |f: Option<Format>| f.map_or("an unknown format", Format::name);
                Err(undecodable(format!("recorded as {}, but it is {}", name(self.format), name(found))))
            }
            _ => Ok(filled),
        }
    }
}

fn fault(error: decode::Error) -> Fault {
    (error.damage(), shardtool_format::Chain(&error).to_string())
}

fn wrong_entries() -> Fault {
    (Damage::IndexMismatch, "its JPEG entry points are not those of the image".to_owned())
}

fn undecodable(problem: String) -> Fault {
    (Damage::ImageDecode, problem)
}

/// Adds which image of the record it is.
fn of(what: &str, (damage, problem): Fault) -> Fault {
    match damage {
        Damage::IndexMismatch => (damage, problem),
        _ => (damage, format!("{what} does not decode: {problem}")),
    }
}
