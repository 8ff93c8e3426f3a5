//! Opens a dataset and prints its splits, the labels of its first shard, and one record.
//!
//! `cargo run --release -p shardtool --example open -- DATASET`

use shardtool::Dataset;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: open DATASET")?;
    let dataset = Dataset::open(&path)?;
    for split in dataset.splits() {
        println!("{}: {} records in {} shards", split.name(), split.len(), split.entry().shards.len());
    }

    let split = &dataset.splits()[0];
    // A column of the indexes: no record is read.
    if let Some(labels) = split.column::<i64>("image/class/label")? {
        println!("{} labels, the first is {:?}", labels.len(), labels.first());
    }

    // Reading a record checks its CRC and copies nothing.
    let record = split.get(0)?;
    let bytes = record.image()?.ok_or("record 0 has no image")?;
    println!("record 0: key {}, an image of {} bytes", String::from_utf8_lossy(&record.key()?), bytes.len());
    Ok(())
}
