//! Golden datasets read without a finding; hostile ones give exactly the expected findings and records, mapped and read.

use serde_json::Value;
use shardtool_format::{Damage, names};
use shardtool_read::verify::{self, Report};
use shardtool_read::{Access, Dataset, Options, Record, Result};
use std::path::{Path, PathBuf};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance");

fn folders(kind: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(Path::new(FIXTURES).join(kind)).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

fn open(folder: &Path, access: Access) -> Result<Dataset> {
    Dataset::open_with(folder, Options::default().with_access(access))
}

fn verified(folder: &Path, access: Access) -> Report {
    match open(folder, access) {
        Ok(dataset) => {
            let mut options = verify::Options::default();
            (options.access, options.decode) = (access, true);
            verify::verify(&dataset, &options)
        }
        Err(error) => Report::of_error(&error),
    }
}

#[test]
fn golden_datasets_have_no_findings() {
    for folder in folders("golden") {
        for access in [Access::Mmap, Access::Pread] {
            let report = verified(&folder, access);
            assert!(report.findings.is_empty(), "{}: {:?}", folder.display(), report.findings);
            assert_eq!(found(&folder, access).delivered, expected(&folder).delivered, "{}", folder.display());
        }
    }
}

/// The findings of a verification, the number of records delivered without error, and the records of each split that a
/// reader delivers.
#[derive(Debug, PartialEq)]
struct Outcome {
    findings: Vec<Found>,
    delivered: Vec<(String, u64)>,
}

/// Name of the damage, file, record, offset.
type Found = (String, String, Option<u64>, Option<u64>);

/// Returns what is compared of a finding. This crate also gives offsets in an index, which the kit does not have.
fn comparable(name: &str, file: &str, record: Option<u64>, offset: Option<u64>) -> Found {
    (name.to_owned(), file.to_owned(), record, offset.filter(|_| !file.starts_with("_index/")))
}

/// Reads `expected.json` of a dataset.
fn expected(folder: &Path) -> Outcome {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let document: Value = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    // Of alternative lines, the first one if all are of a record that is delivered.
    let first = |line: &Value| match line.get("any").and_then(Value::as_array) {
        Some(any) if any.iter().all(|line| line.get("data").is_some()) => any[0].clone(),
        _ => line.clone(),
    };
    let lines = |task: &str| document[task].as_array().unwrap().iter().map(first).collect::<Vec<_>>();
    let findings = lines("verify").into_iter().filter(|line| line.get("finding").is_some());
    let findings = findings
        .map(|f| comparable(&text(&f["finding"]), &text(&f["file"]), f["record"].as_u64(), f["offset"].as_u64()));
    let delivered = lines("read").into_iter().filter(|line| line.get("data").is_some());
    let delivered = delivered.map(|line| (text(&line["split"]), line["record"].as_u64().unwrap()));
    let mut outcome = Outcome { findings: findings.collect(), delivered: delivered.collect() };
    outcome.findings.sort();
    outcome.delivered.sort();
    outcome
}

/// The findings of a verification. Of a source file, the kit has the shard and the record instead, and the offset of the frame in
/// which bytes differ.
fn findings(folder: &Path, access: Access) -> Vec<Found> {
    let within = |file: &Path| file.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    let dataset = match open(folder, access) {
        Ok(dataset) if dataset.manifest().has_virtual_shards() => dataset,
        _ => {
            let findings = verified(folder, access).findings.into_iter();
            return findings.map(|f| comparable(f.name(), &within(&f.file), f.record, f.offset)).collect();
        }
    };
    let mut options = verify::Options::default();
    (options.access, options.decode) = (access, true);
    let mut all = vec![];
    for split in dataset.splits() {
        for number in 0..split.entry().shards.len() {
            for finding in verify::verify_shard(split, number, &options).findings {
                let (shard, file) = (split.shard_path(number), &finding.file);
                if [&shard, &names::index_path(&shard)].contains(&file) || file.starts_with(folder.join("_columns")) {
                    all.push(comparable(finding.name(), &within(file), finding.record, finding.offset));
                    continue;
                }
                let row = finding.record.expect("what is wrong with a source file is of a record");
                let differs = finding.damage == Some(Damage::DataCrc);
                let offset = differs.then(|| split.shard(number).unwrap().frame(row).unwrap().start);
                all.push(comparable(finding.name(), &within(&shard), Some(row), offset));
            }
        }
    }
    all
}

fn found(folder: &Path, access: Access) -> Outcome {
    let findings = findings(folder, access);
    let mut delivered = vec![];
    for split in open(folder, access).iter().flat_map(|dataset| dataset.splits().to_vec()) {
        let good = (0..split.len())
            .filter(|id| split.get(*id).and_then(|record| read_whole(record, split.manifest().is_opaque())).is_ok());
        delivered.extend(good.map(|id| (split.name().to_owned(), id)));
    }
    let mut outcome = Outcome { findings, delivered };
    outcome.findings.sort();
    outcome.delivered.sort();
    outcome
}

/// Reads everything that a loader needs from a record.
fn read_whole(record: Record, opaque: bool) -> Result<()> {
    if !opaque {
        record.example()?;
    }
    record.image().map(drop)
}

#[test]
fn hostile_datasets_give_exactly_the_expected_findings_and_records() {
    let mut wrong = vec![];
    for folder in folders("hostile") {
        let expected = expected(&folder);
        for access in [Access::Mmap, Access::Pread] {
            let mut found = found(&folder, access);
            // A reader of single records may notice less of an index that differs from its records.
            if expected.findings.iter().any(|finding| finding.0 == "IndexMismatch") {
                found.delivered.retain(|record| expected.delivered.contains(record));
            }
            if found != expected {
                wrong.push(format!("{} ({access:?}):\n  {expected:?} expected\n  {found:?} found", folder.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn keys_and_hints_of_hostile_datasets_never_panic() {
    for folder in folders("hostile") {
        for access in [Access::Mmap, Access::Pread] {
            let Ok(dataset) = open(&folder, access) else { continue };
            for split in dataset.splits() {
                for id in 0..split.len().min(100) {
                    split.will_need(id);
                    // Without a good bitmap of deleted rows, it is unknown which row a record is.
                    let Ok((shard, row)) = split.locate(id) else { continue };
                    if let Ok(shard) = split.shard(shard) {
                        let _ = shard.key(row);
                        shard.release(row);
                    }
                }
            }
        }
    }
}

#[test]
fn detects_every_flipped_bit_of_every_file() {
    let golden = Path::new(FIXTURES).join("golden/tiny");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("_index")).unwrap();
    let mut files = vec![];
    for file in ["dataset.json", "train-00000.tfrecord", "_index/train-00000.tfrecord.index"] {
        let bytes = std::fs::read(golden.join(file)).unwrap();
        std::fs::write(folder.path().join(file), &bytes).unwrap();
        files.push((folder.path().join(file), bytes));
    }
    assert!(verified(folder.path(), Access::Mmap).findings.is_empty());
    for (path, good) in &files {
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path, &bad).unwrap();
            let report = verified(folder.path(), Access::Mmap);
            assert!(!report.findings.is_empty(), "{}: bit {bit}", path.display());
        }
        std::fs::write(path, good).unwrap();
    }
    assert!(verified(folder.path(), Access::Mmap).findings.is_empty());
}
