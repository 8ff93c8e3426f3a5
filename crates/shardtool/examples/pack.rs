//! Packs a folder that holds one folder of images for each class, then verifies every record of the dataset.
//!
//! `cargo run --release -p shardtool --example pack -- FOLDER DATASET`

use shardtool::tools::{VerifyOptions, verify};
use shardtool::write::Shards;
use shardtool::{Dataset, PackOptions, pack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: pack FOLDER DATASET".into());
    };

    let mut options = PackOptions::new(folder, &path);
    options.shards = Shards::Size(64 << 20);
    // After a kill, the same call continues with the first unfinished shard.
    let summary = pack(&options)?;
    let records: u64 = summary.split.shards.iter().map(|shard| shard.records).sum();
    println!("{records} records, {} classes, {} inputs rejected", summary.classes, summary.rejected);

    let report = verify(&Dataset::open(&path)?, &VerifyOptions::default());
    println!("{} records verified, {} findings", report.good_records, report.findings.len());
    Ok(())
}
