//! Small datasets with arrays for tests, written with `pack`.

use shardtool_decode::encode_array;
use shardtool_format::array::ArrayLayout;
use shardtool_format::manifest::DType;
use shardtool_pack::{Image, Label, Sample, Value, Writer, WriterOptions};
use shardtool_read::{Access, Dataset, Options, Split};
use std::path::Path;

/// One array of a sample.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) feature: &'static str,
    pub(crate) shape: Vec<i64>,
    pub(crate) chunk: Vec<i64>,
    pub(crate) dtype: &'static str,
    pub(crate) codec: &'static str,
    /// The elements, little-endian.
    pub(crate) data: Vec<u8>,
    /// Overwrites chunks after they are encoded.
    pub(crate) damage: Option<(usize, Vec<u8>)>,
}

impl Stored {
    pub(crate) fn u16(feature: &'static str, shape: &[i64], chunk: &[i64], codec: &'static str, data: &[u16]) -> Self {
        let data = data.iter().flat_map(|element| element.to_le_bytes()).collect();
        let (shape, chunk) = (shape.to_vec(), chunk.to_vec());
        Stored { feature, shape, chunk, dtype: "u16", codec, data, damage: None }
    }

    pub(crate) fn values(&self) -> [(String, Value); 5] {
        let layout = ArrayLayout::new(&self.shape, &self.chunk, self.dtype.as_bytes(), self.codec.as_bytes()).unwrap();
        let mut chunks = encode_array(&layout, &self.data, 3).unwrap();
        if let Some((number, bytes)) = &self.damage {
            chunks[*number] = bytes.clone();
        }
        let text = |text: &str| Value::Bytes(vec![text.as_bytes().to_vec()]);
        let name = |suffix: &str| format!("{}{suffix}", self.feature);
        [
            (name(""), Value::Bytes(chunks)),
            (name("/shape"), Value::Int64(self.shape.clone())),
            (name("/chunk"), Value::Int64(self.chunk.clone())),
            (name("/dtype"), text(self.dtype)),
            (name("/codec"), text(self.codec)),
        ]
    }
}

/// Writes a split whose samples have these arrays, and an image and the label 7 if `image` is given.
pub(crate) fn write(folder: &Path, features: &[&str], samples: &[Vec<Stored>], image: Option<&[u8]>) {
    let mut options = WriterOptions::new(folder, "train");
    for feature in features {
        let suffixes =
            [("", DType::Bytes), ("/shape", DType::Int64), ("/chunk", DType::Int64), ("/dtype", DType::Bytes)];
        let members = suffixes.into_iter().chain([("/codec", DType::Bytes)]);
        options.features.extend(members.map(|(suffix, dtype)| (format!("{feature}{suffix}"), dtype)));
    }
    (options.images, options.labels, options.shard_size) = (image.is_some(), Some(true), 200_000);
    let writer = Writer::open(&options).unwrap();
    for (number, arrays) in samples.iter().enumerate() {
        let values: Vec<_> = arrays.iter().flat_map(Stored::values).collect();
        let values = values.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let key = format!("{number:04}");
        let sample = Sample { key: &key, image: image.map(Image::File), label: Some(Label::Id(7)), values };
        writer.write(&sample).unwrap();
    }
    writer.finish().unwrap();
}

pub(crate) fn open(folder: &Path, access: Access) -> Split {
    let options = Options::default().with_access(access);
    Dataset::open_with(folder, options).unwrap().split("train").unwrap().clone()
}
