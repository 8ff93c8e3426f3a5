//! Measures one thread reading records with CRC checks from the page cache: in order and shuffled, mapped and by `pread`,
//! compared with a CRC pass over the same bytes. Also measures `verify` of whole files.
//!
//! `cargo run --release -p shardtool-benches --bin read`

use shardtool_benches::{Candidate, compare, print};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{self, Column};
use shardtool_format::frame;
use shardtool_format::index::{self, Builder};
use shardtool_format::manifest::{self, DType, FeatureType, Manifest};
use shardtool_order::pack_permutation;
use shardtool_read::verify;
use shardtool_read::{Access, Dataset, Options, Split};
use std::path::Path;

fn main() {
    for (payload, records, shards) in [(100_000usize, 1_000u64, 4u64), (1_000, 100_000, 4)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let sum = write(folder.path(), payload, records, shards);
        let open = |access| {
            let dataset = Dataset::open_with(folder.path(), Options::default().with_access(access)).expect("opens");
            dataset.split("train").expect("has a train split").clone()
        };
        let (mapped, read) = (open(Access::Mmap), open(Access::Pread));
        let total = records * shards;
        let shuffle = pack_permutation(7, total).expect("a domain that is not empty");
        let ordered = |split: &Split| pass(split, 0..total, sum);
        let shuffled = |split: &Split| pass(split, (0..total).map(|q| shuffle.forward(q)), sum);
        let files: Vec<_> = (0..shards as usize).map(|s| mapped.shard(s).expect("opens")).collect();
        let crc_only = || {
            files
                .iter()
                .map(|s| s.bytes().mapped().expect("mapped"))
                .map(|b| (crc32c(b), b.len()))
                .fold(0.0, |n, (_, l)| n + l as f64)
        };
        let per_record = files.iter().map(|s| s.bytes().len()).sum::<u64>() as f64 / total as f64;
        let mut rates = compare(
            7,
            &mut [
                Candidate::new("CRC of the files", crc_only),
                Candidate::new("mapped, in order", || ordered(&mapped)),
                Candidate::new("mapped, shuffled", || shuffled(&mapped)),
                Candidate::new("pread, in order", || ordered(&read)),
                Candidate::new("pread, shuffled", || shuffled(&read)),
            ],
        );
        print(&format!("{total} records of {payload} bytes, one thread"), "GB/s", 1e9, &rates);
        rates.remove(0);
        print("  the same", "M records/s", per_record * 1e6, &rates);

        let dataset = Dataset::open(folder.path()).expect("opens");
        let paths: Vec<_> = (0..shards as usize).map(|s| mapped.shard_path(s)).collect();
        let rates = compare(
            7,
            &mut [
                Candidate::new("CRC, all cores, mapping included", || crc_all(&paths)),
                Candidate::new("verify", || {
                    let report = verify::verify(&dataset, &verify::Options::default());
                    assert_eq!((report.good_records, report.findings.len()), (total, 0));
                    report.bytes as f64
                }),
            ],
        );
        print("  verify compared with a CRC pass", "GB/s", 1e9, &rates);
    }
}

/// Reads every record once and checks the sum of the last eight bytes of all images.
fn pass(split: &Split, ids: impl Iterator<Item = u64>, sum: u64) -> f64 {
    let (mut bytes, mut found, mut buffer) = (0, 0u64, vec![]);
    for id in ids {
        let record = split.get_with(id, buffer).expect("a good record");
        bytes += record.data().len() + frame::OVERHEAD_BYTES;
        let image = record.image().expect("a good index").expect("an image");
        found = found.wrapping_add(u64::from_le_bytes(*image.last_chunk().expect("eight bytes")));
        buffer = record.into_buffer();
    }
    assert_eq!(found, sum, "every record once");
    bytes as f64
}

fn crc_all(paths: &[std::path::PathBuf]) -> f64 {
    use rayon::prelude::*;
    let lengths = paths.par_iter().map(|path| {
        let file = shardtool_read::FileBytes::open(path, Access::Mmap).expect("opens");
        std::hint::black_box(crc32c(file.mapped().expect("mapped")));
        file.len() as f64
    });
    lengths.sum()
}

/// Writes a dataset of random payloads and returns the sum of their last eight bytes.
fn write(folder: &Path, payload: usize, records: u64, shards: u64) -> u64 {
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
        });
    }
    manifest.splits = vec![manifest::Split { name: "train".to_owned(), shards: entries }];
    std::fs::write(folder.join("dataset.json"), manifest.to_json()).expect("written");
    sum
}
