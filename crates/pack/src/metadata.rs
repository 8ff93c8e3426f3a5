//! Removes metadata from the images of samples and records: from every byte string that is an image, except the parts of arrays and
//! images that are stored as pixels.

use crate::error::ShardError;
use crate::ordered::ordered;
use crate::sample::{FORMAT_SUFFIX, SampleSchema, Values};
use crate::{Error, Reason};
use shardtool_decode::{self as decode, ConvertedFormat, DecodeBudget, Format, Limits, strip_metadata};
use shardtool_format::example::{Column, Example, Feature, LOGICAL_BYTES, encode_feature};
use shardtool_format::manifest::{DType, Manifest};
use shardtool_format::names;
use shardtool_read::{Record, Split};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns an image without its metadata, and any other value unchanged.
///
/// # Errors
/// As [`strip_metadata`]; [`decode::Error::Conversion`] for an image of a format that is stored as PNG elsewhere.
fn value(bytes: &[u8]) -> Result<Cow<'_, [u8]>, decode::Error> {
    // A number of 64 bits may begin like a file.
    if bytes.len() <= LOGICAL_BYTES {
        return Ok(Cow::Borrowed(bytes));
    }
    if decode::sniff(bytes).is_some() {
        return strip_metadata(bytes);
    }
    let is_image = |format: ConvertedFormat| {
        let _admitted = DecodeBudget::of_process().admit_conversion(format, bytes).ok()?;
        format.to_png(bytes, &Limits::default()).ok()
    };
    match ConvertedFormat::detect(bytes, None) {
        // QOI has no place for metadata. Text may begin like the other formats.
        Some(format) if format != ConvertedFormat::Qoi && is_image(format).is_some() => {
            let problem = "its feature is not named like a file of this format, and its metadata would stay".into();
            Err(decode::Error::Conversion { format, problem })
        }
        _ => Ok(Cow::Borrowed(bytes)),
    }
}

/// Returns the name of the feature with the format of an image feature.
fn format_of(feature: &str) -> Cow<'_, str> {
    match feature {
        names::IMAGE_ENCODED => Cow::Borrowed(names::IMAGE_FORMAT),
        _ => Cow::Owned(format!("{feature}{FORMAT_SUFFIX}")),
    }
}

/// Returns whether the name of a format is that of pixels, which have no metadata.
fn is_pixels(format: Option<&[u8]>) -> bool {
    let name = format.and_then(|name| std::str::from_utf8(name).ok()).and_then(Format::from_name);
    matches!(name, Some(Format::Raw | Format::RawZstd))
}

/// Returns the values of a sample without the metadata of the images among them, and whether any had some.
///
/// # Errors
/// [`Reason::File`] with the column of an image whose metadata cannot be removed.
pub(crate) fn values<'a>(schema: &SampleSchema, values: &'a [Values]) -> Result<(Cow<'a, [Values]>, bool), Reason> {
    let mut all = Cow::Borrowed(values);
    for (at, (column, _)) in schema.columns.iter().enumerate() {
        let described = format_of(column);
        let format = schema.columns.iter().position(|(name, _)| **name == *described);
        let format = format.and_then(|format| values[format].byte_strings().first().copied());
        if schema.is_array_member(column) || is_pixels(format) {
            continue;
        }
        let wrong = |error: decode::Error| Reason::File { column: column.clone(), reason: Box::new(error.into()) };
        match &values[at] {
            Values::Bytes(bytes) => {
                if let Cow::Owned(stripped) = value(bytes).map_err(wrong)? {
                    all.to_mut()[at] = Values::Bytes(stripped.into());
                }
            }
            Values::BytesList(list) => {
                let stripped: Vec<_> =
                    list.iter().map(|bytes| value(bytes)).collect::<Result<_, _>>().map_err(wrong)?;
                if stripped.iter().any(|value| matches!(value, Cow::Owned(_))) {
                    all.to_mut()[at] = Values::BytesList(stripped.into_iter().map(Box::from).collect());
                }
            }
            _ => {}
        }
    }
    let is_stripped = matches!(all, Cow::Owned(_));
    Ok((all, is_stripped))
}

/// Removes the metadata of the images in existing records of one dataset.
pub(crate) struct RecordStripper {
    /// The features of byte strings that are no parts of arrays.
    features: Vec<String>,
}

impl RecordStripper {
    /// Prepares for the records of a dataset, which must be Examples.
    ///
    /// # Errors
    /// [`Error::Option`] for other records.
    pub(crate) fn new(manifest: &Manifest) -> Result<Self, Error> {
        if manifest.is_opaque() || manifest.message() != shardtool_format::example::Message::Example {
            let expected = "records that are tf.train.Example: of others, it is not known which bytes are images";
            return Err(Error::Option { option: "strip_metadata", expected });
        }
        let columns: Vec<_> = manifest.features.iter().map(|feature| (feature.name.clone(), feature.dtype)).collect();
        let schema =
            SampleSchema { classes: vec![], images: true, labelled: false, columns, keypoints: Default::default() };
        let stripped = |(name, dtype): &&(String, DType)| *dtype == DType::Bytes && !schema.is_array_member(name);
        let features = schema.columns.iter().filter(stripped).map(|(name, _)| name.clone()).collect();
        Ok(RecordStripper { features })
    }

    /// Returns the data of a record without the metadata of its images; `None` if they have none. `data` are those of the record, perhaps
    /// with its key.
    ///
    /// # Errors
    /// [`ShardError::Metadata`] if the metadata of an image cannot be removed; [`Error::Name`] if the data are no Example.
    pub(crate) fn strip(&self, split: &str, record: &Record, data: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut example = Example::parse(data)?;
        let mut changed: Vec<(&str, Vec<u8>)> = vec![];
        for name in &self.features {
            let Some(Feature::Bytes(list)) = example.get(name) else { continue };
            if is_pixels(example.byte_strings(&format_of(name)).and_then(|formats| formats.first().copied())) {
                continue;
            }
            let stripped = list.iter().map(value).collect::<Result<Vec<_>, _>>();
            let stripped = match stripped {
                Ok(stripped) => stripped,
                Err(source) => {
                    let key = String::from_utf8_lossy(&record.key()?).into_owned();
                    let (split, feature) = (split.to_owned(), name.clone());
                    return Err(Error::Shard(ShardError::Metadata { split, key, feature, source: Box::new(source) }));
                }
            };
            if stripped.iter().any(|value| matches!(value, Cow::Owned(_))) {
                let values: Vec<&[u8]> = stripped.iter().map(|value| &**value).collect();
                let mut message = vec![];
                encode_feature(&Column::Bytes(&values), &mut message);
                changed.push((name, message));
            }
        }
        if changed.is_empty() {
            return Ok(None);
        }
        for (name, message) in &changed {
            example.set(name, Some(Feature::parse(message)?));
        }
        let mut out = vec![];
        example.encode(&mut out);
        Ok(Some(out))
    }

    /// Returns whether an image of a split has metadata. Reads the records up to the first such one of each shard.
    ///
    /// # Errors
    /// As [`Self::strip`]; [`Error::Read`].
    pub(crate) fn finds(&self, split: &Split, jobs: NonZeroUsize) -> Result<bool, Error> {
        let found = AtomicBool::new(false);
        let search = |shard: usize| -> Result<(), Error> {
            let mut buffer = vec![];
            for (id, _) in split.rows(shard)? {
                if found.load(Ordering::Relaxed) {
                    break;
                }
                let record = split.get_with(id, buffer)?;
                if self.strip(split.name(), &record, record.data())?.is_some() {
                    found.store(true, Ordering::Relaxed);
                }
                record.check_readable()?;
                buffer = record.into_buffer();
            }
            Ok(())
        };
        ordered(jobs, split.entry().shards.len(), 2 * jobs.get(), search, |_, searched| searched)?;
        Ok(found.into_inner())
    }
}
