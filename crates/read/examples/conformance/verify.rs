//! Findings of a verification.

use serde_json::{Value, json};
use shardtool_read::Dataset;
use shardtool_read::verify::{Finding, Options, Report, verify};
use std::path::Path;

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let report = match Dataset::open(path) {
        Ok(dataset) => {
            let mut options = Options::default();
            options.decode = true;
            verify(&dataset, &options)
        }
        Err(error) => Report::of_error(&error),
    };
    let good = super::read::lines(path).iter().filter(|line| is_delivered(line)).count();
    let findings = report.findings.iter().map(|finding| line(path, finding));
    findings.chain([json!({"good": good})]).collect()
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
