//! Findings of a verification.

use serde_json::{Value, json};
use shardtool_format::{Damage, names};
use shardtool_read::verify::{Finding, Options, verify_shard};
use shardtool_read::{Dataset, Split};
use std::path::Path;

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let findings = match Dataset::open(path) {
        Ok(dataset) => findings(&dataset),
        Err(error) => vec![Finding::new(&error)],
    };
    let good = super::read::lines(path).iter().filter(|line| is_delivered(line)).count();
    let findings = findings.iter().map(|finding| line(path, finding));
    findings.chain([json!({"good": good})]).collect()
}

/// Returns the findings in all shards.
fn findings(dataset: &Dataset) -> Vec<Finding> {
    let mut options = Options::default();
    options.decode = true;
    let mut all = vec![];
    for split in dataset.splits() {
        for number in 0..split.entry().shards.len() {
            let findings = verify_shard(split, number, &options).findings;
            all.extend(findings.into_iter().map(|finding| of_shard(split, number, finding)));
        }
    }
    all
}

/// Names the shard in the place of a source file: the crate also says where in which file it found something. Names files of another
/// dataset as if they were files of this one.
fn of_shard(split: &Split, number: usize, mut finding: Finding) -> Finding {
    let path = split.shard_path(number);
    if let Some(other) = split.entry().shards[number].foreign.dataset()
        && let Ok(relative) = finding.file.strip_prefix(other)
    {
        finding.file = split.folder().join(relative);
        return finding;
    }
    let columns = path.with_file_name(names::COLUMNS_FOLDER);
    let is_source = finding.file != names::index_path(&path) && !finding.file.starts_with(columns);
    if split.entry().shards[number].foreign.is_virtual && is_source && finding.file != path {
        let in_frame = finding.record.filter(|_| finding.damage == Some(Damage::DataCrc));
        let frame = in_frame.and_then(|row| split.shard(number).and_then(|shard| shard.frame(row)).ok());
        (finding.file, finding.offset) = (path, frame.map(|frame| frame.start));
    }
    finding
}

fn is_delivered(line: &Value) -> bool {
    line.get("record").is_some() && line.get("lookup").is_none() && line.get("error").is_none()
}

fn line(folder: &Path, finding: &Finding) -> Value {
    let file = finding.file.strip_prefix(folder).expect("a file of the dataset");
    let file = file.to_str().expect("UTF-8").replace('\\', "/");
    let name = finding.name();
    // The crate also says where in an index or a companion it found something.
    let offset = finding.offset.filter(|_| !file.starts_with("_index/") && !file.starts_with("_columns/"));
    json!({"finding": name, "file": file, "record": finding.record, "offset": offset})
}
