//! Records as the buffers of Arrow arrays, which `pyarrow` wraps without a copy.

use crate::array::{Memory, Number};
use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shardtool_decode::{DecodeOptions, Decoder, Format, Limits, Pixels, PixelsRef, decode_raw};
use shardtool_format::example::{Example, Feature};
use shardtool_format::manifest::DType;
use shardtool_read::{Record, Split};

/// What is read of each image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    None,
    /// The bytes as stored.
    Encoded,
    /// RGB pixels `[height, width, 3]`.
    Decoded,
}

pub(crate) const IMAGES: [(&str, Images); 3] =
    [("none", Images::None), ("encoded", Images::Encoded), ("decoded", Images::Decoded)];

/// Which records are read: from `start` to `end`, but no more once their images have `bytes`.
pub(crate) struct Rows {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bytes: u64,
}

/// A column of numbers or byte strings, or of lists of them.
struct Column {
    name: String,
    /// Whether a row is a list.
    is_list: bool,
    values: Values,
    /// Where each row's values end, of a list.
    ends: Vec<i64>,
    present: Vec<bool>,
}

enum Values {
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Float64(Vec<f64>),
    Uint64(Vec<u64>),
    Bytes(Strings),
}

/// Byte strings: their bytes, and where each ends.
struct Strings {
    bytes: Vec<u8>,
    offsets: Vec<i64>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings { bytes: vec![], offsets: vec![0] }
    }
}

impl Strings {
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as i64);
    }
}

/// The columns of records.
struct Table {
    keys: Strings,
    images: Strings,
    has_image: Vec<bool>,
    /// Height and width of each decoded image.
    shapes: Vec<i64>,
    labels: Option<(Vec<i64>, Vec<bool>)>,
    columns: Vec<Column>,
}

/// Why records cannot be read.
enum Failure {
    Read(shardtool_read::Error),
    /// An image that does not decode: record, key.
    Image(u64, String, shardtool_decode::Error),
    /// A feature with several values in a column that is not of lists, or with values of another type.
    Value(u64, String, String),
}

impl From<shardtool_read::Error> for Failure {
    fn from(error: shardtool_read::Error) -> Self {
        Failure::Read(error)
    }
}

/// Reads records as Arrow buffers. Returns a dict: `rows`; `key` and `image` as (offsets i64, bytes, validity); `shapes` of
/// decoded images `[rows, 2]`; `label` as (values, validity) or `None`; `columns`, each as (type, values or (offsets, bytes),
/// list offsets or `None`, validity). A validity is a bool per row.
pub(crate) fn read<'py>(
    py: Python<'py>,
    split: &Split,
    rows: Rows,
    images: Images,
    columns: Vec<(String, bool)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dtype = |name: &str| split.manifest().features.iter().find(|f| f.name == name).map(|f| f.dtype);
    let mut table = Table {
        keys: Strings::default(),
        images: Strings::default(),
        has_image: vec![],
        shapes: vec![],
        labels: split.manifest().label.is_some().then(Default::default),
        columns: vec![],
    };
    for (name, is_list) in columns {
        let values = match dtype(&name) {
            Some(DType::Int64) => Values::Int64(vec![]),
            Some(DType::Float) => Values::Float(vec![]),
            Some(DType::Float64) => Values::Float64(vec![]),
            Some(DType::Uint64) => Values::Uint64(vec![]),
            Some(DType::Bytes) => Values::Bytes(Strings::default()),
            None => return Err(error::column(py, &format!("the dataset has no feature `{name}`"))),
        };
        table.columns.push(Column { name, is_list, values, ends: vec![0], present: vec![] });
    }
    let filled = py.detach(|| table.fill(split, rows, images)).map_err(|failure| match failure {
        Failure::Read(error) => error::read(py, error),
        Failure::Image(id, key, error) => error::undecodable(py, split, id, key, &error),
        Failure::Value(id, key, problem) => error::column(py, &format!("record {id} (key `{key}`): {problem}")),
    });
    filled?;
    table.into_dict(py)
}

impl Table {
    fn fill(&mut self, split: &Split, rows: Rows, images: Images) -> Result<(), Failure> {
        let (mut decoder, mut pixels) = (Decoder::default(), Pixels::default());
        for id in rows.start..rows.end {
            let record = split.get(id)?;
            self.push(split, &record, id, images, &mut decoder, &mut pixels)?;
            record.check_readable()?;
            if self.images.bytes.len() as u64 >= rows.bytes {
                break;
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        split: &Split,
        record: &Record,
        id: u64,
        images: Images,
        decoder: &mut Decoder,
        pixels: &mut Pixels,
    ) -> Result<(), Failure> {
        let manifest = split.manifest();
        let key = record.key()?;
        let text = String::from_utf8_lossy(&key);
        self.keys.push(text.as_bytes());
        // Without features, an Example is parsed for its label only.
        let wanted = images == Images::Decoded || self.labels.is_some() || !self.columns.is_empty();
        let example = if wanted { Some(record.example()?) } else { None };
        let image = if images == Images::None { None } else { record.image()? };
        self.has_image.push(image.is_some());
        match (images, image, &example) {
            (Images::Decoded, Some(image), Some(example)) => {
                let name = manifest.image.as_deref().unwrap_or_default();
                let decoded = decode(image, example, name, decoder, pixels);
                let decoded = decoded.map_err(|error| Failure::Image(id, text.clone().into_owned(), error))?;
                self.images.push(decoded.data());
                self.shapes.extend([decoded.height(), decoded.width()].map(i64::from));
            }
            (_, image, _) => {
                self.images.push(image.unwrap_or_default());
                self.shapes.extend([0, 0]);
            }
        }
        let Some(example) = example else { return Ok(()) };
        if let Some((labels, present)) = &mut self.labels {
            let label = manifest.label.as_deref().and_then(|name| example.int64(name));
            labels.push(label.map_or(0, |stored| stored.wrapping_sub(manifest.label_offset)));
            present.push(label.is_some());
        }
        for column in &mut self.columns {
            column.push(&example).map_err(|problem| Failure::Value(id, text.clone().into_owned(), problem))?;
        }
        Ok(())
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let rows = self.has_image.len();
        let dict = PyDict::new(py);
        dict.set_item("rows", rows)?;
        dict.set_item("key", strings(py, self.keys)?)?;
        dict.set_item("image", (strings(py, self.images)?, array(py, self.has_image)?))?;
        dict.set_item("shapes", Memory::from_vec(self.shapes, vec![rows, 2]).into_array(py)?)?;
        let label = self.labels.map(|(values, present)| Ok::<_, PyErr>((array(py, values)?, array(py, present)?)));
        dict.set_item("label", label.transpose()?)?;
        let columns = PyDict::new(py);
        for Column { name, is_list, values, ends, present } in self.columns {
            let ends = if is_list { Some(array(py, ends)?) } else { None };
            let present = array(py, present)?;
            match values {
                Values::Int64(values) => columns.set_item(name, ("int64", array(py, values)?, ends, present))?,
                Values::Float(values) => columns.set_item(name, ("float", array(py, values)?, ends, present))?,
                Values::Float64(values) => columns.set_item(name, ("float64", array(py, values)?, ends, present))?,
                Values::Uint64(values) => columns.set_item(name, ("uint64", array(py, values)?, ends, present))?,
                Values::Bytes(values) => columns.set_item(name, ("bytes", strings(py, values)?, ends, present))?,
            }
        }
        dict.set_item("columns", columns)?;
        Ok(dict)
    }
}

impl Column {
    /// Adds the row of a record.
    ///
    /// # Errors
    /// What is wrong with its values.
    fn push(&mut self, example: &Example<'_>) -> Result<(), String> {
        let feature = example.get(&self.name).unwrap_or(Feature::Empty);
        let count = feature.count();
        if count > 1 && !self.is_list {
            return Err(format!(
                "the feature `{0}` has {count} values, but other records one; read it as lists: columns={{\"{0}\": \"list\"}}",
                self.name
            ));
        }
        let other = |values: &Values| {
            let expected = match values {
                Values::Int64(_) => "int64",
                Values::Float(_) => "float",
                Values::Float64(_) => "float64",
                Values::Uint64(_) => "uint64",
                Values::Bytes(_) => "bytes",
            };
            format!("the feature `{}` is not {expected}, its type in the manifest", self.name)
        };
        match (&mut self.values, feature) {
            (_, _) if count == 0 => {}
            (Values::Int64(values), Feature::Int64(list)) => values.extend(list.iter()),
            (Values::Float(values), Feature::Float(list)) => values.extend(list.iter()),
            (Values::Bytes(values), Feature::Bytes(list)) => list.iter().for_each(|value| values.push(value)),
            (Values::Float64(values), Feature::Bytes(list)) => match list.numbers::<f64>() {
                Some(numbers) => values.extend(numbers),
                None => return Err(other(&self.values)),
            },
            (Values::Uint64(values), Feature::Bytes(list)) => match list.numbers::<u64>() {
                Some(numbers) => values.extend(numbers),
                None => return Err(other(&self.values)),
            },
            (values, _) => return Err(other(values)),
        }
        if !self.is_list && count == 0 {
            match &mut self.values {
                Values::Int64(values) => values.push(0),
                Values::Float(values) => values.push(0.0),
                Values::Float64(values) => values.push(0.0),
                Values::Uint64(values) => values.push(0),
                Values::Bytes(values) => values.push(&[]),
            }
        }
        let values = match &self.values {
            Values::Int64(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Float64(values) => values.len(),
            Values::Uint64(values) => values.len(),
            Values::Bytes(values) => values.offsets.len() - 1,
        };
        self.ends.push(values as i64);
        self.present.push(count > 0);
        Ok(())
    }
}

/// Decodes an image to RGB pixels. Raw pixels have their size in the features of the image.
fn decode<'a>(
    image: &'a [u8],
    example: &Example<'_>,
    name: &str,
    decoder: &mut Decoder,
    pixels: &'a mut Pixels,
) -> Result<PixelsRef<'a>, shardtool_decode::Error> {
    let limits = Limits::default();
    // The image's feature is `image/encoded`, and its format `image/format`.
    let prefix = name.strip_suffix("/encoded").unwrap_or(name);
    let named = |what: &str| format!("{prefix}/{what}");
    let format = example.bytes(&named("format")).and_then(|format| Format::from_name(&String::from_utf8_lossy(format)));
    match format {
        Some(format @ (Format::Raw | Format::RawZstd)) => {
            let side = |what| example.int64(&named(what)).and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
            decode_raw(format, image, side("width"), side("height"), &limits, &mut pixels.data)
        }
        _ => {
            decoder.decode_into(image, &DecodeOptions::default().with_limits(limits), pixels)?;
            pixels.view()
        }
    }
}

fn array<T: Number>(py: Python<'_>, values: Vec<T>) -> PyResult<Bound<'_, PyAny>> {
    let shape = vec![values.len()];
    Memory::from_vec(values, shape).into_array(py)
}

/// Offsets and bytes.
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

fn strings(py: Python<'_>, Strings { bytes, offsets }: Strings) -> PyResult<Pair<'_>> {
    Ok((array(py, offsets)?, array(py, bytes)?))
}
