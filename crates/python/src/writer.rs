//! Writing a split from Python: samples whose values `python/shardtool/writer.py` has converted to bytes.

use crate::config::{Size, float_range, one_of, truncated};
use crate::error;
use crate::keypoints::KeypointsOption;
use crate::process::Local;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;
use shardtool_format::array::{ArrayDtype, Codec};
use shardtool_format::manifest::{DType, Split};
use shardtool_pack::{
    Array, ArrayColumn, Committed, CommittedSplit, Image, JpegLayout, Label, PixelArray, PixelStore, Resize, Sample,
    Value, WriterOptions,
};
use std::path::PathBuf;

/// Arguments of `shardtool.Writer`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    destination: PathBuf,
    split: String,
    features: Vec<(String, String)>,
    arrays: Vec<ArrayOptions>,
    classes: Vec<String>,
    labels: bool,
    images: bool,
    shard_size: Option<Size>,
    part: Option<(u32, u32)>,
    pixels: String,
    zstd_level: i32,
    jpeg: String,
    resize_shorter: Option<u32>,
    max_side: Option<u32>,
    float_range: Option<(f64, f64)>,
    strip_metadata: bool,
    truncated: String,
    quality: Option<u8>,
    force: bool,
    jpeg_entries: bool,
    sha256: bool,
    box_unit: Option<String>,
    annotated: Option<String>,
    keypoints: Option<KeypointsOption>,
}

impl Options {
    /// Returns whether arrays are stored as JPEG.
    pub(crate) fn array_jpeg(&self) -> bool {
        self.quality.is_some()
    }

    pub(crate) fn options(self, py: Python<'_>) -> PyResult<WriterOptions> {
        let mut options = WriterOptions::new(self.destination, &self.split);
        let kinds = DType::ALL.map(|kind| (kind.name(), kind));
        for (name, kind) in self.features {
            options.features.push((name, one_of(py, "features", &kind, &kinds)?));
        }
        options.arrays = self.arrays.into_iter().map(|array| array.column(py)).collect::<PyResult<_>>()?;
        options.classes = self.classes;
        options.labels = Some(self.labels);
        options.images = self.images;
        if let Some(size) = self.shard_size {
            options.shard_size = size.bytes(py, "shard_size")?;
        }
        options.part = self.part;
        let zstd = PixelStore::RawZstd { level: self.zstd_level };
        let stores = [("encoded", PixelStore::Encoded), ("raw", PixelStore::Raw), ("raw-zstd", zstd)];
        options.pixels = one_of(py, "pixels", &self.pixels, &stores)?;
        let layouts = [("keep", JpegLayout::Keep), ("optimize", JpegLayout::Optimize)];
        options.jpeg = one_of(py, "jpeg", &self.jpeg, &layouts)?;
        options.resize = match (self.resize_shorter, self.max_side) {
            (Some(_), Some(_)) => return Err(error::option(py, "give `resize_shorter` or `max_side`, not both")),
            (shorter, longer) => shorter.map(Resize::Shorter).or(longer.map(Resize::MaxSide)),
        };
        options.float_range = float_range(py, self.float_range)?;
        options.strip_metadata = self.strip_metadata;
        options.truncated = truncated(py, &self.truncated)?;
        options.quality = self.quality.unwrap_or(options.quality);
        options.force = self.force;
        options.entry_points = self.jpeg_entries;
        options.sha256 = self.sha256;
        (options.box_unit, options.annotated) = crate::pack::coordinates(py, self.box_unit, self.annotated)?;
        options.keypoints = self.keypoints.map(KeypointsOption::into_keypoints);
        Ok(options)
    }
}

/// Name, lengths of a chunk, codec and level of a column of arrays: `shardtool.Array`.
#[derive(FromPyObject)]
pub(crate) struct ArrayOptions(String, Vec<Option<u64>>, String, i32);

impl ArrayOptions {
    pub(crate) fn column(self, py: Python<'_>) -> PyResult<ArrayColumn> {
        let ArrayOptions(name, chunk, codec, level) = self;
        let mut column = ArrayColumn::new(name);
        column.codec = one_of(py, "codec", &codec, &[("zstd", Codec::Zstd), ("raw", Codec::Raw)])?;
        (column.chunk, column.level) = (chunk, level);
        Ok(column)
    }
}

/// An image: the bytes of a file, or pixels with their height, width and channels.
#[derive(FromPyObject)]
pub(crate) enum ImageArgument {
    File(PyBackedBytes),
    Pixels(PyBackedBytes, u32, u32, u8),
}

/// A class: its id, or its name.
#[derive(FromPyObject)]
pub(crate) enum LabelArgument {
    Id(i64),
    Name(String),
}

/// Values of a feature: numbers as little-endian bytes, byte strings, or an array.
#[derive(FromPyObject)]
pub(crate) enum ValuesArgument {
    Numbers(PyBackedBytes),
    Bytes(Vec<PyBackedBytes>),
    /// Type, shape and elements of an array.
    Array(String, Vec<u64>, PyBackedBytes),
}

/// Converts values of type `int64`, `float`, `float64`, `uint64`, `bytes`, `array` or `pixels` (floats in pixels of the image); returns `None` if they do
/// not match the type.
fn value(kind: &str, values: &ValuesArgument) -> Option<Value> {
    Some(match (kind, values) {
        ("int64", ValuesArgument::Numbers(bytes)) => {
            Value::Int64(bytes.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect())
        }
        ("float", ValuesArgument::Numbers(bytes)) => {
            Value::Float(bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
        }
        ("float64", ValuesArgument::Numbers(bytes)) => {
            Value::Float64(bytes.as_chunks().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
        }
        ("uint64", ValuesArgument::Numbers(bytes)) => {
            Value::Uint64(bytes.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
        }
        ("pixels", ValuesArgument::Numbers(bytes)) => {
            Value::Pixels(bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
        }
        ("bytes", ValuesArgument::Bytes(list)) => Value::Bytes(list.iter().map(|bytes| bytes.to_vec()).collect()),
        ("array", ValuesArgument::Array(name, shape, data)) => {
            let dtype = ArrayDtype::ALL.into_iter().find(|dtype| dtype.name() == name)?;
            Value::Array(Array { shape: shape.clone(), dtype, data: data.to_vec().into() })
        }
        _ => return None,
    })
}

/// A sample as Python gives it.
pub(crate) struct SampleArguments<'a> {
    pub(crate) key: &'a str,
    pub(crate) image: Option<ImageArgument>,
    pub(crate) label: Option<LabelArgument>,
    /// Name, type and values of each feature.
    pub(crate) values: Vec<(String, String, ValuesArgument)>,
}

impl SampleArguments<'_> {
    /// Calls `write` with the sample. With `array_jpeg`, its array is stored as JPEG.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        array_jpeg: bool,
        write: impl FnOnce(&Sample<'_>) -> R,
    ) -> PyResult<R> {
        let wrong = |message: &str| error::option(py, &format!("sample `{}`: {message}", self.key));
        let image = match &self.image {
            None => None,
            Some(ImageArgument::File(file)) => Some(Image::File(file)),
            Some(ImageArgument::Pixels(data, height, width, channels)) => {
                let array = PixelArray::new(data, *width, *height, *channels, array_jpeg);
                Some(Image::Pixels(array.ok_or_else(|| wrong("`image`: expected 1 to 4 channels of uint8"))?))
            }
        };
        let label = self.label.as_ref().map(|label| match label {
            LabelArgument::Id(id) => Label::Id(*id),
            LabelArgument::Name(name) => Label::Name(name),
        });
        let values = self.values.iter().map(|(name, kind, values)| Some((name.as_str(), value(kind, values)?)));
        let values = values.collect::<Option<Vec<_>>>().ok_or_else(|| wrong("values do not match their type"))?;
        Ok(write(&Sample { key: self.key, image, label, values }))
    }
}

/// The writer behind `shardtool.Writer`.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct Writer {
    writer: Local<shardtool_pack::Writer>,
    /// Whether arrays are stored as JPEG.
    array_jpeg: bool,
}

impl Writer {
    fn writer(&self) -> PyResult<&shardtool_pack::Writer> {
        match self.writer.is_ours() {
            true => Ok(&self.writer),
            false => Err(PyRuntimeError::new_err(
                "this writer belongs to the process that opened it: open one in each process, with part=(i, n), and call \
                 shardtool.commit at the end",
            )),
        }
    }
}

#[pymethods]
impl Writer {
    #[new]
    fn new(py: Python<'_>, options: Options) -> PyResult<Self> {
        let array_jpeg = options.array_jpeg();
        let options = options.options(py)?;
        let writer = py.detach(|| shardtool_pack::Writer::open(&options)).map_err(|e| error::pack(py, e))?;
        Ok(Writer { writer: Local::new(writer), array_jpeg })
    }

    /// Writes a sample, and returns whether its key was new. Values are name, type, and bytes of numbers, a list of bytes, or
    /// type, shape and elements of an array.
    fn write(
        &self,
        py: Python<'_>,
        key: &str,
        image: Option<ImageArgument>,
        label: Option<LabelArgument>,
        values: Vec<(String, String, ValuesArgument)>,
    ) -> PyResult<bool> {
        let writer = self.writer()?;
        let sample = SampleArguments { key, image, label, values };
        sample.with(py, self.array_jpeg, |sample| py.detach(|| writer.write(sample)))?.map_err(|e| error::pack(py, e))
    }

    /// Finishes the part. If there are no other parts, commits the split and returns a summary as a dict.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let writer = self.writer()?;
        let committed = py.detach(|| writer.finish()).map_err(|e| error::pack(py, e))?;
        committed.map(|committed| to_dict(py, &committed)).transpose()
    }

    /// Closes the writer; the next one continues after its finished shards.
    fn abandon(&self, py: Python<'_>) {
        if let Ok(writer) = self.writer() {
            py.detach(|| writer.abandon());
        }
    }
}

/// Commits a split whose parts are finished, and returns a summary as a dict.
#[pyfunction]
pub(crate) fn commit<'py>(
    py: Python<'py>,
    destination: PathBuf,
    split: &str,
    force: bool,
    single_writer: bool,
) -> PyResult<Bound<'py, PyDict>> {
    if force {
        let committed = py.detach(|| shardtool_pack::commit_parts(&destination, split, force, &()));
        let dict = to_dict(py, &committed.map_err(|e| error::pack(py, e))?)?;
        dict.set_item("rejected_file", py.None())?;
        return Ok(dict);
    }
    let mut options = shardtool_pack::CommitOptions::new(&destination, split);
    options.single_writer = single_writer;
    let done = py.detach(|| shardtool_pack::commit_split(&options, &())).map_err(|e| error::pack(py, e))?;
    committed_to_dict(py, done)
}

/// Returns what `Packed` has of a split whose parts, or tasks, are committed.
pub(crate) fn committed_to_dict<'py>(py: Python<'py>, done: CommittedSplit) -> PyResult<Bound<'py, PyDict>> {
    // As text: `pathlib` removes a slash of a URL.
    let (rejected, rejected_file) = (done.rejected, done.rejected_file.map(PathBuf::into_os_string));
    let CommittedSplit { split, classes, already_complete, .. } = done;
    let dict = split_to_dict(py, &split, classes, already_complete)?;
    dict.set_item("rejected", rejected)?;
    dict.set_item("rejected_file", rejected_file)?;
    Ok(dict)
}

fn to_dict<'py>(py: Python<'py>, committed: &Committed) -> PyResult<Bound<'py, PyDict>> {
    let dict = split_to_dict(py, &committed.split, committed.classes, committed.already_complete)?;
    dict.set_item("resumed_shards", committed.resumed_shards)?;
    Ok(dict)
}

/// Returns what `Packed` has of a split without rejected inputs, whose shards were not resumed.
fn split_to_dict<'py>(
    py: Python<'py>,
    split: &Split,
    classes: u64,
    already_complete: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("split", &split.name)?;
    dict.set_item("images", split.records())?;
    dict.set_item("shards", split.shards.len())?;
    dict.set_item("bytes", split.bytes())?;
    dict.set_item("classes", classes)?;
    dict.set_item("fingerprint", format!("{:08x}", split.fingerprint()))?;
    dict.set_item("rejected", 0)?;
    dict.set_item("resumed_shards", 0)?;
    dict.set_item("already_complete", already_complete)?;
    Ok(dict)
}
