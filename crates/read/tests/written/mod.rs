//! Writes a dataset of one shard.

use shardtool_format::checksum::crc32c;
use shardtool_format::example::{self, Column, Example};
use shardtool_format::index::{self, Builder};
use shardtool_format::manifest::{self, DType, FeatureType, Manifest};
use shardtool_format::{frame, names};
use std::path::Path;

pub(crate) const RECORDS: u64 = 60;
pub(crate) const IMAGE: usize = 5_000;

/// The image of a record: odd bytes.
pub(crate) fn image(record: u64) -> Vec<u8> {
    (0..IMAGE).map(|i| (i as u64 * 31 + record * 7 + 1) as u8 | 1).collect()
}

/// Writes a shard of records that are larger than a page, and its index, which is larger than a page as well. The index has
/// the offsets that `change` makes of the true ones.
pub(crate) fn write(folder: &Path, change: impl FnOnce(&mut Vec<u64>)) {
    let (mut file, mut offsets, mut images, mut keys) = (vec![], vec![], vec![], vec![]);
    for record in 0..RECORDS {
        let image = image(record);
        let key = format!("{record:0200}");
        let mut data = vec![];
        let (images_of, keys_of) = ([&image[..]], [key.as_bytes()]);
        let features =
            &mut [(names::IMAGE_ENCODED, Column::Bytes(&images_of)), (names::IMAGE_KEY, Column::Bytes(&keys_of))];
        example::encode(features, &mut data);
        let parsed = Example::parse(&data).unwrap();
        images.push(example::range_within(&data, parsed.bytes(names::IMAGE_ENCODED).unwrap()).unwrap().start as u32);
        offsets.push(file.len() as u64);
        keys.push(key);
        file.extend(frame::header(data.len() as u64));
        file.extend_from_slice(&data);
        file.extend(frame::footer(crc32c(&data)));
    }
    change(&mut offsets);
    let mut builder = Builder::new(RECORDS, file.len() as u64, crc32c(&file));
    builder.fixed(index::RECORD_OFFSET, &offsets).fixed(index::IMAGE_OFFSET, &images);
    builder.fixed(index::IMAGE_LENGTH, &vec![IMAGE as u32; RECORDS as usize]).variable(index::KEY, keys);
    let index = builder.finish();
    let name = names::shard_file("train", 0);
    std::fs::create_dir_all(folder.join(names::INDEX_FOLDER)).unwrap();
    std::fs::write(folder.join(&name), &file).unwrap();
    std::fs::write(names::index_path(&folder.join(&name)), &index).unwrap();
    let mut manifest = Manifest { label: None, ..Manifest::new("test") };
    for name in [names::IMAGE_ENCODED, names::IMAGE_KEY] {
        manifest.features.push(FeatureType { name: name.to_owned(), dtype: DType::Bytes });
    }
    let entry = manifest::Shard {
        file: name,
        records: RECORDS,
        bytes: file.len() as u64,
        crc32c: crc32c(&file),
        index_bytes: index.len() as u64,
        index_crc32c: crc32c(&index),
        sha256: None,
        companions: Default::default(),
        foreign: Default::default(),
    };
    manifest.splits = vec![manifest::Split { name: "train".to_owned(), shards: vec![entry] }];
    std::fs::write(folder.join(names::MANIFEST), manifest.to_json()).unwrap();
}
