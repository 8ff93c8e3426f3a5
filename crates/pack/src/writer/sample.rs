//! A sample of a program: image, label and values by name.

use crate::array::{Array, ArrayColumn};
use crate::class_ids;
use crate::error::SampleProblem;
use crate::record;
use crate::record::image::PixelArray;
use crate::sample::{ResolvedSample, SampleSchema, Values};
use crate::source::objects;
use shardtool_format::manifest::DType;

/// A sample to write.
#[derive(Debug, Clone)]
pub struct Sample<'a> {
    /// The sample's key; unique in its split.
    pub key: &'a str,
    /// Its image, if the writer has images.
    pub image: Option<Image<'a>>,
    /// Its label, if the writer has labels.
    pub label: Option<Label<'a>>,
    /// Values of the writer's features. A feature that is missing here has no value.
    pub values: Vec<(&'a str, Value)>,
}

impl<'a> Sample<'a> {
    /// Returns a sample without an image, a label and values.
    pub fn new(key: &'a str) -> Self {
        Sample { key, image: None, label: None, values: vec![] }
    }

    /// Sets the image to the bytes of a file.
    #[must_use]
    pub fn with_file(self, bytes: &'a [u8]) -> Self {
        Sample { image: Some(Image::File(bytes)), ..self }
    }

    /// Sets the image to decoded pixels.
    #[must_use]
    pub fn with_pixels(self, pixels: PixelArray<'a>) -> Self {
        Sample { image: Some(Image::Pixels(pixels)), ..self }
    }

    /// Sets the label: the name of a class, or its id.
    #[must_use]
    pub fn with_label(self, label: impl Into<Label<'a>>) -> Self {
        Sample { label: Some(label.into()), ..self }
    }

    /// Adds the values of a feature.
    #[must_use]
    pub fn with_value(mut self, feature: &'a str, value: impl Into<Value>) -> Self {
        self.values.push((feature, value.into()));
        self
    }
}

impl<'a> From<&'a str> for Label<'a> {
    fn from(name: &'a str) -> Self {
        Label::Name(name)
    }
}

impl From<i64> for Label<'_> {
    fn from(id: i64) -> Self {
        Label::Id(id)
    }
}

impl From<Vec<f32>> for Value {
    fn from(floats: Vec<f32>) -> Self {
        Value::Float(floats)
    }
}

impl From<Vec<i64>> for Value {
    fn from(integers: Vec<i64>) -> Self {
        Value::Int64(integers)
    }
}

impl From<f32> for Value {
    fn from(float: f32) -> Self {
        Value::Float(vec![float])
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Value::Int64(vec![integer])
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Bytes(vec![text.as_bytes().to_vec()])
    }
}

/// An image.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Image<'a> {
    /// The bytes of an image file.
    File(&'a [u8]),
    /// Decoded pixels.
    Pixels(PixelArray<'a>),
}

/// A class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label<'a> {
    /// Its id, from 0.
    Id(i64),
    /// Its name, one of the writer's classes.
    Name(&'a str),
}

/// The values of one feature.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Integers.
    Int64(Vec<i64>),
    /// Floats.
    Float(Vec<f32>),
    /// 64-bit floats.
    Float64(Vec<f64>),
    /// Unsigned integers.
    Uint64(Vec<u64>),
    /// Byte strings.
    Bytes(Vec<Vec<u8>>),
    /// Floats of the features `image/object/bbox` and `image/object/keypoints`, as pixels of the given image: left,
    /// top, right, bottom; or x, y, visibility. They are stored as fractions of the image's size.
    Pixels(Vec<f32>),
    /// An array of one of the writer's [`arrays`](super::WriterOptions::arrays).
    Array(Array<'static>),
}

impl Value {
    fn into_values(self, dtype: DType) -> Option<Values> {
        Some(match (self, dtype) {
            (Value::Int64(list), DType::Int64) => Values::Int64s(list.into()),
            (Value::Pixels(list), DType::Float) => Values::Pixels(list.into()),
            (Value::Float(list), DType::Float) => Values::Floats(list.into()),
            (Value::Float64(list), DType::Float64) => Values::logical(list),
            (Value::Uint64(list), DType::Uint64) => Values::logical(list),
            // As in lists: integers fit a column of floats.
            (Value::Int64(list), DType::Float) => Values::Floats(list.into_iter().map(|value| value as f32).collect()),
            (Value::Bytes(list), DType::Bytes) => {
                Values::BytesList(list.into_iter().map(Vec::into_boxed_slice).collect())
            }
            _ => return None,
        })
    }
}

/// Resolves a sample: class id, and values in the columns' types.
pub(super) fn resolve(
    sample: &Sample<'_>,
    schema: &SampleSchema,
    arrays: &[ArrayColumn],
) -> Result<ResolvedSample, SampleProblem> {
    let label = match (sample.label, schema.labelled) {
        (None, false) => None,
        (None, true) => return Err(SampleProblem::Label { given: false }),
        (Some(_), false) => return Err(SampleProblem::Label { given: true }),
        (Some(label), true) => Some(class_id(label, &schema.classes)?),
    };
    let mut values = vec![Values::Missing; schema.columns.len()];
    for (name, value) in &sample.values {
        let feature = || (*name).to_owned();
        if let Some(column) = arrays.iter().find(|array| array.name == *name) {
            let Value::Array(array) = value else { return Err(SampleProblem::NoArray { feature: feature() }) };
            let refused = |source| SampleProblem::Array { feature: feature(), source };
            let encoded = column.encode(array).map_err(refused)?;
            for ((member, _), value) in column.features().iter().zip(encoded) {
                if let Ok(at) = schema.columns.binary_search_by(|(column, _)| column.cmp(member)) {
                    if values[at] != Values::Missing {
                        return Err(SampleProblem::Twice { feature: member.clone() });
                    }
                    values[at] = value;
                }
            }
            continue;
        }
        // The columns of a writer are sorted by name.
        let at = schema.columns.binary_search_by(|(column, _)| column.as_str().cmp(name));
        let at = at.map_err(|_| SampleProblem::UnknownFeature { feature: feature() })?;
        if values[at] != Values::Missing {
            return Err(SampleProblem::Twice { feature: feature() });
        }
        let expected = schema.columns[at].1;
        let has_coordinates = !matches!(value, Value::Pixels(_)) || objects::PIXELS.contains(name);
        let value = value.clone().into_values(expected).filter(|_| has_coordinates);
        values[at] = value.ok_or_else(|| SampleProblem::Type { feature: feature(), expected })?;
    }
    Ok(ResolvedSample { key: sample.key.to_owned(), label, values })
}

fn class_id(label: Label<'_>, classes: &[String]) -> Result<i64, SampleProblem> {
    let (wanted, text) = match label {
        Label::Id(id) => (Ok(id), id.to_string()),
        Label::Name(name) => (Err(name), name.to_owned()),
    };
    class_ids::id_of_label(wanted, classes).ok_or(SampleProblem::Class { label: text, classes: classes.len() })
}

/// Returns the image of a sample's record.
pub(super) fn image<'a>(sample: &Sample<'a>, schema: &SampleSchema) -> Result<record::Image<'a>, SampleProblem> {
    match (sample.image, schema.images) {
        (None, false) => Ok(record::Image::None),
        (Some(Image::File(file)), true) => Ok(record::Image::File(file)),
        (Some(Image::Pixels(pixels)), true) => Ok(record::Image::Pixels(pixels)),
        (given, _) => Err(SampleProblem::Image { given: given.is_some() }),
    }
}
