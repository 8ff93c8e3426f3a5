//! Small datasets for tests, written with `format`: shards, indexes, manifest.

use shardtool_format::example::{Column, encode, range_within};
use shardtool_format::manifest::{DType, FeatureType, Manifest, Shard, Split};
use shardtool_format::{checksum::crc32c, example::Example, frame, index, names};
use std::path::Path;

/// One sample.
pub(crate) struct Sample {
    pub(crate) key: String,
    /// Encoded image and its size; `None` for a record of numbers only.
    pub(crate) image: Option<(Vec<u8>, (u32, u32))>,
    pub(crate) label: i64,
    /// A ragged column: label + 1 numbers.
    pub(crate) boxes: Vec<f32>,
    /// A label map; empty for none.
    pub(crate) mask: Vec<u8>,
}

/// Feature of label maps.
pub(crate) const MASK: &str = "mask";

/// A JPEG whose pixels depend on the sample's number.
pub(crate) fn jpeg(number: u64, width: u32, height: u32) -> Vec<u8> {
    let image = image::RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([
            (number * 7 + u64::from(x)) as u8,
            (number * 13 + u64::from(y) * 2) as u8,
            (x * y + number as u32) as u8,
        ])
    });
    let mut bytes = vec![];
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, 90);
    image.write_with_encoder(encoder).unwrap();
    bytes
}

/// Writes samples as one split of a dataset at `folder`, `per_shard` in each shard.
pub(crate) fn write(folder: &Path, split: &str, samples: &[Sample], per_shard: usize) {
    std::fs::create_dir_all(folder.join(names::INDEX_FOLDER)).unwrap();
    let mut manifest = Manifest::new("test");
    for (name, dtype) in [
        ("boxes", DType::Float),
        (names::CLASS_LABEL, DType::Int64),
        (names::IMAGE_ENCODED, DType::Bytes),
        (names::IMAGE_HEIGHT, DType::Int64),
        (names::IMAGE_KEY, DType::Bytes),
        (names::IMAGE_WIDTH, DType::Int64),
        (MASK, DType::Bytes),
    ] {
        manifest.features.push(FeatureType { name: name.to_owned(), dtype });
    }
    let shards = samples.chunks(per_shard).enumerate();
    let shards =
        shards.map(|(number, samples)| write_shard(folder, &names::shard_file(split, number), samples)).collect();
    manifest.splits.push(Split { name: split.to_owned(), shards });
    std::fs::write(folder.join(names::MANIFEST), manifest.to_json()).unwrap();
}

pub(crate) fn write_shard(folder: &Path, file: &str, samples: &[Sample]) -> Shard {
    let mut bytes = vec![];
    let (mut offsets, mut image_offsets, mut image_lengths) = (vec![], vec![], vec![]);
    let (mut labels, mut widths, mut heights, mut keys) = (vec![], vec![], vec![], vec![]);
    for sample in samples {
        let (encoded, size) = sample.image.as_ref().map_or((&[][..], (0, 0)), |(bytes, size)| (&bytes[..], *size));
        let (width, height) = (i64::from(size.0), i64::from(size.1));
        let images = [encoded];
        let (key, label) = ([sample.key.as_bytes()], [sample.label]);
        let mut features = vec![
            (names::IMAGE_KEY, Column::Bytes(&key)),
            (names::CLASS_LABEL, Column::Int64(&label)),
            ("boxes", Column::Float(&sample.boxes)),
        ];
        let masks = [&sample.mask[..]];
        if !sample.mask.is_empty() {
            features.push((MASK, Column::Bytes(&masks)));
        }
        let (w, h) = ([width], [height]);
        if sample.image.is_some() {
            features.push((names::IMAGE_ENCODED, Column::Bytes(&images)));
            features.push((names::IMAGE_WIDTH, Column::Int64(&w)));
            features.push((names::IMAGE_HEIGHT, Column::Int64(&h)));
        }
        let mut data = vec![];
        encode(&mut features, &mut data);
        let example = Example::parse(&data).unwrap();
        let image = example.bytes(names::IMAGE_ENCODED).and_then(|b| range_within(&data, b)).unwrap_or(0..0);
        offsets.push(bytes.len() as u64);
        image_offsets.push(image.start as u32);
        image_lengths.push(image.len() as u32);
        labels.push(sample.label);
        widths.push(width);
        heights.push(height);
        keys.push(&sample.key);
        bytes.extend(frame::header(data.len() as u64));
        bytes.extend_from_slice(&data);
        bytes.extend(frame::footer(crc32c(&data)));
    }
    let crc = crc32c(&bytes);
    let mut builder = index::Builder::new(samples.len() as u64, bytes.len() as u64, crc);
    builder.fixed(index::RECORD_OFFSET, &offsets);
    builder.fixed(index::IMAGE_OFFSET, &image_offsets);
    builder.fixed(index::IMAGE_LENGTH, &image_lengths);
    builder.variable(index::KEY, keys);
    let feature = |name: &str| format!("{}{name}", index::FEATURE_PREFIX);
    builder.fixed(&feature(names::CLASS_LABEL), &labels);
    if samples.iter().all(|s| s.image.is_some()) {
        builder.fixed(&feature(names::IMAGE_HEIGHT), &heights);
        builder.fixed(&feature(names::IMAGE_WIDTH), &widths);
    }
    let index = builder.finish();
    std::fs::write(folder.join(file), &bytes).unwrap();
    std::fs::write(folder.join(names::INDEX_FOLDER).join(names::index_file(file)), &index).unwrap();
    Shard {
        file: file.to_owned(),
        records: samples.len() as u64,
        bytes: bytes.len() as u64,
        crc32c: crc,
        index_bytes: index.len() as u64,
        index_crc32c: crc32c(&index),
        sha256: None,
        companions: Default::default(),
        foreign: Default::default(),
    }
}
