//! Memory up to the first batch does not grow with the number of records.

mod counting;

use counting::{LIVE, PEAK};
use shardtool_format::manifest::{Manifest, Shard, Split};
use shardtool_format::{checksum::crc32c, frame, index, names};
use shardtool_load::{Config, Field, Loader};
use shardtool_order::Order;
use shardtool_read::Dataset;
use std::path::Path;
use std::sync::atomic::Ordering;

/// A shard of `n` opaque records of eight bytes.
fn opaque(folder: &Path, file: &str, n: u64) -> Shard {
    let (mut bytes, mut offsets) = (vec![], vec![]);
    for i in 0..n {
        offsets.push(bytes.len() as u64);
        bytes.extend(frame::header(8));
        bytes.extend(i.to_le_bytes());
        bytes.extend(frame::footer(crc32c(&i.to_le_bytes())));
    }
    let crc = crc32c(&bytes);
    let mut builder = index::Builder::new(n, bytes.len() as u64, crc);
    let none = vec![0u32; n as usize];
    builder.fixed(index::RECORD_OFFSET, &offsets);
    builder.fixed(index::IMAGE_OFFSET, &none).fixed(index::IMAGE_LENGTH, &none);
    builder.variable(index::KEY, vec![""; n as usize]);
    let index = builder.finish();
    std::fs::create_dir_all(folder.join(names::INDEX_FOLDER)).unwrap();
    std::fs::write(folder.join(file), &bytes).unwrap();
    std::fs::write(folder.join(names::INDEX_FOLDER).join(names::index_file(file)), &index).unwrap();
    Shard {
        file: file.to_owned(),
        records: n,
        bytes: bytes.len() as u64,
        crc32c: crc,
        index_bytes: index.len() as u64,
        index_crc32c: crc32c(&index),
        sha256: None,
        companions: Default::default(),
        foreign: Default::default(),
    }
}

/// A dataset of `shards` shards with `n` records each, of which only the first has files.
fn dataset(folder: &Path, shards: usize, n: u64) {
    let first = opaque(folder, &names::shard_file("train", 0), n);
    let mut manifest = Manifest { image: None, label: None, ..Manifest::new("test") };
    let shards = (0..shards).map(|i| Shard { file: names::shard_file("train", i), ..first.clone() }).collect();
    manifest.splits.push(Split { name: "train".to_owned(), shards });
    std::fs::write(folder.join(names::MANIFEST), manifest.to_json()).unwrap();
}

/// Peak memory of a dataset and its loader up to the first batch of 64 records, which is checked.
fn memory(folder: &Path, order: Order) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let dataset = Dataset::open(folder).unwrap();
    let mut config = Config::new(dataset.split("train").unwrap().clone(), [Field::Record], 64);
    (config.order, config.workers) = (order, Some(2));
    let mut loader = Loader::new(&config).unwrap();
    let batch = loader.next_batch().unwrap().unwrap();
    for (id, record) in batch.ids().iter().zip(batch.records()) {
        assert_eq!(record.as_ref().unwrap().data(), (*id as u64).to_le_bytes());
    }
    PEAK.load(Ordering::Relaxed) - before
}

/// One test, since the allocator counts the whole process.
#[test]
fn memory_to_the_first_sample_does_not_grow_with_records() {
    let few = tempfile::tempdir().unwrap();
    dataset(few.path(), 1, 1_000);
    let many = tempfile::tempdir().unwrap();
    dataset(many.path(), 1, 1_000_000);
    for order in [Order::Sequential, Order::Shuffled] {
        let (few, many) = (memory(few.path(), order), memory(many.path(), order));
        println!("{order}: 1,000 records {few} bytes, 1,000,000 records {many}");
        assert!(many < few + (64 << 10), "{order}: {few} bytes for a thousand records, {many} for a million");
    }
    // 400,000 shards: a thousand million records in the second.
    let [few, many] = [100, 2_500].map(|n| {
        let folder = tempfile::tempdir().unwrap();
        dataset(folder.path(), 400_000, n);
        memory(folder.path(), Order::Sequential)
    });
    println!("400,000 shards: {few} bytes for 40 million records, {many} for 1,000 million");
    // The manifest's numbers have more digits.
    assert!(many < few + (16 << 20), "{few} bytes for 40 million records, {many} for 1,000 million");
}
