//! The parts of a record: the image as a file, the class, and the fields that pack does not write itself.

use crate::{Reason, sample};
use shardtool_decode::{DecodeBudget, Format, Limits, decode_raw, sniff};
use shardtool_format::example::{Example, Feature};
use shardtool_format::names;
use shardtool_read::{Record, Split};
use std::borrow::Cow;

/// One sample of a split.
pub(super) struct Sample<'a> {
    pub(super) id: u64,
    pub(super) key: String,
    /// The image file: byte for byte as stored, or a PPM of raw pixels.
    pub(super) image: Cow<'a, [u8]>,
    /// The extension of the image file.
    pub(super) extension: &'static str,
    /// The class id.
    pub(super) label: Option<i64>,
    /// The class's name.
    pub(super) class: Option<String>,
    pub(super) fields: Vec<(Cow<'a, str>, Feature<'a>)>,
}

impl<'a> Sample<'a> {
    /// # Errors
    /// [`Reason::Read`], [`Reason::WithoutImage`], [`Reason::Image`].
    pub(super) fn new(split: &Split, id: u64, record: &'a Record) -> Result<Self, Reason> {
        let manifest = split.manifest();
        let example = record.example()?;
        let stored = record.image()?.ok_or(Reason::WithoutImage)?;
        let (image, extension) = file(stored, &example)?;
        let label = manifest.label.as_deref().and_then(|name| example.int64(name));
        let label = label.and_then(|label| label.checked_sub(manifest.label_offset));
        let class = label.and_then(|label| manifest.classes.get(usize::try_from(label).ok()?)).cloned();
        Ok(Sample {
            id,
            key: String::from_utf8_lossy(&record.key()?).into_owned(),
            image,
            extension,
            label,
            class,
            fields: fields(split, &example),
        })
    }
}

/// Returns the features that are neither image nor label, nor written by every pack.
pub(super) fn fields<'a>(split: &Split, example: &Example<'a>) -> Vec<(Cow<'a, str>, Feature<'a>)> {
    let manifest = split.manifest();
    let is = |role: &Option<String>, name: &str| role.as_deref() == Some(name);
    let other = |name: &str| {
        let named = name != names::CLASS_TEXT || manifest.classes.is_empty();
        !is(&manifest.image, name) && !is(&manifest.label, name) && (!sample::is_written(name) || !named)
    };
    example.features().iter().filter(|(name, _)| other(name)).cloned().collect()
}

/// Returns the image as a file, and its extension.
fn file<'a>(stored: &'a [u8], example: &Example<'_>) -> Result<(Cow<'a, [u8]>, &'static str), Reason> {
    let named = example.bytes(names::IMAGE_FORMAT).and_then(|name| Format::from_name(std::str::from_utf8(name).ok()?));
    let raw = named.filter(|format| matches!(format, Format::Raw | Format::RawZstd));
    if let Some(format) = raw {
        let side = |name| example.int64(name).and_then(|side| u32::try_from(side).ok()).unwrap_or(0);
        let size = (side(names::IMAGE_WIDTH), side(names::IMAGE_HEIGHT));
        let _admitted = DecodeBudget::of_process().admit_raw(format, stored, size)?;
        let mut scratch = vec![];
        let pixels = decode_raw(format, stored, size.0, size.1, &Limits::default(), &mut scratch)?;
        // Netpbm's binary pixmap, which PIL, torchvision and WebDataset read.
        let header = format!("P6\n{} {}\n255\n", pixels.width(), pixels.height());
        return Ok((Cow::Owned([header.as_bytes(), pixels.data()].concat()), "ppm"));
    }
    let extension = match sniff(stored) {
        Some(Format::Jpeg) => "jpg",
        Some(format) => format.name(),
        None => "bin",
    };
    Ok((Cow::Borrowed(stored), extension))
}
