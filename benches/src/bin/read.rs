//! Measures one thread reading records with CRC checks from the page cache: in order and shuffled, mapped and by `pread`,
//! compared with the CRC of the same bytes alone; shuffled also with a hint for each record some records before. Also measures
//! `verify` of whole files.
//!
//! `cargo run --release -p shardtool-benches --bin read`

use shardtool_benches::{Candidate, compare, print, records};
use shardtool_format::checksum::crc32c;
use shardtool_format::frame;
use shardtool_order::pack_permutation;
use shardtool_read::verify;
use shardtool_read::{Access, Dataset, Options, Split};

/// Records between a hint and its record.
const AHEAD: u64 = 8;

fn main() {
    for (payload, records, shards) in [(100_000usize, 1_000u64, 4u64), (1_000, 100_000, 4)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let sum = records::write(folder.path(), payload, records, shards);
        let open = |access| {
            let dataset = Dataset::open_with(folder.path(), Options::default().with_access(access)).expect("opens");
            dataset.split("train").expect("has a train split").clone()
        };
        let (mapped, read) = (open(Access::Mmap), open(Access::Pread));
        let total = records * shards;
        let shuffle = pack_permutation(7, total).expect("a domain that is not empty");
        let ordered = |split: &Split| pass(split, 0..total, sum);
        let shuffled = |split: &Split| pass(split, (0..total).map(|q| shuffle.forward(q)), sum);
        let hinted = |q: u64| {
            if q + AHEAD < total {
                mapped.prefetch(shuffle.forward(q + AHEAD));
            }
            shuffle.forward(q)
        };
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
                Candidate::new("mapped, shuffled, hinted", || pass(&mapped, (0..total).map(hinted), sum)),
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
