//! Measures opening a dataset of 10^5 shards, 10^9 records in all: its manifest is read and checked, no shard is opened.
//!
//! `cargo run --release -p shardtool-benches --bin open`

use shardtool_benches::{Candidate, compare};
use shardtool_format::manifest::{DType, FeatureType, Manifest, Shard, Split};
use shardtool_format::names;
use shardtool_read::Dataset;

const SHARDS: usize = 100_000;
const RECORDS: u64 = 10_000;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut manifest = Manifest { label: None, ..Manifest::new("bench") };
    for name in ["image/encoded", "image/key"] {
        manifest.features.push(FeatureType { name: name.to_owned(), dtype: DType::Bytes });
    }
    let shard = |number: usize| Shard {
        file: names::shard_file("train", number),
        records: RECORDS,
        bytes: RECORDS * 110_000,
        crc32c: (number as u32).wrapping_mul(0x9e37_79b9),
        index_bytes: RECORDS * 64,
        index_crc32c: (number as u32).wrapping_mul(0x85eb_ca6b),
        sha256: None,
        companions: Default::default(),
        foreign: Default::default(),
    };
    manifest.splits = vec![Split { name: "train".to_owned(), shards: (0..SHARDS).map(shard).collect() }];
    let json = manifest.to_json();
    std::fs::write(folder.path().join(names::MANIFEST), &json).expect("written");
    let open = || {
        let dataset = Dataset::open(folder.path()).expect("opens");
        let split = dataset.split("train").expect("a train split");
        assert_eq!(split.len(), SHARDS as u64 * RECORDS);
        assert_eq!(split.entry().shards.last(), Some(&shard(SHARDS - 1)));
        1.0
    };
    let rates = compare(9, &mut [Candidate::new("open", open)]);
    let (slowest, fastest) = rates[0].range;
    println!("{SHARDS} shards, {SHARDS}·{RECORDS} records, manifest of {:.1} MB", json.len() as f64 / 1e6);
    println!("  open {:.3} s ({:.3} to {:.3})", 1.0 / rates[0].median, 1.0 / fastest, 1.0 / slowest);
}
