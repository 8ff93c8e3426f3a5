//! Datasets of random bytes, for benchmarks that only read.

use shardtool_format::checksum::crc32c;
use shardtool_format::example::{self, Column};
use shardtool_format::frame;
use shardtool_format::index::{self, Builder};
use shardtool_format::manifest::{self, DType, FeatureType, Manifest};
use std::path::Path;

/// Writes a dataset of `shards` shards with `records` records each, whose images are random bytes. Returns the sum of the last
/// eight bytes of all images.
///
/// # Panics
/// If a file cannot be written.
pub fn write(folder: &Path, payload: usize, records: u64, shards: u64) -> u64 {
    let mut manifest = Manifest { label: None, ..Manifest::new("bench") };
    for name in ["image/encoded", "image/key"] {
        manifest.features.push(FeatureType { name: name.to_owned(), dtype: DType::Bytes });
    }
    let (mut entries, mut sum, mut state) = (vec![], 0u64, 1u64);
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state
    };
    std::fs::create_dir(folder.join("_index")).expect("a folder");
    for shard in 0..shards {
        let (mut file, mut offsets, mut images, mut keys) = (vec![], vec![], vec![], vec![]);
        for record in 0..records {
            let image: Vec<u8> = (0..payload / 8).flat_map(|_| random().to_le_bytes()).collect();
            sum = sum.wrapping_add(u64::from_le_bytes(*image.last_chunk().expect("eight bytes")));
            let key = format!("{shard}/{record}");
            let mut data = vec![];
            let features =
                &mut [("image/encoded", Column::Bytes(&[&image[..]])), ("image/key", Column::Bytes(&[key.as_bytes()]))];
            example::encode(features, &mut data);
            let parsed = example::Example::parse(&data).expect("what was just written");
            let range =
                example::range_within(&data, parsed.bytes("image/encoded").expect("the image")).expect("inside");
            offsets.push(file.len() as u64);
            images.push(range.start as u32);
            keys.push(key);
            file.extend(frame::header(data.len() as u64));
            file.extend_from_slice(&data);
            file.extend(frame::footer(crc32c(&data)));
        }
        let lengths = vec![(payload / 8 * 8) as u32; records as usize];
        let mut builder = Builder::new(records, file.len() as u64, crc32c(&file));
        builder.fixed(index::RECORD_OFFSET, &offsets).fixed(index::IMAGE_OFFSET, &images);
        builder.fixed(index::IMAGE_LENGTH, &lengths).variable(index::KEY, keys);
        let index = builder.finish();
        let name = shardtool_format::names::shard_file("train", shard as usize);
        std::fs::write(folder.join(&name), &file).expect("written");
        std::fs::write(folder.join("_index").join(format!("{name}.index")), &index).expect("written");
        entries.push(manifest::Shard {
            file: name,
            records,
            bytes: file.len() as u64,
            crc32c: crc32c(&file),
            index_bytes: index.len() as u64,
            index_crc32c: crc32c(&index),
            sha256: None,
            companions: Default::default(),
            foreign: Default::default(),
        });
    }
    manifest.splits = vec![manifest::Split { name: "train".to_owned(), shards: entries }];
    std::fs::write(folder.join("dataset.json"), manifest.to_json()).expect("written");
    sum
}
